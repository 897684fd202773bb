"""Commands, settings and code actions as any client of the protocol sees them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from hel_lsp.lsp.server import COMMANDS
from tests.lsp.agent import agent, call, records, say
from tests.lsp.editor import Editor

ASK = {"prompt": "go", "wait": True}
WITH_SESSION = ("hel.wait", "hel.cancel", "hel.resume", "hel.compact", "hel.tools", "hel.undo", "hel.openLog")


async def test_what_initialize_promises(workspace):
    async with Editor.started(workspace=workspace) as editor:
        assert editor.initialize_result is not None
        offered = editor.initialize_result.capabilities
        assert offered.execute_command_provider is not None
        assert set(offered.execute_command_provider.commands) == set(COMMANDS)
        sync = offered.text_document_sync
        assert isinstance(sync, types.TextDocumentSyncOptions)
        assert (sync.open_close, sync.change) == (True, types.TextDocumentSyncKind.Full)
        assert offered.code_action_provider


async def test_a_malformed_argument_is_refused_with_the_field_that_is_wrong(workspace):
    cases = [
        ("hel.ask", {}, "prompt"),
        ("hel.ask", None, "prompt"),
        ("hel.ask", {"prompt": 5}, "prompt"),
        ("hel.ask", {"prompt": "  "}, "prompt"),
        ("hel.ask", {"prompt": "a", "wait": "yes"}, "wait"),
        ("hel.ask", {"prompt": "a", "access": "all"}, "access"),
        ("hel.ask", {"prompt": "a", "session": "none"}, "session"),
        ("hel.ask", {"prompt": "a", "textDocument": "file:///a"}, "textDocument"),
        ("hel.ask", {"prompt": "a", "textDocument": {}}, "textDocument.uri"),
        ("hel.ask", {"prompt": "a", "range": {}}, "range"),
        ("hel.ask", {"prompt": "a", "textDocument": {"uri": "file:///a"}, "range": {}}, "range.start"),
        ("hel.wait", {"session": "none"}, "session"),
        ("hel.cancel", {"session": 3}, "session"),
        ("hel.setAccess", {}, "access"),
        ("hel.answer", {"id": "1"}, "action"),
        ("hel.answer", {"action": "Reject"}, "id"),
        ("hel.reloadMcp", {"server": 5}, "server"),
        ("hel.openLog", {"session": "none"}, "session"),
        *(
            (command, {"turn": turn}, "turn")
            for command in ("hel.wait", "hel.undo")
            for turn in ("last", -1, True, 1.5)
        ),
        *((command, {"name": "x"}, "name") for command in ("hel.newSession", "hel.sessions", "hel.pending")),
        *((command, {"session": 3}, "session") for command in WITH_SESSION),
    ]
    async with Editor.started(workspace=workspace) as editor:
        for command, argument, field in cases:
            with pytest.raises(JsonRpcInvalidParams, match=f"^{re.escape(field)}: "):
                await editor.command(command, argument)
        for command in ("hel.wait", "hel.undo", "hel.compact", "hel.openLog"):
            with pytest.raises(JsonRpcInvalidParams, match=r"^There is no session yet"):
                await editor.command(command, {"session": None})
        assert await editor.command("hel.pending") == []
    assert {command for command, _, _ in cases} == set(COMMANDS)


async def test_tools_are_listed_with_their_access_before_and_after_a_turn(workspace):
    async with agent(workspace, [say("hi")]) as (editor, model):
        before = await editor.command("hel.tools")
        await editor.command("hel.ask", ASK)
        assert await editor.command("hel.tools") == before
    access = {tool["name"]: tool["access"] for tool in before["builtin"]}
    assert access["read_file"] == "read"
    assert access["search_replace"] == access["write_file"] == "edit"
    assert access["bash"] == "execute"
    assert before["servers"] == []


async def test_the_run_log_is_shown_and_holds_what_was_asked_called_and_decided_without_the_key(workspace):
    key = "sk-very-secret"
    (workspace / "a.txt").write_text("alpha\n")
    replies = [call("read_file", path="a.txt"), call("bash", command="true"), say("done")]
    async with agent(workspace, replies, environment={"HEL_API_KEY": key}) as (editor, model):
        await editor.command("hel.ask", ASK)
        shown = await editor.command("hel.openLog")
        assert shown["uri"] in [params["uri"] for params in editor.sent("window/showDocument")] or not editor.sent(
            "window/showDocument"
        )
    assert model.headers[0]["authorization"] == f"Bearer {key}"
    path = Path(shown["uri"].removeprefix("file://"))
    entries = records(path)
    assert key not in path.read_text()
    assert key not in editor.stderr
    called = [(entry["tool"], entry["status"], entry["decision"]) for entry in entries if entry["kind"] == "call"]
    assert called == [("read_file", "completed", None), ("bash", "rejected", "reject")]
    assert [entry["input_tokens"] for entry in entries if entry["kind"] == "request"] == [100] * 3
    assert path.stat().st_mode & 0o777 == 0o600


async def test_settings_come_key_by_key_and_what_is_wrong_is_said_once(workspace):
    options = {"limits": {"maxSteps": 0}, "acces": "auto", "tools": {"disabled": ["bash"]}}
    pulled = {"access": "auto", "answer": 5}
    (workspace / "a.txt").write_text("alpha\n")
    edit = call("search_replace", path="a.txt", search="alpha", replace="omega")
    async with agent(workspace, [edit, say("done")], options=options, settings=pulled) as (editor, model):
        await editor.wait_for(lambda: len(editor.sent("window/showMessage")) >= 3)
        buffer = editor.open(workspace / "a.txt")
        await editor.command("hel.ask", ASK)
        assert (buffer.text, editor.questions) == ("omega\n", [])
        editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({"hel": {"answer": 5}}))
        await editor.command("hel.pending")
        said = [params["message"] for params in editor.sent("window/showMessage")]
    problems = [message for message in said if "etting" in message]
    assert len(problems) == 3
    for key in ("limits.maxSteps", "acces", "answer"):
        assert sum(key in message for message in problems) >= 1
    assert "bash" not in json.dumps(model.requests[0]["tools"])


async def test_the_user_message_tells_where_the_user_is(workspace):
    text = "".join(f"line {number}\n" for number in range(1, 41))
    (workspace / "a.py").write_text(text)
    async with agent(workspace, [say("1"), say("2"), say("3")]) as (editor, model):
        buffer = editor.open(workspace / "a.py", language="python")
        document = {"textDocument": {"uri": buffer.uri}}
        selected = {"start": {"line": 4, "character": 0}, "end": {"line": 6, "character": 0}}
        cursor = {"start": {"line": 20, "character": 3}, "end": {"line": 20, "character": 3}}
        await editor.command("hel.ask", {**ASK, **document, "range": selected})
        await editor.command("hel.ask", {**ASK, **document, "range": cursor})
        editor.type(buffer, "more")
        await editor.command("hel.ask", {**ASK, **document})
    first, second, third = [model.requests[n]["messages"][1 + 2 * n]["content"] for n in range(3)]
    assert first.startswith("go\n")
    assert "a.py (python)" in first
    assert "Selected, lines 5-6:\nline 5\nline 6\n" in first
    assert "lines 11-31:\nline 11\n" in second
    assert "line 32" not in second
    assert "Unsaved: a.py" in third


async def test_code_actions_make_the_agent_usable_without_a_plugin(workspace):
    (workspace / "a.py").write_text("x = 1\n    # hel: explain this line\n<!-- HEL: do it -->\nshell: no\n")
    async with agent(workspace, [say("it is one")]) as (editor, model):
        buffer = editor.open(workspace / "a.py")

        async def actions(line: int, end: int | None = None, *, problem: str = "") -> dict[str, dict[str, Any]]:
            where = types.Range(types.Position(line, 0), types.Position(line if end is None else end, 0))
            found = [types.Diagnostic(where, problem)] if problem else []
            document = types.TextDocumentIdentifier(buffer.uri)
            await editor.text_document_code_action_async(
                types.CodeActionParams(document, where, types.CodeActionContext(found))
            )
            return {action["title"]: action["command"] for action in editor.received[-1]["result"]}

        assert list(await actions(0)) == []
        assert list(await actions(3)) == []
        assert list(await actions(2)) == ["Ask hel: do it"]
        assert list(await actions(0, 2, problem="x is\nunused")) == ["Fix with hel: x is unused", "Explain with hel"]
        [command] = (await actions(1)).values()
        assert command["command"] == "hel.ask"
        await editor.command(command["command"], *command["arguments"])
        await editor.wait_for(lambda: "it is one" in str(editor.sent("window/showMessage")))
    assert model.requests[0]["messages"][1]["content"].startswith("explain this line")
