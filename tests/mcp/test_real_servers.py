"""Servers that others wrote, as they are published on PyPI, called through the agent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lsp.agent import agent, call, calls, say, tool_results

STATUS, CONVERT = "mcp__git__git_status", "mcp__time__convert_time"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A git repository with a file that git does not know."""
    folder = tmp_path.resolve() / "work"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "new.txt").touch()
    (folder / ".hel").mkdir()
    return folder


async def test_servers_of_the_newest_protocol_are_loaded_and_called(folder: Path) -> None:
    servers = {name: {"command": sys.executable, "args": ["-m", f"mcp_server_{name}"]} for name in ("time", "git")}
    (folder / ".hel" / "mcp.json").write_text(json.dumps({"servers": servers}), encoding="utf-8")
    noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    replies = [
        call("load_mcp_tool", names=[STATUS, CONVERT]),
        calls((STATUS, {"repo_path": str(folder)}), (CONVERT, noon)),
        say("done"),
    ]
    async with agent(folder, replies) as (editor, model):
        editor.answers = ["Trust", "Allow once", "Allow once"]
        await editor.command("hel.ask", {"prompt": "go", "wait": True})
        shown = await editor.command("hel.tools")

    states = {server["name"]: (server["status"], server["protocolVersion"]) for server in shown["servers"]}
    assert states == {"time": ("ready", "2026-07-28"), "git": ("ready", "2026-07-28")}
    _, status, converted = tool_results(model.requests[2])
    assert "new.txt" in status
    assert "21:00" in converted
