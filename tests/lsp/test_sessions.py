"""Sessions outlive their process: listed, resumed, and whole up to the moment at which a server died."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from hel_lsp.agent.runlog import verify
from hel_lsp.agent.store import seals
from hel_lsp.demo import task
from tests.lsp.agent import agent, call, calls, records, say, tool_names, tool_results
from tests.lsp.personalities import NEVER

ASK = {"prompt": "go", "wait": True}
FIX = {"path": "a.txt", "search": "alpha", "replace": "omega"}


@pytest.fixture
def files(workspace: Path) -> Path:
    (workspace / "a.txt").write_text("alpha\n")
    return workspace


def session_file(workspace: Path) -> Path:
    (file,) = (workspace.parent / f"{workspace.name}-state" / "sessions").glob("*/*.jsonl")
    return file


def roles(request: dict[str, Any]) -> list[str]:
    return [message["role"] for message in request["messages"]]


async def test_a_session_is_listed_and_resumed_by_the_next_server_with_its_conversation(files):
    async with agent(files, [call("read_file", path="a.txt"), say("It says alpha.")]) as (editor, model):
        assert await editor.command("hel.sessions") == []
        first = await editor.command("hel.ask", {"prompt": "what does\na.txt say?", "wait": True})
        before = model.requests[1]["messages"]

    async with agent(files, [say("Still alpha.")]) as (editor, model):
        (listed,) = await editor.command("hel.sessions")
        assert (listed["session"], listed["title"], listed["turns"]) == (first["session"], "what does a.txt say?", 1)
        assert listed["updated"].endswith("Z")
        resumed = await editor.command("hel.resume")
        assert resumed["session"] == first["session"]
        assert [message["role"] for message in resumed["messages"]] == ["user", "assistant", "tool", "assistant"]
        user, asked, told, answered = resumed["messages"]
        assert user["text"] == "what does\na.txt say?"
        assert asked["toolCalls"] == [{"id": "call_1", "name": "read_file", "arguments": '{"path": "a.txt"}'}]
        assert told["callId"] == "call_1"
        assert told["text"].endswith("alpha\n")
        assert answered["text"] == "It says alpha."

        again = await editor.command("hel.ask", ASK)
        assert (again["session"], again["turn"]) == (first["session"], 2)
        assert model.requests[0]["messages"][1:4] == before[1:]
        assert (await editor.command("hel.sessions"))[0]["turns"] == 2
        assert (await editor.command("hel.wait", {"turn": 2}))["text"] == "Still alpha."
        with pytest.raises(JsonRpcException, match="1 of them before it was resumed"):
            await editor.command("hel.wait", {"turn": 1})


async def test_the_newest_comes_first_and_a_session_can_be_named(files):
    async with agent(files, [say("one"), say("two"), say("three")]) as (editor, model):
        one = await editor.command("hel.ask", ASK)
        await editor.command("hel.newSession")
        two = await editor.command("hel.ask", ASK)
        names = [listed["session"] for listed in await editor.command("hel.sessions")]
        assert names == [two["session"], one["session"]]
        assert (await editor.command("hel.resume", {"session": one["session"]}))["messages"][1]["text"] == "one"
        assert (await editor.command("hel.ask", ASK))["session"] == one["session"]
        with pytest.raises(JsonRpcException, match="no session 'gone' in this workspace"):
            await editor.command("hel.resume", {"session": "gone"})
        with pytest.raises(JsonRpcException, match="in this workspace"):
            await editor.command("hel.resume", {"session": f"../{session_folder(files)}/{one['session']}"})


def session_folder(workspace: Path) -> str:
    return next((workspace.parent / f"{workspace.name}-state" / "sessions").iterdir()).name


async def test_another_workspace_neither_lists_nor_resumes_it(files, tmp_path):
    async with agent(files, [say("one")]) as (editor, model):
        asked = await editor.command("hel.ask", ASK)
    state = {"HEL_STATE_DIR": str(files.parent / "workspace-state")}
    other = tmp_path.resolve() / "other"
    other.mkdir()
    async with agent(other, environment=state) as (editor, model):
        assert await editor.command("hel.sessions") == []
        with pytest.raises(JsonRpcException, match="in this workspace"):
            await editor.command("hel.resume", {"session": asked["session"]})
        with pytest.raises(JsonRpcException, match="no session to resume"):
            await editor.command("hel.resume")


async def test_two_servers_never_write_one_session_and_that_of_a_dead_one_is_free(files):
    async with agent(files, [say("one")]) as (first, _), agent(files, [say("two")]) as (second, _):
        asked = await first.command("hel.ask", ASK)
        with pytest.raises(JsonRpcException, match="in use in another editor"):
            await second.command("hel.resume", {"session": asked["session"]})
        await first.kill()
        assert (await second.command("hel.resume"))["session"] == asked["session"]
        assert (await second.command("hel.ask", ASK))["turn"] == 2


async def test_what_was_loaded_is_not_resumed_and_the_system_text_is_made_afresh(files):
    task.lay_out(files)
    load = call("load_mcp_tool", names=[task.LOOKUP_PORT])
    async with agent(files, [load, say("loaded"), say("again")]) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", ASK)
        assert task.LOOKUP_PORT in tool_names(model.requests[1])
        (files / "AGENTS.md").write_text("Speak softly.\n")
        await editor.command("hel.resume")
        await editor.command("hel.ask", ASK)
    assert task.LOOKUP_PORT not in tool_names(model.requests[2])
    assert "Speak softly." in model.requests[2]["messages"][0]["content"]
    assert roles(model.requests[2])[1:] == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_torn_last_line_is_dropped_with_a_note(files):
    async with agent(files, [say("one")]) as (editor, model):
        await editor.command("hel.ask", ASK)
    file = session_file(files)
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"kind": "turn", "tu')
    async with agent(files) as (editor, model):
        assert len((await editor.command("hel.resume"))["messages"]) == 2
        shown = [shown.message for shown in editor.messages]
        assert any("never finished, and was dropped" in message for message in shown)
    assert file.read_bytes() == whole


async def test_a_file_that_is_damaged_in_its_middle_is_refused_with_the_line(files):
    async with agent(files, [say("one")]) as (editor, model):
        await editor.command("hel.ask", ASK)
    file = session_file(files)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], b"rubbish\n", *lines[2:]]))
    async with agent(files) as (editor, model):
        with pytest.raises(JsonRpcException, match="line 3"):
            await editor.command("hel.resume")


async def test_the_end_of_a_turn_is_on_the_disk_before_it_is_told(files):
    async with agent(files, [say("one")]) as (editor, model):
        result = await editor.command("hel.ask", ASK)
        last = records(session_file(files))[-1]
        log = (files.parent / "workspace-state" / "logs" / f"{result['session']}.jsonl").read_bytes()
    assert (last["kind"], last["turn"], last["stop"]) == ("end", 1, "end_turn")
    assert last["log"] == hashlib.sha256(log.splitlines()[-1]).hexdigest()


# ------------------------------------------------------------------ a server that is killed


async def test_killed_while_the_model_streams_the_prompt_is_kept_and_the_turn_closed(files):
    async with agent(files, [{"text": "half", "hold": True}]) as (editor, model):
        running = editor.start_command("hel.ask", {"prompt": "first"})
        await running.result
        await model.wait_for_requests(1)
        await editor.kill()
    async with agent(files, [say("next")]) as (editor, model):
        resumed = await editor.command("hel.resume")
        assert [message["role"] for message in resumed["messages"]] == ["user", "assistant"]
        assert "hel-lsp was stopped" in resumed["messages"][1]["text"]
        assert (await editor.command("hel.ask", ASK))["turn"] == 2
    assert roles(model.requests[0]) == ["system", "user", "assistant", "user"]


async def test_killed_during_a_question_what_was_known_is_kept_and_every_call_has_a_result(files):
    wanted = calls(("read_file", {"path": "a.txt"}), ("search_replace", FIX))
    async with agent(files, [wanted]) as (editor, model):
        editor.answers = lambda message, actions: NEVER
        await editor.command("hel.ask", {"prompt": "first"})
        await editor.question()
        await editor.kill()
    assert (files / "a.txt").read_text() == "alpha\n"
    async with agent(files, [say("next")]) as (editor, model):
        await editor.command("hel.resume")
        await editor.command("hel.ask", ASK)
    assert roles(model.requests[0]) == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    read, replaced = tool_results(model.requests[0])
    assert read.endswith("alpha\n")
    assert "may or may not have taken effect" in replaced


async def test_killed_between_an_edit_and_its_record_the_edit_is_there_once_and_the_model_is_told_to_look(files):
    async with agent(files, [call("search_replace", **FIX)], options={"access": "auto"}) as (editor, model):
        buffer = editor.open(files / "a.txt")
        editor.before_edit = lambda: editor.process.kill()
        await editor.command("hel.ask", {"prompt": "first"})
        await editor.process.wait()
        await editor.wait_for(lambda: buffer.dirty)
        buffer.path.write_text(buffer.text)
    assert (files / "a.txt").read_text() == "omega\n"
    async with agent(files, [say("next")]) as (editor, model):
        await editor.command("hel.resume")
        await editor.command("hel.ask", ASK)
    (told,) = tool_results(model.requests[0])
    assert "look before you repeat it" in told


async def test_killed_before_the_first_request_the_session_starts_over(files):
    task.lay_out(files)
    async with agent(files) as (editor, model):
        editor.answers = lambda message, actions: NEVER
        await editor.command("hel.ask", {"prompt": "first"})
        await editor.question()
        await editor.kill()
    async with agent(files, [say("next")]) as (editor, model):
        assert (await editor.command("hel.resume"))["messages"] == []
        editor.answers = ["Don't trust"]
        assert (await editor.command("hel.ask", ASK))["text"] == "next"
    assert roles(model.requests[0]) == ["system", "user"]


async def test_a_result_that_was_kept_in_a_file_can_still_be_read_after_a_resume(files):
    (files / "big.txt").write_text("x" * 45_000)
    shout = call("bash", command="cat big.txt big.txt")
    async with agent(files, [shout, say("done")], options={"access": "auto"}) as (editor, model):
        await editor.command("hel.ask", ASK)
        kept = tool_results(model.requests[1])[0].split("is in ")[1].split(",")[0]
    replies = [call("read_file", path=kept, offset=2), shout, say("done")]
    async with agent(files, replies, options={"access": "auto"}) as (editor, model):
        await editor.command("hel.resume")
        await editor.command("hel.ask", ASK)
    _, read, shouted = tool_results(model.requests[2])
    assert "xxx" in read
    assert kept not in shouted


async def test_a_state_folder_that_takes_nothing_is_told_of_once_and_the_work_goes_on(files, monkeypatch):
    state = files.parent / "workspace-state"
    state.mkdir()
    (state / "sessions").write_text("in the way")
    async with agent(files, [say("one"), say("two")]) as (editor, model):
        assert (await editor.command("hel.ask", ASK))["text"] == "one"
        assert (await editor.command("hel.ask", ASK))["text"] == "two"
        told = [shown.message for shown in editor.messages if "not kept" in shown.message]
    assert len(told) == 1


async def test_the_log_tells_what_was_edited_without_the_text_and_goes_on_after_a_resume(files):
    async with agent(files, [call("search_replace", **FIX), say("done")], options={"access": "auto"}) as (
        editor,
        model,
    ):
        editor.open(files / "a.txt")
        asked = await editor.command("hel.ask", ASK)
    async with agent(files, [say("again")]) as (editor, model):
        await editor.command("hel.resume")
        await editor.command("hel.ask", ASK)
    log = files.parent / "workspace-state" / "logs" / f"{asked['session']}.jsonl"
    (edit,) = [entry for entry in records(log) if entry["kind"] == "edit"]
    assert edit["before"] == hashlib.sha256(b"alpha\n").hexdigest()
    assert edit["after"] == hashlib.sha256(b"omega\n").hexdigest()
    sent = [entry for entry in records(log) if entry["kind"] == "request"]
    assert all(entry["bytes"] > 500 and entry["input_tokens"] == 100 for entry in sent)
    verdict = verify(log.read_bytes(), seals(session_file(files)))
    assert (verdict.problems, verdict.unsealed) == ((), 0)


async def test_what_a_server_is_given_in_secret_does_not_get_into_the_log(files):
    (files / ".hel").mkdir()
    leaky = "import os, sys; print('my', os.environ['GIVEN_TOKEN'], os.environ['PLAIN'], file=sys.stderr); sys.exit(1)"
    variables = {"GIVEN_TOKEN": "wholly-private-1", "PLAIN": "seen-by-all"}
    server = {"command": sys.executable, "args": ["-c", leaky], "env": variables}
    (files / ".hel" / "mcp.json").write_text(json.dumps({"servers": {"leaky": server}}))
    async with agent(files, [say("done")]) as (editor, model):
        editor.answers = ["Trust"]
        asked = await editor.command("hel.ask", ASK)
    log = (files.parent / "workspace-state" / "logs" / f"{asked['session']}.jsonl").read_text()
    assert "seen-by-all" in log
    assert "wholly-private-1" not in log
