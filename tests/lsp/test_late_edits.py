"""Edits that arrive after they were waited for: the result, the run log and `hel.undo` tell what is so in the end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from tests.lsp.agent import records
from tests.lsp.editor import Buffer, Command
from tests.lsp.personalities import CANCELED, GARBAGE, LIAR, NEVER, Reply, applied
from tests.lsp.turns import Turn, Work, at_work, replace, write

HASTY = [
    sys.executable,
    "-c",
    "import sys, hel_lsp.cli, hel_lsp.lsp.edits as edits; "
    "edits.REPLY_TIME = edits.SETTLE_TIME = 0.3; sys.exit(hel_lsp.cli.main())",
]
"""The server with less time for what the editor gets thirty seconds for, and its document one."""

EVENTS = {"hel": {"events": True}}

SAID: dict[str, tuple[Reply, bool | None]] = {
    "applied": (applied(True), None),
    "garbage": (GARBAGE, False),
    "an error": (CANCELED, False),
    "nothing": (NEVER, False),
}
"""What the editor answers to an edit that it makes much later, and what is known of the edit until then."""

said = pytest.mark.parametrize(("reply", "known"), SAID.values(), ids=SAID)


def answers_with(work: Work, reply: Reply) -> None:
    """Have the editor answer edits so, and make none."""

    def on_edit(number: Any, params: Any) -> None:
        work.editor.reply(number, reply)

    work.editor.handlers["workspace/applyEdit"] = on_edit


def in_its_right_mind(work: Work) -> None:
    work.editor.handlers["workspace/applyEdit"] = work.editor._on_edit


async def thinking(work: Work, request: int) -> None:
    """Return when the model has heard of its calls, and the server of all that the editor has sent."""
    await work.model.wait_for_requests(request)
    await work.editor.command("hel.pending")


def script(work: Work, *replies: Any) -> Command:
    """A turn whose model thinks for as long as the test wants before it says that it is done."""
    work.script(*replies)
    work.model.replies[-1] = {"text": "done", "hold": True}
    return work.ask(wait=True)


async def end(work: Work, asked: Command) -> Turn:
    await work.editor.command("hel.pending")
    work.model.release()
    return await work.end_of(asked)


def edits(work: Work) -> list[bool | None]:
    return [event["applied"] for event in work.editor.sent("hel/event") if event["kind"] == "edit"]


async def logged(work: Work) -> list[bool | None]:
    uri = (await work.editor.command("hel.openLog"))["uri"]
    return [entry["applied"] for entry in records(Path(url2pathname(urlsplit(uri).path))) if entry["kind"] == "edit"]


@said
async def test_an_edit_that_arrives_before_the_turn_ends_is_in_its_result_in_the_log_and_can_be_undone(
    reply: Reply, known: bool | None, tmp_path: Path
) -> None:
    # as reported in microsoft/vscode-languageserver-node#1756
    async with at_work(tmp_path, command=HASTY, experimental=EVENTS) as work:
        buffer = work.open("a.txt", b"a\nz\n")
        answers_with(work, reply)
        asked = script(work, replace("a.txt", "a", "b"))
        await thinking(work, 2)
        assert work.told()[0].startswith("Unknown whether" if known is None else "Not applied")
        assert edits(work) == [known]
        work.editor.type(buffer, "typed\n")
        work.editor.replace(buffer, "a", "b")
        turn = await end(work, asked)
        assert turn.edits == [{"uri": buffer.uri, "applied": True, "added": 1, "removed": 1}]
        assert edits(work) == [known, True]
        assert await logged(work) == [known, True]
        in_its_right_mind(work)
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "a\nz\ntyped\n"


@said
async def test_an_edit_that_arrives_after_its_turn_can_be_undone_and_before_that_there_is_nothing_to_undo(
    reply: Reply, known: bool | None, tmp_path: Path
) -> None:
    async with at_work(tmp_path, command=HASTY, experimental=EVENTS) as work:
        buffer = work.open("a.txt", b"a\n")
        answers_with(work, reply)
        turn = await work.turn(replace("a.txt", "a", "b"))
        [edit] = turn.edits
        assert edit["applied"] is False, "in a result it is a boolean"
        assert edit["reason"]
        assert edits(work) == [known], "and in an event null, where nothing is known"
        with pytest.raises(Exception, match="nothing to undo"):
            await work.editor.command("hel.undo")
        work.editor.replace(buffer, "a", "b")
        in_its_right_mind(work)
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "a\n"
        with pytest.raises(Exception, match="nothing to undo"):
            await work.editor.command("hel.undo")


async def test_an_edit_that_has_arrived_when_the_next_one_of_its_file_is_made_is_told_of_then(tmp_path: Path) -> None:
    async with at_work(tmp_path, command=HASTY, experimental=EVENTS) as work:
        buffer = work.open("a.txt", b"a\nb\n")
        answers_with(work, applied(True))
        work.script(replace("a.txt", "a", "A"), replace("a.txt", "b", "B"), replace("a.txt", "A", "C"))
        work.model.replies[1] = {**work.model.replies[1], "hold": True}
        asked = work.ask(wait=True)
        await thinking(work, 2)
        work.editor.replace(buffer, "a", "A")
        in_its_right_mind(work)
        turn = await end(work, asked)
        assert [edit["applied"] for edit in turn.edits] == [True, True, True]
        assert edits(work) == [None, True, True, True]
        assert buffer.text == "C\nB\n"
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "a\nb\n"


async def test_an_edit_that_is_made_again_because_it_did_not_arrive_is_one_edit(tmp_path: Path) -> None:
    async with at_work(tmp_path, command=HASTY, experimental=EVENTS) as work:
        buffer = work.open("a.txt", b"a\n")
        honest, work.editor.personality = work.editor.personality, LIAR

        def grow_honest() -> None:
            if len(work.editor.sent("workspace/applyEdit")) > 1:
                work.editor.personality = honest

        work.editor.before_edit = grow_honest
        turn = await work.turn(replace("a.txt", "a", "b"), replace("a.txt", "a", "b"))
        assert turn.statuses == ["failed", "completed"]
        assert [edit["applied"] for edit in turn.edits] == [False, True]
        assert edits(work) == [None, True]
        work.editor.before_edit = lambda: None
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "a\n"
        with pytest.raises(Exception, match="nothing to undo"):
            await work.editor.command("hel.undo")


async def test_a_file_that_the_editor_shows_late_was_created_by_the_turn(tmp_path: Path) -> None:
    async with at_work(tmp_path, command=HASTY, experimental=EVENTS) as work:
        answers_with(work, applied(True))
        asked = script(work, write("new.txt", "x\n"))
        await thinking(work, 2)
        assert work.told()[0].startswith("Unknown whether the edit of new.txt arrived")
        buffer: Buffer = work.editor.open(work.file("new.txt", b"x\n"))
        turn = await end(work, asked)
        assert turn.edits == [{"uri": buffer.uri, "applied": True, "added": 1, "removed": 0}]
        [kept] = (await work.editor.command("hel.undo"))["kept"]
        assert "created this file" in kept["reason"]


async def test_of_an_edit_that_was_typed_over_before_it_was_seen_nothing_is_known_and_nothing_taken_back(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path, command=HASTY, experimental=EVENTS) as work:
        buffer = work.open("a.txt", b"one\n")
        answers_with(work, applied(True))
        asked = script(work, replace("a.txt", "one", "two words"))
        await thinking(work, 2)
        work.editor.replace(buffer, "one", "my own")
        [edit] = (await end(work, asked)).edits
        assert edit["applied"] is False
        assert edits(work) == [None]
        in_its_right_mind(work)
        [kept] = (await work.editor.command("hel.undo"))["kept"]
        assert (kept["uri"], buffer.text) == (buffer.uri, "my own\n")
        assert "not known whether this edit arrived" in kept["reason"]


async def test_an_undo_that_arrives_late_is_not_made_twice(tmp_path: Path) -> None:
    async with at_work(tmp_path, command=HASTY) as work:
        buffer = work.open("a.txt", b"a\n")
        await work.turn(replace("a.txt", "a", "b"))
        answers_with(work, applied(True))
        [kept] = (await work.editor.command("hel.undo"))["kept"]
        assert "the text has not changed" in kept["reason"]
        work.editor.replace(buffer, "b", "a")
        in_its_right_mind(work)
        with pytest.raises(Exception, match="nothing to undo"):
            await work.editor.command("hel.undo")
        assert buffer.text == "a\n"
