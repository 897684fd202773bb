from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hel_lsp.mcp import process
from tests.mcp.workspace import Workspace


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that do not end by themselves get half a second where users' get two."""
    monkeypatch.setattr(process, "GRACE", 0.5)


@pytest.fixture(params=["old", "new"], ids=["2025-11-25", "2026-07-28"])
def era(request: pytest.FixtureRequest) -> str:
    """Which protocol the server speaks, as servers/scripted.py names it: whatever it does is tried in both."""
    return request.param


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    folder = tmp_path / "work"
    folder.mkdir()
    workspace = Workspace(folder)
    yield workspace
    for host in workspace.hosts:
        await host.aclose()
