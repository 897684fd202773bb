"""Questions that are dismissed, edits that are never answered, turns that are cancelled: nothing runs unwanted."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hel_lsp.lsp import edits
from tests.lsp.personalities import (
    CANCELED,
    DISMISSED,
    EMPTY,
    GARBAGE,
    KATE,
    MALFORMED_ERROR,
    NEVER,
    OMITTED,
    SHY,
    SILENT,
    VSCODE,
    Answer,
    Personality,
    Reply,
    applied,
)
from tests.lsp.turns import Work, at_work, call, read, replace, write

HASTY = [
    sys.executable,
    "-c",
    "import sys, hel_lsp.cli, hel_lsp.lsp.edits as edits; edits.REPLY_TIME = 1.0; sys.exit(hel_lsp.cli.main())",
]
"""The server with one second for what the editor gets thirty for."""


def title(value: Any) -> Reply:
    return Reply({"result": {"title": value}})


NOES: dict[str, Answer] = {
    # as reported in microsoft/language-server-protocol#230, sublimelsp/LSP#484 and #1915,
    # microsoft/vscode-languageserver-node#1501
    "null": DISMISSED,
    "{}": EMPTY,
    "no result": OMITTED,
    "canceled": CANCELED,
    "a malformed error": MALFORMED_ERROR,
    "garbage": GARBAGE,
    "its first action": "Reject",
    "a title that is nearly right": "allow once",
    "a blank behind it": "Allow once ",
    "an unknown title": "Allow",
    "an empty title": title(""),
    "a title of null": title(None),
    "a title that is a number": title(1),
    "a list": Reply({"result": ["Allow once"]}),
    "a text": Reply({"result": "Allow once"}),
    "true": Reply({"result": True}),
    "an error beside an answer": Reply({"result": {"title": "Allow once"}, "error": {"code": -1, "message": "no"}}),
}


async def test_only_the_exact_title_allows_and_after_every_other_answer_the_turn_goes_on(tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        buffer = work.open("a.txt", b"a\n")
        for name, answer in NOES.items():
            work.editor.answers = [answer]
            turn = await work.turn(replace("a.txt", "a", "b"))
            assert turn.statuses == ["rejected"], name
            assert turn.told == ["Rejected: the user did not allow this call. Nothing was changed."], name
            assert turn.result["stopReason"] == "end_turn", name
        assert work.editor.sent("workspace/applyEdit") == []
        assert buffer.text == "a\n"
        messages = [question.message for question in work.editor.questions]
        assert len(set(messages)) == len(NOES), "an editor may take an equal question for the same one"
        work.editor.answers = ["Allow once"]
        turn = await work.turn(replace("a.txt", "a", "b"))
        assert turn.result["toolCalls"] == [{"name": "search_replace", "status": "completed", "decision": "allow_once"}]
        assert work.saved(buffer) == b"b\n"


async def test_the_question_shows_every_changed_line_whatever_it_begins_with(tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        work.open("a.sql", b"-- one\n++two\nthree\n")
        await work.turn(replace("a.sql", "-- one\n++two\n", "-- 1\n++2\x0c-x\n"))
        [question] = work.editor.questions
        assert question.message.split(" ⏎ ") == [
            "search_replace: edit a.sql (+2 −2)",
            "--- one",
            "-++two",
            "+-- 1",
            "+++2\\x0c-x",
        ]
        assert question.actions == ["Reject", "Allow once", "Allow for session", "Always allow"]


async def test_a_grant_for_the_session_asks_no_more_and_another_session_does(tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        buffer = work.open("a.txt", b"a\n")
        work.editor.answers = ["Allow for session"]
        turn = await work.turn(replace("a.txt", "a", "b"), replace("a.txt", "b", "c"))
        assert turn.statuses == ["completed", "completed"]
        await work.editor.command("hel.newSession", {})
        turn = await work.turn(replace("a.txt", "c", "d"))
        assert turn.statuses == ["rejected"]
        assert buffer.text == "c\n"


async def test_a_question_whose_popup_was_lost_is_answered_by_a_command_and_a_late_reply_is_ignored(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        buffer = work.open("a.txt", b"a\n")
        work.editor.answers = [NEVER]
        work.script(replace("a.txt", "a", "b"))
        asked = work.ask(wait=True)
        question = await work.editor.question()
        [pending] = await work.editor.command("hel.pending", {})
        assert pending["message"] == question.message
        refused = await work.editor.command("hel.answer", {"id": pending["id"], "action": "Allow"})
        assert refused == {"accepted": False}
        accepted = await work.editor.command("hel.answer", {"id": pending["id"], "action": "Reject"})
        assert accepted == {"accepted": True}
        question.answer("Allow once")
        turn = await work.end_of(asked)
        assert turn.statuses == ["rejected"]
        assert buffer.text == "a\n"
        assert await work.editor.command("hel.pending", {}) == []


@pytest.mark.parametrize("action", ["Allow once", "Reject"])
@pytest.mark.parametrize("diff", [False, True], ids=["alone", "with a diff"])
async def test_a_question_that_is_answered_while_its_document_is_being_shown_is_not_put_any_more(
    diff: bool, action: str, tmp_path: Path
) -> None:
    async with at_work(tmp_path, access="confirm", experimental={"hel": {"diff": diff}}) as work:
        buffer = work.open("a.txt", b"x\n" * 200)
        work.editor.handlers["window/showDocument"] = lambda number, params: None  # the editor is still at it
        work.script(write("a.txt", "y\n" * 200), write("b.txt", "z\n"))
        work.editor.answers = ["Reject"]
        asked = work.ask(wait=True)
        await work.editor.wait_for(lambda: work.editor.sent("window/showDocument"))
        [pending] = await work.editor.command("hel.pending", {})
        assert await work.editor.command("hel.answer", {"id": pending["id"], "action": action}) == {"accepted": True}
        turn = await work.end_of(asked)
        assert turn.statuses == ["completed" if action == "Allow once" else "rejected", "rejected"]
        assert buffer.text == ("y\n" if action == "Allow once" else "x\n") * 200
        [question] = work.editor.questions
        assert "b.txt" in question.message
        shown = [diff["uri"] for diff in work.editor.sent("hel/showDiff")]
        assert shown == ([(work.folder / "b.txt").as_uri()] if diff else []), "nor is its diff shown"


async def test_questions_of_two_sessions_are_asked_one_after_the_other(tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        buffer = work.open("a.txt", b"one two\n")
        work.editor.answers = [NEVER, NEVER]
        work.model.replies += [
            {"tool_calls": [replace("a.txt", "one", "1")]},
            {"tool_calls": [replace("a.txt", "two", "2")]},
            {"text": "done"},
            {"text": "done"},
        ]
        names = [(await work.editor.command("hel.newSession", {}))["session"] for _ in range(2)]
        asked = [work.ask(wait=True, session=name) for name in names]
        first = await work.editor.question()
        while len(await work.editor.command("hel.pending", {})) < 2:
            pass
        assert len(work.editor.questions) == 1
        first.answer("Allow once")
        (await work.editor.question(1)).answer("Allow once")
        for one in asked:
            assert (await one.result)["toolCalls"][0]["status"] == "completed"
        assert buffer.text == "1 2\n"


# -------------------------------------------------------------------- an editor that does not answer


async def test_a_command_is_answered_before_anything_is_asked_of_the_editor(tmp_path: Path) -> None:
    # as reported in atusy/kakehashi#71 and #72: a client that answers nothing while its own request is open
    async with at_work(tmp_path, access="confirm") as work:
        buffer = work.open("a.txt", b"a\n")
        work.editor.answers = [NEVER]
        work.script(replace("a.txt", "a", "b"))
        asked = await work.ask().result
        assert set(asked) == {"session", "turn"}
        (await work.editor.question()).answer("Allow once")
        result = await work.editor.command("hel.wait", {})
        assert result["edits"][0]["applied"]
        assert work.saved(buffer) == b"b\n"


def test_the_editor_gets_thirty_seconds_to_answer_an_edit() -> None:
    assert edits.REPLY_TIME == 30.0


@pytest.mark.parametrize("personality", [SILENT, SHY], ids=["does nothing", "does it"])
async def test_an_edit_that_is_never_answered_ends_in_time_and_holds_up_nothing(
    personality: Personality, tmp_path: Path
) -> None:
    # as reported in dense-analysis/ale#4670, bug-ops/deps-lsp#496
    async with at_work(tmp_path, personality, command=HASTY) as work:
        buffer = work.open("a.txt", b"a\n")
        work.script([replace("a.txt", "a", "b"), read("a.txt")])
        asked = work.ask(wait=True)
        await work.editor.wait_for(lambda: work.editor.sent("workspace/applyEdit"))
        assert await work.editor.command("hel.pending", {}) == []
        turn = await work.end_of(asked)
        assert len(work.editor.sent("workspace/applyEdit")) == 1
        if personality is SHY:
            assert turn.statuses == ["completed", "completed"]
            assert work.saved(buffer) == b"b\n"
        else:
            assert turn.statuses == ["failed", "completed"]
            assert turn.told[0].startswith("Not applied to a.txt: workspace/applyEdit: no reply within 1 s")
            assert turn.told[1].endswith("\na\n")
            assert buffer.text == "a\n"
        assert (await work.turn(read("a.txt"))).statuses == ["completed"]


# -------------------------------------------------------------------- cancel


def results(work: Work) -> Sequence[str]:
    """What stands in the last request about the calls of its first reply; each call has exactly one result."""
    messages = work.model.requests[-1]["messages"]
    wanted = [made["id"] for message in messages for made in message.get("tool_calls", [])]
    given = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    assert sorted(given) == sorted(wanted)
    assert len([message for message in messages if message["role"] == "tool"]) == len(wanted)
    return [given[name] for name in wanted]


async def cancel(work: Work) -> float:
    began = time.monotonic()
    assert await work.editor.command("hel.cancel", {}) == {"cancelled": True}
    return time.monotonic() - began


async def test_a_cancel_during_an_approval_sends_nothing_even_when_it_is_allowed_later(tmp_path: Path) -> None:
    # as reported in kirodotdev/Kiro#1613, just-every/code#496, tessro/fab#210
    async with at_work(tmp_path, access="confirm") as work:
        buffer = work.open("a.txt", b"a\n")
        work.editor.answers = [NEVER, "Allow once"]
        work.script([replace("a.txt", "a", "b"), write("b.txt", "x\n")])
        asked = work.ask(wait=True)
        question = await work.editor.question()
        await cancel(work)
        result = await asked.result
        assert result["stopReason"] == "cancelled"
        assert [made["status"] for made in result["toolCalls"]] == ["cancelled", "cancelled"]
        question.answer("Allow once")
        work.model.replies.pop()
        assert (await work.turn()).result["stopReason"] == "end_turn"
        assert work.editor.sent("workspace/applyEdit") == []
        assert buffer.text == "a\n"
        assert results(work) == ["Cancelled by the user."] * 2


async def test_a_cancel_between_the_calls_of_a_reply_keeps_what_was_done_and_starts_no_more(tmp_path: Path) -> None:
    # as reported in lvndry/jazz#432
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\nx\n")
        work.editor.handlers["workspace/applyEdit"] = lambda number, params: None  # answered by nobody
        work.script([replace("a.txt", "a", "b"), replace("a.txt", "x", "y"), call("read_file", path="a.txt")])
        asked = work.ask(wait=True)
        await work.editor.wait_for(lambda: work.editor.sent("workspace/applyEdit"))
        cancelling = asyncio.create_task(cancel(work))
        work.editor.replace(buffer, "a", "b")  # it is done while the cancel is on its way
        assert await cancelling < 5
        result = await asked.result
        assert result["stopReason"] == "cancelled"
        assert [made["status"] for made in result["toolCalls"]] == ["completed", "cancelled", "cancelled"]
        assert result["edits"][0]["applied"] is True
        assert len(work.editor.sent("workspace/applyEdit")) == 1
        work.model.replies.pop()
        assert (await work.turn()).result["stopReason"] == "end_turn"
        first, *others = results(work)
        assert first.startswith("Applied to a.txt")
        assert others == ["Cancelled by the user."] * 2
        work.editor.handlers["workspace/applyEdit"] = work.editor._on_edit
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "a\nx\n"


async def test_an_edit_that_arrives_after_its_turn_was_cancelled_is_known_to_undo(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\n")
        numbers: list[Any] = []
        work.editor.handlers["workspace/applyEdit"] = lambda number, params: numbers.append(number)
        work.script(replace("a.txt", "a", "b"))
        asked = work.ask(wait=True)
        await work.editor.wait_for(lambda: numbers)
        await cancel(work)
        result = await asked.result
        assert result["edits"][0]["applied"] is False
        assert "cancelled before the editor had answered" in result["edits"][0]["reason"]
        work.editor.replace(buffer, "a", "b")
        work.editor.reply(numbers[0], applied(True))
        work.editor.handlers["workspace/applyEdit"] = work.editor._on_edit  # an editor in its right mind again
        undone = await work.editor.command("hel.undo")
        assert undone == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "a\n"


# -------------------------------------------------------------------- what a plugin offers on top


def order(work: Work, *methods: str) -> list[str]:
    return [message["method"] for message in work.editor.received if message.get("method") in methods]


@pytest.mark.parametrize("answer", ["Allow once", None, CANCELED], ids=["allowed", "dismissed", "error"])
async def test_a_diff_is_shown_before_the_question_and_closed_after_it(answer: Answer, tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm", experimental={"hel": {"diff": True}}) as work:
        path = work.file("real/a.txt", b"a\nb\n")
        (work.folder / "link").symlink_to("real", target_is_directory=True)
        buffer = work.editor.open(work.folder / "link" / "a.txt")
        work.editor.type(buffer, "typed\n")
        work.editor.answers = [answer]
        await work.turn(replace("real/a.txt", "a", "A"))
        [shown], [closed] = work.editor.sent("hel/showDiff"), work.editor.sent("hel/closeDiff")
        assert shown["uri"] == closed["uri"] == buffer.uri != path.as_uri()
        assert (shown["before"], shown["after"]) == ("a\nb\ntyped\n", "A\nb\ntyped\n")
        assert "a.txt" in shown["title"]
        allowed = ["workspace/applyEdit"] if answer == "Allow once" else []
        methods = ("hel/showDiff", "hel/closeDiff", "window/showMessageRequest", "workspace/applyEdit")
        assert order(work, *methods) == ["hel/showDiff", "window/showMessageRequest", "hel/closeDiff", *allowed]


async def test_a_diff_is_closed_when_the_turn_is_cancelled(tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm", experimental={"hel": {"diff": True}}) as work:
        work.open("a.txt", b"a\n")
        work.editor.answers = [NEVER]
        work.script(replace("a.txt", "a", "b"))
        asked = work.ask(wait=True)
        await work.editor.question()
        await cancel(work)
        await asked.result
        assert order(work, "hel/showDiff", "hel/closeDiff") == ["hel/showDiff", "hel/closeDiff"]


async def test_without_a_diff_a_long_change_is_shown_whole_before_the_question(tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        work.open("a.txt", b"x\n" * 200)
        work.editor.handlers["window/showDocument"] = lambda number, params: Reply({"result": {"success": True}})
        await work.turn(write("a.txt", "y\n" * 200))
        assert work.editor.sent("hel/showDiff") == []
        assert order(work, "window/showDocument", "window/showMessageRequest")[:2] == [
            "window/showDocument",
            "window/showMessageRequest",
        ]
        assert len(work.editor.questions[0].message) <= 900
        shown = Path(work.editor.sent("window/showDocument")[0]["uri"].removeprefix("file://")).read_text()
        assert shown.count("\n-x") == shown.count("\n+y") == 200


async def test_an_editor_that_shows_no_documents_gets_the_name_of_a_file_with_the_whole_change(tmp_path: Path) -> None:
    async with at_work(tmp_path, KATE, access="confirm") as work:
        work.open("a.txt", b"x\n" * 200)
        await work.turn(write("a.txt", "y\n" * 200))
        message = work.editor.questions[0].message
        assert len(message) <= 900
        file = Path(message.split("(in full: ")[1].removesuffix(")"))
        assert file.read_text().count("\n+y") == 200


@pytest.mark.parametrize("saves", [True, False], ids=["saves", "saves nothing"])
async def test_an_editor_that_offers_to_save_is_asked_to(saves: bool, tmp_path: Path) -> None:
    async with at_work(tmp_path, experimental={"hel": {"editorTools": ["save"]}}) as work:
        buffer = work.open("a.txt", b"a\n")
        work.file("b.txt", b"b\n")

        def save(number: Any, params: Any) -> Reply:
            if saves:
                work.editor.save(buffer)
            return Reply({"result": {"saved": [buffer.uri] if saves else []}})

        work.editor.handlers["hel/save"] = save
        turn = await work.turn(
            [replace("a.txt", "a", "b"), call("load_mcp_tool", names=["editor__save"])],
            call("editor__save", paths=["a.txt", "b.txt"]),
        )
        [asked] = work.editor.sent("hel/save")
        assert asked == {"uris": [buffer.uri]}
        assert turn.statuses == ["completed", "completed", "completed" if saves else "failed"]
        assert f"a.txt: {'saved' if saves else 'not saved'}" in turn.told[-1]
        assert "b.txt: not open" in turn.told[-1]
        assert turn.unsaved == ([] if saves else [buffer.uri])
        assert buffer.path is not None
        assert buffer.path.read_bytes() == (b"b\n" if saves else b"a\n")


async def test_an_editor_that_offers_nothing_is_not_asked_to_save_and_the_unsaved_files_are_named(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path, VSCODE) as work:
        buffer = work.open("a.txt", b"a\n")
        turn = await work.turn(replace("a.txt", "a", "b"), call("editor__save", paths=["a.txt"]))
        assert turn.statuses == ["completed", "failed"]
        assert work.editor.sent("hel/save") == []
        assert turn.unsaved == [buffer.uri]
