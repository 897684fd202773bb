"""What a search does where there is more than it can bear."""

from __future__ import annotations

from pathlib import Path

import pytest

from hel_lsp.local.workspace import FileWorkspace
from hel_lsp.tools import search


@pytest.mark.parametrize("pattern", ["", "*.py", "**"])
async def test_a_listing_that_is_too_long_is_cut_between_two_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    names = {f"file {number}\nof many.py" for number in range(50)}
    for name in names:
        (tmp_path / name).touch()
    workspace = FileWorkspace(tmp_path)
    whole = len(str(tmp_path)) * len(names)
    monkeypatch.setattr(search, "LISTING", whole // 2)
    prepared = await search.ListFiles(workspace).prepare({"pattern": pattern})
    shown = (await prepared.run()).text
    found = {name for name in names if name in shown}
    assert 0 < len(found) < len(names)
    assert sorted(shown.split("\n")) == sorted(line for name in found for line in name.split("\n"))
