"""The main job at the wire: look something up through MCP, put it into a file, change nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hel_lsp.demo import task
from tests.lsp.agent import agent, call, records, say, tool_names, tool_results
from tests.lsp.editor import Buffer, Editor
from tests.lsp.personalities import DISMISSED, EMPTY, NEVER

BUILTIN = ["read_file", "search_replace", "write_file", "list_files", "search_files", "bash"]
YES = ["Trust", "Allow once", "Allow once", "Allow once"]
CALLS = [{"tool": "list_services", "arguments": {}}, {"tool": "lookup_port", "arguments": {"service": "api"}}]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "inventory.jsonl"


@pytest.fixture
def laid_out(workspace: Path, record: Path) -> Path:
    task.lay_out(workspace, record)
    return workspace


async def ask(editor: Editor, folder: Path, *answers: Any) -> tuple[Buffer, dict[str, Any]]:
    """Open config.ini, ask for the main job, and answer the questions in order."""
    buffer = editor.open(folder / "config.ini")
    editor.answers = list(answers)
    argument = {"prompt": task.PROMPT, "textDocument": {"uri": buffer.uri}, "wait": True}
    return buffer, await editor.command("hel.ask", argument)


async def test_the_value_is_looked_up_and_put_into_the_buffer_and_nothing_else_changes(laid_out, record):
    async with agent(laid_out, task.replies()) as (editor, model):
        buffer, result = await ask(editor, laid_out, *YES)

        assert buffer.text == task.EXPECTED
        assert (laid_out / "config.ini").read_text() == task.CONFIG
        assert records(record) == CALLS
        assert result["stopReason"] == "end_turn"
        assert result["text"] == task.ANSWER
        assert result["steps"] == 5
        assert result["edits"] == [{"uri": buffer.uri, "applied": True, "added": 1, "removed": 1}]
        assert result["unsaved"] == [buffer.uri]
        assert [(report["name"], report["status"], report["decision"]) for report in result["toolCalls"]] == [
            ("load_mcp_tool", "completed", None),
            ("read_file", "completed", None),
            (task.LIST_SERVICES, "completed", "allow_once"),
            (task.LOOKUP_PORT, "completed", "allow_once"),
            ("search_replace", "completed", "allow_once"),
        ]
        editor.undo(buffer)
        assert buffer.text == task.CONFIG


async def test_a_definition_is_sent_in_the_request_after_it_was_loaded_and_not_before(laid_out, record):
    async with agent(laid_out, task.replies()) as (editor, model):
        await ask(editor, laid_out, *YES)

    first, *later = [tool_names(request) for request in model.requests]
    assert first == [*BUILTIN, "load_mcp_tool"]
    assert later == [[*BUILTIN, "load_mcp_tool", task.LIST_SERVICES, task.LOOKUP_PORT]] * 4
    system = model.requests[0]["messages"][0]["content"]
    assert "mcp__inventory__lookup_port: Look up the port" in system
    assert "Name of the service" not in model.bodies[0].decode(), "the schema is not in the first request"


async def test_every_request_starts_with_the_whole_of_the_one_before(laid_out):
    async with agent(laid_out, [*task.replies(), say("nothing more")]) as (editor, model):
        await ask(editor, laid_out, *YES)
        await editor.command("hel.ask", {"prompt": "thank you", "wait": True})

    messages = [request["messages"] for request in model.requests]
    assert len(messages) == 6
    for earlier, later in zip(messages, messages[1:], strict=False):
        assert later[: len(earlier)] == earlier
    assert len({request["messages"][0]["content"] for request in model.requests}) == 1


async def test_a_call_before_loading_reaches_no_server_and_asks_nobody(laid_out, record):
    replies = [call(task.LOOKUP_PORT, service="api"), call(task.LOOKUP_PORT, service="api"), say("8437")]
    async with agent(laid_out, replies) as (editor, model):
        _, result = await ask(editor, laid_out, "Trust", "Allow once")

    assert [question.message[:12] for question in editor.questions] == ["Trust this p", "mcp__invento"]
    assert records(record) == [{"tool": "lookup_port", "arguments": {"service": "api"}}]
    assert "nothing was called" in tool_results(model.requests[1])[0]
    assert tool_names(model.requests[1])[-1] == task.LOOKUP_PORT
    assert [report["status"] for report in result["toolCalls"]] == ["failed", "completed"]


async def test_with_auto_load_off_the_model_is_told_to_load_the_tool_itself(laid_out, record):
    replies = [call(task.LOOKUP_PORT, service="api"), say("I give up")]
    async with agent(laid_out, replies, options={"mcp": {"autoLoad": False}}) as (editor, model):
        await ask(editor, laid_out, "Trust")

    assert "Load it first" in tool_results(model.requests[1])[0]
    assert task.LOOKUP_PORT not in tool_names(model.requests[1])
    assert records(record) == []


async def test_a_call_in_the_same_reply_as_its_loading_reaches_no_server(laid_out, record):
    loading, calling = task.replies()[0], task.replies()[1]
    together = {"tool_calls": [*loading["tool_calls"], *calling["tool_calls"]]}
    async with agent(laid_out, [together, say("done")]) as (editor, model):
        await ask(editor, laid_out, "Trust")

    assert records(record) == []
    assert "nothing was called" in tool_results(model.requests[1])[-1]


@pytest.mark.parametrize(
    "refusal",
    ["Reject", DISMISSED, EMPTY, "allow once", "Allow once ", "Trust", ""],
    ids=["rejected", "dismissed", "empty", "lower case", "trailing blank", "another question's title", "no title"],
)
async def test_an_edit_that_is_not_allowed_by_the_exact_title_is_not_made(laid_out, refusal):
    async with agent(laid_out, task.replies()) as (editor, model):
        buffer, result = await ask(editor, laid_out, "Trust", "Allow once", "Allow once", refusal)

        assert buffer.text == task.CONFIG
        assert editor.sent("workspace/applyEdit") == []
    assert result["stopReason"] == "end_turn"
    assert result["edits"] == []
    assert result["toolCalls"][-1] == {"name": "search_replace", "status": "rejected", "decision": "reject"}
    assert "Rejected" in tool_results(model.requests[-1])[-1]


async def test_an_mcp_call_that_is_not_allowed_reaches_no_server(laid_out, record):
    async with agent(laid_out, task.replies()) as (editor, model):
        await ask(editor, laid_out, "Trust", "Reject", None)

    assert records(record) == []


async def test_without_trust_no_server_starts_and_the_tools_are_the_built_in_ones(laid_out, record):
    started = laid_out / "started"
    server = laid_out / ".hel" / "mcp" / "inventory.py"
    server.write_text(f"open({str(started)!r}, 'w').close()\n" + server.read_text())
    async with agent(laid_out, [say("no tools")]) as (editor, model):
        _, result = await ask(editor, laid_out, "Don't trust")
        shown = await editor.command("hel.tools")

    assert result["stopReason"] == "end_turn"
    assert not started.exists()
    assert tool_names(model.requests[0]) == BUILTIN
    assert [(server["name"], server["status"]) for server in shown["servers"]] == [("inventory", "untrusted")]


async def test_the_question_of_trust_shows_the_command_line_and_is_asked_once_for_the_same_bytes(laid_out):
    async with agent(laid_out, [say("1")]) as (editor, model):
        await ask(editor, laid_out, "Trust")
        assert editor.questions[0].actions == ["Don't trust", "Trust"]
        assert ".hel/mcp/inventory.py" in editor.questions[0].message
    async with agent(laid_out, [say("2")]) as (editor, model):
        await ask(editor, laid_out)
        assert editor.questions == []
    file = laid_out / ".hel" / "mcp.json"
    file.write_text(file.read_text() + "\n")
    async with agent(laid_out, [say("3")]) as (editor, model):
        await ask(editor, laid_out, "Trust")
        assert len(editor.questions) == 1


async def test_an_unsaved_change_in_the_buffer_is_kept_and_seen_by_the_model(laid_out):
    async with agent(laid_out, task.replies()) as (editor, model):
        buffer = editor.open(laid_out / "config.ini")
        editor.replace(buffer, "level=info", "level=debug")
        editor.answers = list(YES)
        result = await editor.command("hel.ask", {"prompt": task.PROMPT, "wait": True})

        assert buffer.text == task.EXPECTED.replace("level=info", "level=debug")
        assert (laid_out / "config.ini").read_text() == task.CONFIG
    assert "level=debug" in tool_results(model.requests[1])[1]
    assert "Unsaved: config.ini" in model.requests[0]["messages"][1]["content"]
    assert result["edits"][0]["applied"] is True


async def test_a_workspace_without_servers_offers_the_built_in_tools_only(workspace):
    (workspace / "config.ini").write_text(task.CONFIG)
    async with agent(workspace, [say("hello")]) as (editor, model):
        _, result = await ask(editor, workspace)

    assert tool_names(model.requests[0]) == BUILTIN
    assert "MCP" not in model.requests[0]["messages"][0]["content"]
    assert len(model.bodies[0]) < 5_500
    assert result["text"] == "hello"


async def test_the_whole_task_takes_few_bytes(laid_out):
    others = [name for name in BUILTIN if name not in ("read_file", "search_replace")]
    async with agent(laid_out, task.replies(), options={"tools": {"disabled": others}}) as (editor, model):
        await ask(editor, laid_out, *YES)

    assert len(model.bodies) == 5
    assert sum(map(len, model.bodies)) < 26_000


async def test_allowing_for_the_session_covers_the_tool_and_not_another_one(laid_out):
    lookup = task.replies()[2]
    replies = [task.replies()[0], lookup, lookup, task.replies()[1], say("done")]
    async with agent(laid_out, replies) as (editor, model):
        await ask(editor, laid_out, "Trust", "Allow for session", "Allow once")
        asked = [question.message.split(":")[0] for question in editor.questions]

    assert asked == ["Trust this project? mcp.json wants to start", task.LOOKUP_PORT, task.LIST_SERVICES]


async def test_always_allow_is_kept_in_the_state_folder_and_not_in_the_project(laid_out):
    before = {path: path.read_bytes() for path in laid_out.rglob("*") if path.is_file()}
    replies = [task.replies()[0], task.replies()[1], say("done")]
    async with agent(laid_out, replies) as (editor, model):
        await ask(editor, laid_out, "Trust", "Always allow")
    async with agent(laid_out, replies) as (editor, model):
        _, result = await ask(editor, laid_out)
        assert editor.questions == []

    assert [report["status"] for report in result["toolCalls"]] == ["completed"] * 3
    assert {path: path.read_bytes() for path in laid_out.rglob("*") if path.is_file()} == before


async def test_a_question_can_be_answered_by_a_command_and_the_late_popup_is_ignored(laid_out):
    async with agent(laid_out, task.replies()) as (editor, model):
        buffer = editor.open(laid_out / "config.ini")
        held: list[Any] = []
        editor.answers = lambda message, actions: NEVER
        running = editor.start_command("hel.ask", {"prompt": task.PROMPT, "wait": True})
        for action in YES:
            pending = await wait_for_pending(editor, held)
            assert await editor.command("hel.answer", {"id": pending["id"], "action": "nonsense"}) == {
                "accepted": False
            }
            assert await editor.command("hel.answer", {"id": pending["id"], "action": action}) == {"accepted": True}
            editor.questions[-1].answer("Reject")
        result = await running.result

    assert result["stopReason"] == "end_turn"
    assert buffer.text == task.EXPECTED


async def wait_for_pending(editor: Editor, seen: list[Any]) -> dict[str, Any]:
    """The next question that has been put to the editor."""
    await editor.question(len(seen))
    [pending] = await editor.command("hel.pending")
    assert pending["message"] == editor.questions[-1].message
    seen.append(pending)
    return pending
