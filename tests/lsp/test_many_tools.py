"""However many tools the servers have, the model's request stays small."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.agent import agent, call, say, tool_names, tool_results
from tests.mcp.workspace import scripted_from

SERVERS = 22
PURPOSE = (
    "Reads and changes the records of one department, and says what became of them; dates are those of the office."
)

pytestmark = pytest.mark.timeout(300)


def tool(number: int) -> Mapping[str, Any]:
    fields = {
        "record": {"type": "string", "description": "The record's number, as on its cover."},
        "note": {"type": "string", "description": "What to write beside it; stays empty where there is nothing."},
    }
    return {
        "name": f"archive_step_{number}",
        "description": f"Take step {number} of the archive with a record.\n\nAsk for it when nothing else is open.",
        "inputSchema": {"type": "object", "properties": fields, "required": ["record"]},
    }


def lay_out(workspace: Path, count: int) -> None:
    """Declare servers that have `count` tools together."""
    folder = workspace / ".hel"
    folder.mkdir()
    servers: dict[str, Any] = {}
    for server in range(SERVERS):
        own = [tool(number) for number in range(server, count, SERVERS)]
        file = folder / f"department-{server}.json"
        servers[f"department-{server:02}"] = scripted_from(file, tools=own, instructions=PURPOSE)
    (folder / "mcp.json").write_text(json.dumps({"servers": servers}), encoding="utf-8")


async def first_request(workspace: Path, count: int) -> int:
    """Bytes of the first request; the step with the highest number is found and loaded on top of that."""
    workspace.mkdir()
    lay_out(workspace, count)
    replies = [call("load_mcp_tool", query=f"archive step {count - 1}"), say("done")]
    async with agent(workspace, replies, options={"mcp": {"startTimeout": 120}}) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", {"prompt": "go", "wait": True})
        assert f"{count} MCP tools" in model.requests[0]["messages"][0]["content"]
    last = (count - 1) % SERVERS
    wanted = f"mcp__department-{last:02}__archive_step_{count - 1}"
    assert f"{wanted}: loaded" in tool_results(model.requests[1])[0]
    assert wanted in tool_names(model.requests[1])
    assert not any(name.startswith("mcp__") for name in tool_names(model.requests[0]))
    return len(model.bodies[0])


async def test_the_first_request_is_as_small_for_30000_tools_as_for_855(tmp_path: Path) -> None:
    few = await first_request(tmp_path.resolve() / "a", 855)
    many = await first_request(tmp_path.resolve() / "b", 30_000)
    assert few < 9_000
    assert abs(many - few) < few * 0.05
