"""`hel.cancel` in every state of a turn: it has ended when the answer comes, and what was sent is still told of."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from hel_lsp.agent import agent as agents
from hel_lsp.lsp import edits
from tests.lsp.agent import agent, call
from tests.lsp.editor import Command, Editor
from tests.lsp.meeting import Guest, Meeting
from tests.lsp.personalities import NEVER, Reply, applied
from tests.lsp.test_hooks import hook
from tests.lsp.turns import Work, at_work, replace
from tests.mcp.workspace import scripted

TRIES = 3
"""A machine that does nothing else for a second makes one of them fail, and a turn that takes a second all of them."""

OPTIONS = {"access": "auto", "tools": {"bash": {"sandbox": "off"}}}
EDIT = call("search_replace", path="a.txt", search="alpha", replace="omega")


@dataclass
class Place:
    """An editor at work, and a meeting for the processes that its server starts."""

    editor: Editor
    model: Any
    folder: Path
    meeting: Meeting
    guests: list[Guest] = field(default_factory=list)

    async def arrived(self) -> None:
        """Return when a process has come to the meeting."""
        async with asyncio.timeout(20):
            self.guests.append(await self.meeting.arrived())

    def ask(self, *replies: Any, **more: Any) -> Command:
        self.model.replies += replies
        return self.editor.start_command("hel.ask", {"prompt": "go", **more})

    async def sent(self, method: str) -> None:
        await self.editor.wait_for(lambda: self.editor.sent(method))

    def unanswered(self, method: str) -> None:
        self.editor.handlers[method] = lambda number, params: None

    def declare(self, **servers: Any) -> None:
        (self.folder / ".hel").mkdir()
        (self.folder / ".hel" / "mcp.json").write_text(json.dumps({"servers": servers}))


async def streaming(place: Place) -> None:
    place.ask({"text": "half an", "hold": True})
    await place.model.wait_for_requests(1)


async def in_a_back_off(place: Place) -> None:
    place.ask({"status": 429, "headers": {"Retry-After": "50"}, "body": "{}"})
    await place.editor.wait_for(lambda: "notice" in kinds(place.editor))


async def starting_a_server(place: Place) -> None:
    command, *arguments = place.meeting.command(place.folder).split()
    place.declare(s={"command": command, "args": arguments})
    place.ask()
    await place.arrived()


async def at_a_server(place: Place) -> None:
    place.declare(s={**scripted(calls={"echo": [{"meet": place.meeting.port}]}), "alwaysLoad": True})
    place.ask(call("mcp__s__echo"))
    await place.arrived()


async def at_a_question_of_trust(place: Place) -> None:
    place.editor.answers = lambda message, actions: NEVER
    hook(place.folder, PreToolUse="true")
    place.ask()
    await place.editor.question()


async def at_a_question(place: Place) -> None:
    place.editor.answers = lambda message, actions: NEVER
    place.ask(EDIT, access="confirm")
    await place.editor.question()


async def showing_what_is_asked_about(place: Place) -> None:
    place.unanswered("window/showDocument")
    place.ask(call("write_file", path="new.txt", content="x\n" * 1000), access="confirm")
    await place.sent("window/showDocument")


async def at_the_editor(place: Place) -> None:
    place.unanswered("workspace/applyEdit")
    place.ask(EDIT)
    await place.sent("workspace/applyEdit")


async def looking_for_what_the_editor_says_it_made(place: Place) -> None:
    place.editor.handlers["workspace/applyEdit"] = lambda number, params: applied(True)
    place.ask(EDIT)
    await place.sent("workspace/applyEdit")


async def at_the_editor_with_a_hook_to_come(place: Place) -> None:
    hook(place.folder, PostToolUse="sleep 1000")
    await at_the_editor(place)


async def running_a_command_that_ignores_signals(place: Place) -> None:
    command = place.meeting.command(place.folder)
    place.ask(call("bash", command=f"trap '' TERM INT HUP; {command}; while :; do sleep 1; done"))
    await place.arrived()


async def in_a_hook_before_a_call(place: Place) -> None:
    hook(place.folder, PreToolUse=place.meeting.command(place.folder))
    place.ask(EDIT)
    await place.arrived()


async def in_a_hook_after_a_call(place: Place) -> None:
    hook(place.folder, PostToolUse=place.meeting.command(place.folder))
    place.ask(EDIT)
    await place.arrived()


STATES: list[Callable[[Place], Awaitable[None]]] = [
    streaming,
    in_a_back_off,
    starting_a_server,
    at_a_server,
    at_a_question_of_trust,
    at_a_question,
    showing_what_is_asked_about,
    at_the_editor,
    looking_for_what_the_editor_says_it_made,
    at_the_editor_with_a_hook_to_come,
    running_a_command_that_ignores_signals,
    in_a_hook_before_a_call,
    in_a_hook_after_a_call,
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
async def test_the_turn_has_ended_when_a_cancel_is_answered(
    state: Callable[[Place], Awaitable[None]], tmp_path: Path
) -> None:
    # as reported in kirodotdev/Kiro#1613, just-every/code#496, tessro/fab#210
    for number in range(TRIES):
        if await ends_before_the_answer(state, tmp_path.resolve() / str(number)):
            return
    pytest.fail("the turn went on each time")


async def ends_before_the_answer(state: Callable[[Place], Awaitable[None]], folder: Path) -> bool:
    folder.mkdir()
    (folder / "a.txt").write_text("alpha\n")
    events = {"hel": {"events": True}}
    async with Meeting() as meeting, agent(folder, options=OPTIONS, experimental=events) as (editor, model):
        editor.answers = lambda message, actions: "Trust" if "Trust" in actions else "Allow once"
        editor.open(folder / "a.txt")
        place = Place(editor, model, folder, meeting)
        await state(place)
        cancel = editor.start_command("hel.cancel")
        assert await cancel.result == {"cancelled": True}
        is_first = kinds(editor, before=cancel)[-1:] == ["end"]
        if is_first:
            assert (await editor.command("hel.wait"))["stopReason"] == "cancelled"
        for guest in place.guests:
            guest.let_go()
        return is_first


def kinds(editor: Editor, before: Command | None = None) -> list[str]:
    """The kinds of all events so far, or up to the answer to a command."""
    received = editor.received
    if before is not None:
        [index] = [k for k, message in enumerate(received) if message.get("id") == before.id]
        received = received[:index]
    return [message["params"]["kind"] for message in received if message.get("method") == "hel/event"]


def test_a_cancel_is_answered_within_a_second_which_a_last_look_at_an_edit_leaves_time_for() -> None:
    assert edits.LAST_LOOK < agents.CANCEL_WAIT == 1.0


# -------------------------------------------------------------------- cancel upon cancel

PATIENT = [
    sys.executable,
    "-c",
    "import sys, hel_lsp.cli, hel_lsp.agent.agent as agent, hel_lsp.lsp.edits as edits; "
    "agent.CANCEL_WAIT = edits.LAST_LOOK = 30.0; sys.exit(hel_lsp.cli.main())",
]
"""The server with all the time in the world for what is sent, so that the test decides when it comes."""


def by_command(work: Work, asked: Command) -> None:
    work.editor.start_command("hel.cancel", {})


def by_progress(work: Work, asked: Command) -> None:
    work.editor.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams("token"))


def by_request(work: Work, asked: Command) -> None:
    work.editor.cancel(asked)


WAYS = [by_command, by_progress, by_request]


@pytest.mark.parametrize("again", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("first", WAYS, ids=lambda way: way.__name__)
async def test_however_often_it_is_cancelled_an_edit_that_was_sent_is_reported_and_can_be_undone(
    first: Callable[[Work, Command], None], again: Callable[[Work, Command], None], tmp_path: Path
) -> None:
    async with at_work(tmp_path, command=PATIENT) as work:
        buffer = work.open("a.txt", b"a\n")
        work.editor.handlers["workspace/applyEdit"] = lambda number, params: None
        work.script([replace("a.txt", "a", "b"), replace("a.txt", "b", "c")])
        asked = work.editor.start_command("hel.ask", {"prompt": "go on", "wait": True}, token="token")
        await work.editor.wait_for(lambda: work.editor.sent("workspace/applyEdit"))
        for way in (first, again, again):
            way(work, asked)
            await work.editor.command("hel.pending")  # the cancel has reached the turn
        work.editor.replace(buffer, "a", "b")
        result = await work.editor.command("hel.wait")
        assert result["stopReason"] == "cancelled"
        assert result["edits"] == [{"uri": buffer.uri, "applied": True, "added": 1, "removed": 1}]
        assert [made["status"] for made in result["toolCalls"]] == ["completed", "cancelled"]
        assert len(work.editor.sent("workspace/applyEdit")) == 1
        work.editor.handlers["workspace/applyEdit"] = work.editor._on_edit
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "a\n"
        if asked.result.done():
            asked.result.exception()


# -------------------------------------------------------------------- between the reply and the edit


async def test_a_cancel_between_the_end_of_the_reply_and_the_edit_sends_nothing(tmp_path: Path) -> None:
    # as reported in kirodotdev/Kiro#1613, just-every/code#496, tessro/fab#210
    async with at_work(tmp_path) as work, Meeting() as meeting:
        buffer = work.open("a.txt", b"a\n")
        hook(work.folder, PreToolUse=("search_replace", meeting.command(tmp_path)))
        work.editor.answers = ["Trust"]
        work.script([replace("a.txt", "a", "b"), replace("a.txt", "a", "c")])
        asked = work.ask(wait=True)
        guest = await meeting.arrived()
        await work.editor.command("hel.cancel")
        result = await asked.result
        await guest.gone()
        assert (result["stopReason"], result["edits"]) == ("cancelled", [])
        assert [made["status"] for made in result["toolCalls"]] == ["cancelled", "cancelled"]
        assert work.editor.sent("workspace/applyEdit") == []
        assert buffer.text == "a\n"


async def test_a_cancel_while_an_edit_waits_for_that_of_another_session_sends_nothing(tmp_path: Path) -> None:
    async with at_work(tmp_path, experimental={"hel": {"events": True}}) as work:
        buffer = work.open("a.txt", b"a b\n")
        numbers: list[Any] = []
        work.editor.handlers["workspace/applyEdit"] = lambda number, params: numbers.append(number)
        work.model.replies += [
            {"tool_calls": [replace("a.txt", "a", "1")]},
            {"tool_calls": [replace("a.txt", "b", "2")]},
        ]
        first, second = [await work.editor.command("hel.newSession", {}) for _ in range(2)]
        one = work.ask(wait=True, **first)
        await work.editor.wait_for(lambda: numbers)
        other = work.ask(wait=True, **second)
        await work.editor.wait_for(lambda: running(work, second["session"]))
        await work.editor.command("hel.cancel", second)
        assert (await other.result)["edits"] == []
        work.model.replies.append({"text": "done"})
        work.editor.replace(buffer, "a", "1")
        work.editor.reply(numbers[0], applied(True))
        assert (await one.result)["edits"][0]["applied"] is True
        assert len(numbers) == 1
        assert buffer.text == "1 b\n"


def running(work: Work, session: str) -> bool:
    events = [event for event in work.editor.sent("hel/event") if event["session"] == session]
    return any(event.get("status") == "running" for event in events)


STEADY = [*PATIENT[:-1], PATIENT[-1].replace("= edits.LAST_LOOK = 30.0", "= edits.SETTLE_TIME = 30.0")]
"""The server that looks for an edit for as long as it takes, until the cancel comes."""


async def test_an_edit_that_was_refused_is_not_sent_again_after_a_cancel(tmp_path: Path) -> None:
    async with at_work(tmp_path, command=STEADY) as work:
        work.open("a.txt", b"a\n")
        work.editor.handlers["workspace/applyEdit"] = lambda number, params: applied(False, failureReason="read only")
        work.script(replace("a.txt", "a", "b"))
        asked = work.ask(wait=True)
        await work.editor.wait_for(lambda: work.editor.sent("workspace/applyEdit"))
        await work.editor.command("hel.cancel")
        [edit] = (await asked.result)["edits"]
        assert edit["applied"] is False
        assert "the editor refused it: read only" in edit["reason"], "it had answered before the cancel"
        assert len(work.editor.sent("workspace/applyEdit")) == 1


@pytest.mark.parametrize("after_the_reply", [False, True], ids=["before its reply", "after its reply"])
@pytest.mark.parametrize("moment", [1, 2, 3])
async def test_no_edit_is_sent_after_a_cancel_and_each_that_was_is_in_the_result(
    moment: int, after_the_reply: bool, tmp_path: Path
) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"0\n")
        cancels: list[Command] = []

        def on_edit(number: Any, params: Any) -> Reply | None:
            is_time = len(work.editor.sent("workspace/applyEdit")) == moment
            if is_time and not after_the_reply:
                cancels.append(work.editor.start_command("hel.cancel", {}))
            work.editor._on_edit(number, params)
            if is_time and after_the_reply:
                cancels.append(work.editor.start_command("hel.cancel", {}))
            return None

        work.editor.handlers["workspace/applyEdit"] = on_edit
        work.script([replace("a.txt", str(number), str(number + 1)) for number in range(9)])
        result = await work.ask(wait=True).result
        assert await cancels[0].result == {"cancelled": True}
        sent = work.editor.sent("workspace/applyEdit")
        assert result["stopReason"] == "cancelled"
        assert [edit["applied"] for edit in result["edits"]] == [True] * len(sent)
        # What was on its way when the cancel arrived may still come.
        assert moment <= len(sent) <= moment + after_the_reply
        assert buffer.text == f"{len(sent)}\n"
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "0\n"
