"""MCP servers over several turns and sessions: what one of them may hold up, tell and write down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lsprotocol import types

from tests.lsp.agent import agent, call, records, say, tool_results
from tests.lsp.editor import Editor
from tests.lsp.personalities import NEVER
from tests.mcp.workspace import scripted

ASK = {"prompt": "go", "wait": True}
ECHO = call("mcp__s__echo")
LOAD = call("load_mcp_tool", names=["mcp__s__echo"])


def declare(workspace: Path, **servers: dict[str, Any]) -> None:
    (workspace / ".hel").mkdir(exist_ok=True)
    (workspace / ".hel" / "mcp.json").write_text(json.dumps({"servers": servers}))


def messages(editor: Editor) -> list[str]:
    return [shown["message"] for shown in editor.sent("window/showMessage")]


async def test_a_question_of_trust_that_a_reload_asks_holds_up_no_turn(workspace):
    declare(workspace, s=scripted())
    async with agent(workspace, [say("one"), say("two")]) as (editor, model):
        editor.answers = ["Trust", NEVER]
        await editor.command("hel.ask", ASK)
        declare(workspace, s=scripted(), other=scripted())
        reload = editor.start_command("hel.reloadMcp", {})
        await editor.question(1)
        result = await editor.command("hel.ask", ASK)
        assert result["text"] == "two"
        assert not reload.result.done()
        editor.cancel(reload)


async def test_the_user_hears_once_of_a_server_that_does_not_start(workspace):
    declare(workspace, s=scripted(), broken={"command": "/no/such/program"})
    async with agent(workspace, [say("one"), say("two")]) as (editor, _):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", ASK)
        await editor.command("hel.ask", ASK)
        told = [message for message in messages(editor) if "MCP server" in message]
    assert len(told) == 1
    assert "broken" in told[0]
    assert "hel.reloadMcp" in told[0]


async def test_what_a_server_writes_is_in_the_log_of_the_session_that_calls_it(workspace):
    chatter = [{"line": "this is no message"}, {"result": {"content": []}}]
    declare(workspace, s=scripted(calls={"echo": chatter}))
    replies = [LOAD, ECHO, say("one"), LOAD, ECHO, say("two")]
    async with agent(workspace, replies, options={"access": "auto"}) as (editor, _):
        editor.answers = ["Trust"]
        logs = []
        for _ in range(2):
            await editor.command("hel.newSession")
            await editor.command("hel.ask", ASK)
            logs.append(Path((await editor.command("hel.openLog"))["uri"].removeprefix("file://")))
        written = [[entry["kind"] for entry in records(log)].count("mcp_skipped_line") for log in logs]
    assert written == [1, 1]


async def test_servers_can_be_switched_on_later(workspace):
    declare(workspace, s=scripted())
    replies = [say("one"), LOAD, say("two")]
    async with agent(workspace, replies, settings={"mcp": {"enabled": False}}) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", ASK)
        later = {"hel": {"mcp": {"enabled": True}}}
        editor.set_configuration(later)
        params = types.DidChangeConfigurationParams(settings=later)
        editor.protocol.notify(types.WORKSPACE_DID_CHANGE_CONFIGURATION, params)
        await editor.command("hel.newSession")
        await editor.command("hel.ask", ASK)
    assert "tools" in model.requests[0]
    assert tool_results(model.requests[-1]) == ["mcp__s__echo: loaded, callable from the next request"]
