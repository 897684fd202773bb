"""How many examples the property tests try: 200 each, or many more with `HYPOTHESIS_PROFILE=thorough`."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("bounded", max_examples=200, deadline=None)
settings.register_profile("thorough", max_examples=5_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "bounded"))
