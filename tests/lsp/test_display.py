"""What a user sees of a turn: progress, the answer, and the events that plugins draw from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from lsprotocol import types

from tests.lsp.agent import agent, call, say
from tests.lsp.editor import Editor
from tests.lsp.personalities import NEVER, VSCODE

ASK = {"prompt": "go on, please", "wait": True}
EVENTS = {"hel": {"events": True}}


async def test_progress_is_shown_from_the_start_through_the_steps_and_the_questions_to_the_end(workspace):
    (workspace / "a.txt").write_text("alpha\n")
    replies = [call("read_file", path="a.txt"), call("bash", command="true"), say("done")]
    async with agent(workspace, replies) as (editor, model):
        await editor.command("hel.ask", {"prompt": "go on, please"})
        result = await editor.command("hel.wait")
        created = editor.sent("window/workDoneProgress/create")
        reports = [params["value"] for params in editor.sent("$/progress")]
    assert result["stopReason"] == "end_turn"
    assert len(created) == 1
    assert {params["token"] for params in editor.sent("$/progress")} == {created[0]["token"]}
    begin, *middle, end = reports
    assert (begin["kind"], begin["title"], begin["cancellable"]) == ("begin", "hel: go on, please", True)
    messages = [report["message"] for report in middle]
    assert "step 2" in messages
    assert any(message.startswith("waiting for your answer: bash") for message in messages)
    assert (end["kind"], end["message"]) == ("end", "end turn")


async def test_the_token_of_the_client_is_used_where_it_waits_and_brought_one(workspace):
    async with agent(workspace, [say("done")]) as (editor, model):
        await editor.start_command("hel.ask", ASK, token="mine").result
    assert editor.sent("window/workDoneProgress/create") == []
    kinds = [(params["token"], params["value"]["kind"]) for params in editor.sent("$/progress")]
    assert kinds[0] == ("mine", "begin")
    assert kinds[-1] == ("mine", "end")


async def test_cancelling_the_progress_cancels_the_turn_and_an_unknown_token_nothing(workspace):
    async with agent(workspace, [{"text": "half", "hold": True}]) as (editor, model):
        await editor.command("hel.ask", {"prompt": "go"})
        await model.wait_for_requests(1)
        begin = await editor.wait_for(lambda: editor.sent("$/progress"))
        cancel_progress(editor, "unknown")
        cancel_progress(editor, 7)
        assert await editor.command("hel.pending") == []
        assert editor.sent("$/progress")[-1]["value"]["kind"] != "end"
        cancel_progress(editor, begin[0]["token"])
        assert (await editor.command("hel.wait"))["stopReason"] == "cancelled"


def cancel_progress(editor: Editor, token: int | str) -> None:
    editor.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))


async def test_an_editor_that_never_makes_the_progress_holds_up_nothing(workspace):
    async with agent(workspace, [say("done")]) as (editor, model):
        editor.handlers["window/workDoneProgress/create"] = lambda number, params: NEVER
        assert (await editor.command("hel.ask", ASK))["text"] == "done"
    assert editor.sent("$/progress") == []


SHOWS_DOCUMENTS = replace(
    VSCODE, capabilities={**VSCODE.capabilities, "window": {"showDocument": {"support": True}, "showMessage": {}}}
)
LONG = "long " * 100


@pytest.mark.parametrize(
    ("setting", "text", "shown"),
    [
        ("auto", "short", "message"),
        ("auto", LONG, "document"),
        ("message", LONG, "message"),
        ("document", "short", "document"),
        ("none", "short", "nothing"),
    ],
)
async def test_the_answer_is_shown_as_the_setting_says(workspace, setting, text, shown):
    async with agent(workspace, [say(text)], SHOWS_DOCUMENTS, options={"answer": setting}) as (editor, model):
        editor.handlers["window/showDocument"] = lambda number, params: NEVER
        await editor.command("hel.ask", ASK)
        if shown == "message":
            await editor.wait_for(lambda: editor.sent("window/showMessage"))
        elif shown == "document":
            await editor.wait_for(lambda: editor.sent("window/showDocument"))
        await editor.command("hel.pending")
        messages = [params["message"] for params in editor.sent("window/showMessage")]
        documents = [params["uri"] for params in editor.sent("window/showDocument")]
    assert messages == ([text.strip()] if shown == "message" else [])
    paths = [Path(unquote(uri.removeprefix("file://"))) for uri in documents]
    assert [path.read_text().strip() for path in paths] == ([text.strip()] if shown == "document" else [])


async def test_a_plugin_hears_everything_as_it_happens_and_shows_the_answer_itself(workspace):
    (workspace / "a.txt").write_text("alpha\n")
    edit = {"text": "I will edit.", **call("search_replace", path="a.txt", search="alpha", replace="omega")}
    async with agent(workspace, [edit, say("done now")], experimental=EVENTS) as (editor, model):
        buffer = editor.open(workspace / "a.txt")
        editor.answers = ["Allow once"]
        started = await editor.command("hel.ask", {"prompt": "go"})
        result = await editor.command("hel.wait")
        events = editor.sent("hel/event")
    assert {(event["session"], event["turn"]) for event in events} == {(started["session"], 1)}
    assert "".join(event["delta"] for event in events if event["kind"] == "text") == "I will edit.done now"
    statuses = [event["status"] for event in events if event["kind"] == "toolCall"]
    assert statuses == ["pending", "running", "completed"]
    arguments = {"path": "a.txt", "search": "alpha", "replace": "omega"}
    assert next(event["arguments"] for event in events if event["kind"] == "toolCall") == arguments
    edited = next(event for event in events if event["kind"] == "edit")
    assert (edited["uri"], edited["applied"], edited["added"], edited["removed"]) == (buffer.uri, True, 1, 1)
    assert [event["step"] for event in events if event["kind"] == "step"] == [1, 2]
    assert [event["requests"] for event in events if event["kind"] == "usage"] == [1, 2]
    assert (events[-1]["kind"], events[-1]["result"]) == ("end", result)
    assert editor.sent("window/showMessage") == []
