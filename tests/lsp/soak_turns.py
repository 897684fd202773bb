"""The kinds of turns that a soak is made of; each checks what is special about it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psutil
from lsprotocol import types

from hel_lsp.demo.scripted_model import Reply
from tests.lsp.agent import call, calls, say, tool_results
from tests.lsp.editor import Command
from tests.lsp.meeting import Guest
from tests.lsp.personalities import DISMISSED, EMPTY, NEVER, REFUSER, VSCODE, Answer
from tests.lsp.soak import FILES, Soak

ONCE = "Allow once"
DONE = say("done")
SUMMARY = say("## Goal\nto go on\n## Next step\nnone")
FULL = {"prompt_tokens": 120_000, "completion_tokens": 10, "total_tokens": 120_010}


def results(soak: Soak) -> list[str]:
    """The results of calls in the newest request."""
    return tool_results({"messages": soak.last})


async def answers(soak: Soak) -> None:
    result = await soak.turn([{"text": "an answer", "reasoning": "thinking"}])
    assert result["text"] == "an answer"


async def reads(soak: Soak) -> None:
    name = soak.random.choice(FILES)
    wanted = calls(
        ("read_file", {"path": name}),
        ("search_files", {"pattern": "value"}),
        ("read_file", {"path": "gone.txt"}),
        ("list_files", {}),
    )
    await soak.turn([wanted, DONE], statuses="completed completed failed completed")
    read, _, gone, listed = results(soak)[-4:]
    assert read.endswith(soak.texts[name])
    assert "gone.txt" in gone
    assert all(name in listed for name in FILES)


async def broken_calls(soak: Soak) -> None:
    broken = calls(("read_file", soak.random.choice(["{", "5", '{"wrong": 1}'])), ("no_such_tool", {}))
    await soak.turn([broken, DONE], statuses="failed failed")


async def repeats_itself(soak: Soak) -> None:
    result = await soak.turn([calls(("read_file", "{"))] * 3, stop="error", statuses="failed failed failed")
    assert result["error"]["code"] == "repeated_failure"


async def bash(soak: Soak) -> None:
    code = soak.random.choice([0, 0, 3])
    command = call("bash", command=f"echo out; sleep 1000 & exit {code}")
    await soak.turn([command, DONE], [ONCE], statuses="failed" if code else "completed")
    assert f"exit code {code}" in results(soak)[-1]


async def new_session(soak: Soak) -> None:
    await soak.editor.command("hel.newSession")
    soak.session, soak.turns, soak.last = None, 0, []
    await answers(soak)


async def compacts_when_full(soak: Soak) -> None:
    read = {**call("read_file", path="a.txt"), "usage": FULL}
    await soak.check(await soak.ask([read, SUMMARY, DONE], []).result, compacted=True)


async def compacts_when_told(soak: Soak) -> None:
    await answers(soak)
    soak.model.replies += [SUMMARY]
    await soak.editor.command("hel.compact")
    soak.check_requests(compacted=True)
    soak.last = []


# ------------------------------------------------------------------ edits


def edit(soak: Soak) -> tuple[str, str, Reply]:
    """A file, what an edit makes of it, and the call for that."""
    name = soak.random.choice(FILES)
    old, new = soak.texts[name].split("\n")[0], f"value = {soak.done + 1}"
    wanted = call("search_replace", path=name, search=old, replace=new)
    return name, soak.texts[name].replace(old, new, 1), wanted


async def edit_allowed(soak: Soak) -> None:
    name, text, wanted = edit(soak)
    before, soak.texts[name] = soak.texts[name], text
    result = await soak.turn([wanted, DONE], [ONCE], statuses="completed")
    assert [made["applied"] for made in result["edits"]] == [True]
    assert result["unsaved"] == [soak.uri(name)]
    if soak.random.random() < 0.3:
        assert await soak.editor.command("hel.undo") == {"reverted": [soak.uri(name)], "kept": []}
        assert soak.shown(name) == before
        soak.texts[name] = before


async def edit_not_allowed(soak: Soak) -> None:
    answer: Answer = soak.random.choice(["Reject", None, DISMISSED, EMPTY, "allow once"])
    result = await soak.turn([edit(soak)[2], DONE], [answer], statuses="rejected")
    assert result["edits"] == []


async def edit_while_the_user_types(soak: Soak) -> None:
    name, text, wanted = edit(soak)
    editor = soak.editor
    buffer = editor.buffers.get(soak.uri(name)) or editor.open(soak.root / name)

    def typing() -> None:
        editor.before_edit = lambda: None
        editor.type(buffer, "typed\n")

    editor.before_edit = typing
    result = await soak.ask([wanted, DONE], [ONCE]).result
    made = result["edits"][0]["applied"]
    assert buffer.text == (text if made else soak.texts[name]) + "typed\n"
    editor.replace(buffer, "typed\n", "")
    soak.texts[name] = buffer.text
    await soak.check(result)


async def edit_refused_by_the_editor(soak: Soak) -> None:
    soak.editor.personality = REFUSER
    result = await soak.turn([edit(soak)[2], DONE], [ONCE], statuses="failed")
    soak.editor.personality = VSCODE
    assert [told["applied"] for told in result["edits"]] == [False]


# ------------------------------------------------------------------ the MCP server


async def mcp_answers(soak: Soak) -> None:
    await soak.turn([call("mcp__s__echo", said=soak.done), DONE], [ONCE], statuses="completed")
    assert str(soak.done) in results(soak)[-1]


async def mcp_rejected(soak: Soak) -> None:
    await soak.turn([call("mcp__s__echo"), DONE], ["Reject"], statuses="rejected")


async def mcp_misbehaves(soak: Soak) -> None:
    tool, status = soak.random.choice([("error", "failed"), ("noisy", "completed"), ("large", "completed")])
    await soak.turn([call(f"mcp__s__{tool}"), DONE], [ONCE], statuses=status)


async def mcp_crashes(soak: Soak) -> None:
    wanted = calls(("mcp__s__crash", {}), ("mcp__s__echo", {"said": "again"}))
    await soak.turn([wanted, DONE], [ONCE, ONCE], statuses="failed completed")
    assert "exited with status 3 during the call" in results(soak)[-2]
    assert "again" in results(soak)[-1]


# ------------------------------------------------------------------ the provider


async def provider_refuses(soak: Soak) -> None:
    result = await soak.turn([{"status": 401, "body": '{"error": {"message": "bad key 42"}}'}], stop="error")
    assert "bad key 42" in result["error"]["message"]


async def provider_is_busy(soak: Soak) -> None:
    tries = soak.random.randint(1, 5)
    busy = {"status": soak.random.choice([429, 500, 503]), "headers": {"Retry-After": "0"}, "body": "{}"}
    result = await soak.turn([*[busy] * tries, DONE], stop="end_turn" if tries < 5 else "error")
    assert result["text"] == ("done" if tries < 5 else "")


CALL_BEGUN = b'{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash"}}]}}]}'
BROKEN: list[Reply] = [
    {"text": "half", "cut": True},
    {"cut": True},
    {"raw": b"data: " + CALL_BEGUN + b"\n\n", "cut": True},
    {"raw": b"data: " + CALL_BEGUN + b"\n\n"},
    {"raw": b"\x00\xff\xfe garbage \r\n\r\n"},
    {"raw": b'data: {"choices": [{"delta"\n\ndata: [DONE]\n\n'},
    {**call("bash", command="touch ran"), "finish": "length"},
]


async def stream_breaks(soak: Soak) -> None:
    broken = soak.random.choice(BROKEN)
    result = await soak.turn([broken] * 2, stop="max_tokens" if "finish" in broken else "error")
    assert result["text"] == broken.get("text", "")
    assert not (soak.root / "ran").exists()


async def stream_breaks_once(soak: Soak) -> None:
    result = await soak.turn([{"cut": True}, DONE])
    assert result["text"] == "done"


# ------------------------------------------------------------------ turns that do not get to their end


@dataclass(frozen=True)
class UnderWay:
    """A turn in the middle of something, and the guest that keeps it there."""

    running: Command
    guest: Guest | None = None


def kinds_of_events(soak: Soak) -> list[str]:
    """What the editor has heard of the turn, in order."""
    return [event["kind"] for event in soak.editor.sent("hel/event")]


async def guest_of(soak: Soak, running: Command) -> Guest:
    """Who comes to the meeting in this turn."""
    arriving = asyncio.create_task(soak.meeting.arrived())
    await asyncio.wait({arriving, running.result}, return_when=asyncio.FIRST_COMPLETED)
    assert arriving.done(), results(soak)
    return arriving.result()


async def while_streaming(soak: Soak) -> UnderWay:
    running = soak.ask([{"text": "half", "hold": True}], [])
    await soak.editor.wait_for(lambda: "text" in kinds_of_events(soak))
    return UnderWay(running)


async def while_asking(soak: Soak) -> UnderWay:
    running = soak.ask([edit(soak)[2], DONE], lambda message, actions: NEVER)
    await soak.editor.question()
    return UnderWay(running)


async def while_a_command_runs(soak: Soak) -> UnderWay:
    running = soak.ask([call("bash", command=f"sleep 1000 & {soak.command_that_waits}"), DONE], [ONCE])
    return UnderWay(running, await guest_of(soak, running))


async def while_a_server_works(soak: Soak) -> UnderWay:
    running = soak.ask([call("mcp__s__hold"), DONE], [ONCE])
    return UnderWay(running, await guest_of(soak, running))


async def anywhere(soak: Soak) -> UnderWay:
    """After so many of a turn's events; it may have ended by then."""
    name, _, wanted = edit(soak)
    work = calls(("read_file", {"path": name}), ("mcp__s__echo", {}), ("bash", {"command": "sleep 1000 & echo here"}))
    running = soak.ask([work, wanted, DONE], lambda message, actions: ONCE)
    count = soak.random.randint(1, 25)
    await soak.editor.wait_for(lambda: len(seen := kinds_of_events(soak)) >= count or "end" in seen)
    return UnderWay(running)


PLACES = (while_streaming, while_asking, while_a_command_runs, while_a_server_works, anywhere, anywhere)


async def cancelled(soak: Soak) -> None:
    place = soak.random.choice(PLACES)
    soak.doing += f" {place.__name__}"
    under_way = await place(soak)
    questions = list(soak.editor.questions)
    await cancel(soak, under_way)
    await asyncio.wait({under_way.running.result})
    result = await soak.editor.command("hel.wait")
    if under_way.running.result.exception() is None:
        assert under_way.running.result.result() == result
    if under_way.guest is not None and place is while_a_command_runs:
        await under_way.guest.gone()
    elif under_way.guest is not None:
        under_way.guest.let_go()
    for question in questions:
        question.answer(ONCE)
    changed = [soak.uri(name) for name in FILES if soak.shown(name) != soak.texts[name]]
    assert [told["uri"] for told in result["edits"] if told["applied"]] == changed
    assert place is anywhere or (result["stopReason"], changed) == ("cancelled", [])
    soak.texts = {name: soak.shown(name) for name in FILES}
    await soak.check(result)


async def cancel(soak: Soak, under_way: UnderWay) -> None:
    """In one of the ways there are."""
    match soak.random.randrange(3):
        case 0:
            await soak.editor.command("hel.cancel")
        case 1:
            soak.editor.cancel(under_way.running)
        case _:
            token = types.WorkDoneProgressCancelParams(f"token {soak.done}")
            soak.editor.protocol.notify(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, token)


async def killed(soak: Soak) -> None:
    """The process is killed in the middle of a turn, and takes everything along that it had started.

    Outside the sandbox that is what it started itself; nothing tells the children of those.
    """
    place = soak.random.choice(PLACES)
    soak.doing += f" {place.__name__}"
    under_way = await place(soak)
    process = psutil.Process(soak.editor.process.pid)
    descendants, tied = process.children(recursive=True), process.children(recursive=soak.sandboxed)
    await soak.editor.kill()
    _, alive = await asyncio.to_thread(psutil.wait_procs, tied, 10)
    assert alive == []
    for stray in descendants:
        with contextlib.suppress(psutil.NoSuchProcess):
            stray.kill()
    if under_way.guest is not None:
        await under_way.guest.gone()
    soak.check_requests()


KINDS: dict[Callable[[Soak], Awaitable[None]], int] = {
    answers: 6,
    reads: 6,
    broken_calls: 2,
    repeats_itself: 1,
    bash: 4,
    new_session: 1,
    compacts_when_full: 1,
    compacts_when_told: 1,
    edit_allowed: 8,
    edit_not_allowed: 4,
    edit_while_the_user_types: 2,
    edit_refused_by_the_editor: 1,
    mcp_answers: 6,
    mcp_rejected: 2,
    mcp_misbehaves: 3,
    mcp_crashes: 2,
    provider_refuses: 2,
    provider_is_busy: 3,
    stream_breaks: 4,
    stream_breaks_once: 2,
    cancelled: 16,
}
"""How often each kind is played, beside the others."""
