"""Values of a provider's JSON, of which no type can be taken for granted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast


def objects(value: object) -> Sequence[Mapping[str, Any]]:
    """The objects in `value`, which may be a list of them, a single one, or anything else."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return [cast("Mapping[str, Any]", item) for item in values if isinstance(item, dict)]


def plain(value: object) -> str:
    """The text of a string or a number; empty for all else."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) else ""


def tokens(value: object) -> int:
    """A count of tokens; 0 for what cannot be one."""
    return int(value) if isinstance(value, int | float) and 0 < value < 1e12 else 0


def fragment(value: object) -> str:
    """The text of a piece of a call's arguments; endpoints that do not stream them send the value itself."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
