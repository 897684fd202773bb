from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace folder, under its real path."""
    folder = tmp_path.resolve() / "workspace"
    folder.mkdir()
    return folder
