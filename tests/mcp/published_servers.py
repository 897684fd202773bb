"""Servers from npm, called through the agent: `pytest tests/mcp/published_servers.py`.

They are installed below .tools when this runs, which needs npm and Node, so it is no part of the ordinary run.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lsp.agent import agent, call, say, tool_results
from tests.mcp.npm import install

OFFICIAL = "@modelcontextprotocol/server-"
STUBBORN = "@zereight/mcp-gitlab"
VERSION = "2026.8.31"
PACKAGES = [*(f"{OFFICIAL}{name}@{VERSION}" for name in ("everything", "filesystem", "memory")), f"{STUBBORN}@2.1.64"]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def modules() -> Path:
    return install("servers", PACKAGES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    (folder / "note.txt").write_text("remember the milk")
    return folder


def declare(folder: Path, name: str, script: Path, *arguments: str, **more: Any) -> None:
    server = {"command": shutil.which("node"), "args": [str(script), *arguments], **more}
    (folder / ".hel").mkdir()
    (folder / ".hel" / "mcp.json").write_text(json.dumps({"servers": {name: server}}), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "tool", "arguments", "told"),
    [
        ("everything", "echo", {"message": "hello there"}, "hello there"),
        ("filesystem", "read_text_file", {"path": "note.txt"}, "remember the milk"),
        (
            "memory",
            "create_entities",
            {"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]},
            "Ada",
        ),
    ],
)
async def test_a_tool_is_loaded_and_called(
    modules: Path, folder: Path, name: str, tool: str, arguments: dict[str, Any], told: str
) -> None:
    script = modules / f"{OFFICIAL}{name}" / "dist" / "index.js"
    served = [str(folder)] if name == "filesystem" else []
    declare(folder, name, script, *served, env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")})
    if name == "filesystem":
        arguments = {"path": str(folder / arguments["path"])}
    full = f"mcp__{name}__{tool}"
    async with agent(folder, [call("load_mcp_tool", names=[full]), call(full, **arguments), say("done")]) as started:
        editor, model = started
        editor.answers = ["Trust", "Allow once"]
        result = await editor.command("hel.ask", {"prompt": "go", "wait": True})

    loaded, answer = tool_results(model.requests[2])
    assert "loaded" in loaded
    assert [made["status"] for made in result["toolCalls"]] == ["completed", "completed"]
    assert told in answer


async def test_a_server_that_ignores_the_end_of_its_input_does_not_stay(modules: Path, folder: Path) -> None:
    script = modules / STUBBORN / "build" / "index.js"
    declare(
        folder, "gitlab", script, env={"GITLAB_PERSONAL_ACCESS_TOKEN": "none", "GITLAB_API_URL": "http://localhost:9"}
    )
    replies = [call("load_mcp_tool", query="list projects"), say("done")]
    async with agent(folder, replies) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", {"prompt": "go", "wait": True})
        servers = psutil.Process(editor.process.pid).children(recursive=True)
        began = time.monotonic()
        await editor.end()
        assert time.monotonic() - began < 6
        _, alive = psutil.wait_procs(servers, timeout=1)

    assert "mcp__gitlab__" in tool_results(model.requests[1])[0]
    assert servers
    assert alive == []
