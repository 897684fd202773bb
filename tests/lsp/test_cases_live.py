"""Buffers that people are working in: unsaved, stale, two at once, untitled; and where exactly an edit is put."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.editor import Buffer
from tests.lsp.personalities import (
    EDITORS,
    EGLOT,
    HELIX,
    KATE,
    LIAR,
    LINE_ENDS,
    NEOVIM,
    NEVER,
    VSCODE,
    ZED,
    Personality,
    Reply,
)
from tests.lsp.turns import Work, at_work, read, replace, write

encodings = pytest.mark.parametrize("personality", [NEOVIM, VSCODE, EGLOT], ids=["utf-8", "utf-16", "utf-32"])


def sent(work: Work) -> list[dict[str, Any]]:
    """The changes of all edits that have been sent; each must have come alone, in one form."""
    changes: list[dict[str, Any]] = []
    for params in work.editor.sent("workspace/applyEdit"):
        [form] = params["edit"]
        assert form in ("changes", "documentChanges")
        changes += params["edit"].get("documentChanges", [])
    return changes


def span(change: dict[str, Any]) -> tuple[int, int, int, int, str]:
    [edit] = change["edits"]
    start, end = edit["range"]["start"], edit["range"]["end"]
    return start["line"], start["character"], end["line"], end["character"], edit["newText"]


# -------------------------------------------------------------------- unsaved and untitled


@pytest.mark.parametrize("personality", EDITORS, ids=lambda personality: personality.name)
async def test_unsaved_text_is_what_is_matched_and_the_disk_is_left_alone(
    personality: Personality, tmp_path: Path
) -> None:
    # as reported in microsoft/vscode#326041, zed-industries/zed#55655
    async with at_work(tmp_path, personality) as work:
        buffer = work.open("a.txt", b"port=1\n")
        work.editor.type(buffer, "host=unsaved\n")
        turn = await work.turn([replace("a.txt", "host=unsaved", "host=b"), read("a.txt")])
        assert turn.statuses == ["completed", "completed"]
        assert "port=1\nhost=b\n" in turn.told[1]
        assert buffer.text == "port=1\nhost=b\n"
        assert buffer.path is not None
        assert buffer.path.read_bytes() == b"port=1\n"
        assert turn.unsaved == [buffer.uri]
        work.editor.undo(buffer)
        assert buffer.text == "port=1\nhost=unsaved\n"


async def test_a_document_without_a_file_is_read_edited_and_undone_in_the_editor(tmp_path: Path) -> None:
    # as reported in microsoft/vscode#326041
    async with at_work(tmp_path) as work:
        name = "untitled:Untitled-1"
        buffer = work.editor.open_untitled(name, "😀 draft\n")
        turn = await work.turn([read(name), replace(name, "draft", "text")], textDocument={"uri": name})
        assert turn.statuses == ["completed", "completed"]
        assert name in work.model.requests[0]["messages"][1]["content"]
        assert "😀 draft" in turn.told[0]
        assert buffer.text == "😀 text\n"
        assert turn.unsaved == [name]
        assert list(work.folder.iterdir()) == []
        undone = await work.editor.command("hel.undo")
        assert undone == {"reverted": [name], "kept": []}
        assert buffer.text == "😀 draft\n"
        work.editor.close(buffer)
        turn = await work.turn(replace(name, "draft", "text"))
        assert turn.statuses == ["failed"]
        assert list(work.folder.iterdir()) == []


async def test_what_was_typed_right_before_a_command_is_what_the_command_sees(tmp_path: Path) -> None:
    # as reported in palantir/python-language-server#793
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"old\n")
        for number in range(5):
            work.script(read("a.txt"))
            work.editor.replace(buffer, "old" if not number else f"new {number - 1}", f"new {number}")
            turn = await work.end_of(work.ask(wait=True, textDocument={"uri": buffer.uri}))
            assert turn.told[0].endswith(f"\nnew {number}\n")


# -------------------------------------------------------------------- while a question is out


async def test_an_approval_holds_while_the_quoted_text_still_stands_there_once(tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        buffer = work.open("a.txt", b"a\nport=1\nz\n")
        work.editor.answers = [NEVER]
        work.script(replace("a.txt", "port=1", "port=2"))
        asked = work.ask(wait=True)
        question = await work.editor.question()
        work.editor.type(buffer, "😀 typed\n", at=0)
        work.editor.type(buffer, "and here")
        question.answer("Allow once")
        turn = await work.end_of(asked)
        assert turn.statuses == ["completed"]
        assert buffer.text == "😀 typed\na\nport=2\nz\nand here"
        assert len(work.editor.questions) == 1
        work.editor.undo(buffer)
        assert buffer.text == "😀 typed\na\nport=1\nz\nand here"


@pytest.mark.parametrize(("was", "becomes"), [("port=1", "port=7"), ("z", "port=1")], ids=["gone", "twice there"])
async def test_an_approval_lapses_with_the_quoted_text_and_the_model_gets_the_new_one(
    was: str, becomes: str, tmp_path: Path
) -> None:
    # as reported in anomalyco/opencode#48904
    async with at_work(tmp_path, access="confirm") as work:
        buffer = work.open("a.txt", b"a\nport=1\nz\n")
        work.editor.answers = [NEVER]
        work.script(replace("a.txt", "port=1", "port=2"))
        asked = work.ask(wait=True)
        question = await work.editor.question()
        work.editor.replace(buffer, was, becomes)
        question.answer("Allow once")
        turn = await work.end_of(asked)
        assert turn.statuses == ["failed"]
        assert "changed since it was read" in turn.told[0]
        assert buffer.text in turn.told[0]
        assert sent(work) == []


@pytest.mark.parametrize("line", [1, 1_000, 2_000], ids=["at the start", "in the middle", "at the end"])
@pytest.mark.parametrize("typed", ["", "typed\n" * 600], ids=["nothing", "much"])
async def test_of_a_long_text_the_model_gets_the_part_around_its_edit(line: int, typed: str, tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        lines = [f"line {number}\n" for number in range(1, 2_001)]
        buffer = work.open("a.txt", "".join(lines).encode())
        work.editor.answers = [NEVER]
        work.script(replace("a.txt", lines[line - 1], "new\n"))
        asked = work.ask(wait=True)
        question = await work.editor.question()
        work.editor.type(buffer, typed, at=0)
        work.editor.replace(buffer, lines[line - 1], "mine\n")
        question.answer("Allow once")
        turn = await work.end_of(asked)
        first, last, count, shown = part_of(turn.told[0])
        assert f"\n{shown}" in f"\n{buffer.text}"
        assert "mine\n" in shown
        assert 3_000 < len(shown) <= 4_000 or line in (1, 2_000)
        assert shown == "".join(buffer.text.splitlines(keepends=True)[first - 1 : last])
        assert count == buffer.text.count("\n")


async def test_of_an_edit_that_did_not_arrive_the_model_gets_the_part_around_it(tmp_path: Path) -> None:
    async with at_work(tmp_path, LIAR) as work:
        lines = [f"line {number}\n" for number in range(1, 2_001)]
        work.open("a.txt", "".join(lines).encode())
        work.file("b.txt", b"x" * 50_000 + b"old" + b"y" * 50_000)
        work.editor.open(work.folder / "b.txt")
        turn = await work.turn([replace("a.txt", "line 1500\n", "new\n"), replace("b.txt", "old", "new")])
        assert "\nline 1500\n" in turn.told[0]
        assert "xoldy" in turn.told[1], "as one line has no lines around it"
        assert max(map(len, turn.told)) < 4_300


def part_of(told: str) -> tuple[int, int, int, str]:
    """The part of a text that a result shows: its first and last line, of how many, and the part."""
    found = re.search(r"The text is now \(lines (\d+)-(\d+) of (\d+)\):\n", told)
    assert found is not None
    return int(found[1]), int(found[2]), int(found[3]), told[found.end() :]


async def test_a_whole_file_is_replaced_only_as_it_was_shown(tmp_path: Path) -> None:
    async with at_work(tmp_path, access="confirm") as work:
        buffer = work.open("a.txt", b"a\n")
        work.editor.answers = [NEVER]
        work.script(write("a.txt", "b\n"))
        asked = work.ask(wait=True)
        question = await work.editor.question()
        work.editor.type(buffer, "typed\n")
        question.answer("Allow once")
        turn = await work.end_of(asked)
        assert turn.statuses == ["failed"]
        assert "changed" in turn.told[0]
        assert buffer.text == "a\ntyped\n"


async def test_a_whole_file_is_not_replaced_over_what_the_model_has_never_seen(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\nb\n")
        await work.turn(read("a.txt"))
        work.editor.type(buffer, "typed\n")
        turn = await work.turn(replace("a.txt", "a", "A"), write("a.txt", "A\nB\n"))
        assert turn.statuses == ["completed", "failed"]
        assert "changed since it was read" in turn.told[1]
        assert buffer.text == "A\nb\ntyped\n"


# -------------------------------------------------------------------- two at once


async def test_two_sessions_on_one_line_each_see_what_the_other_did(tmp_path: Path) -> None:
    # as reported in lijunzh/koda#437
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"one two\n")
        other = await work.editor.command("hel.newSession", {})
        this = await work.editor.command("hel.newSession", {})
        work.model.replies += [
            {"tool_calls": [replace("a.txt", "one", "1")]},
            {"tool_calls": [replace("a.txt", "two", "2")]},
            {"text": "done"},
            {"text": "done"},
        ]
        results = await asyncio.gather(
            *(work.ask(wait=True, session=session["session"]).result for session in (other, this))
        )
        assert [result["toolCalls"][0]["status"] for result in results] == ["completed", "completed"]
        assert buffer.text == "1 2\n"
        assert len(buffer.undo) == 2


# -------------------------------------------------------------------- what is sent


async def test_an_edit_is_one_replacement_in_one_document_at_the_version_it_was_made_on(tmp_path: Path) -> None:
    # as reported in autozimu/LanguageClient-neovim#1055, microsoft/vscode#761, microsoft/language-server-protocol#321
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\nb\nc\nd\n")
        work.editor.type(buffer, "e\n")
        await work.turn(replace("a.txt", "a\nb\nc\nd\n", "A\nb\nc\nD\n"))
        [change] = sent(work)
        assert change["textDocument"] == {"uri": buffer.uri, "version": 2}
        assert span(change) == (0, 0, 3, 1, "A\nb\nc\nD")
        path = work.file("b.txt", b"x\n")
        await work.turn(replace("b.txt", "x", "y"))
        assert sent(work)[1]["textDocument"] == {"uri": path.as_uri(), "version": None}


@encodings
async def test_a_column_counts_in_the_units_of_the_editor(personality: Personality, tmp_path: Path) -> None:
    # as reported in openlawlibrary/pygls#302, astral-sh/ruff-lsp#358, oraios/serena#2064
    async with at_work(tmp_path, personality) as work:
        work.open("a.txt", "😀😀 x\n".encode())
        await work.turn(replace("a.txt", "x", "y"))
        column = {"utf-8": 9, "utf-16": 5, "utf-32": 3}[personality.encoding]
        [change] = sent(work)
        assert span(change) == (0, column, 0, column + 1, "y")


@encodings
async def test_where_an_edit_at_the_end_is_put(personality: Personality, tmp_path: Path) -> None:
    # as reported in neovim/neovim#40133, openlawlibrary/pygls#550 and #534, NousResearch/hermes-agent#45393
    cases = {
        b"a\n": ("a\n", "a\nb\n", (0, 1, 0, 1, "\nb")),
        b"abc": ("abc", "abcd", (0, 3, 0, 3, "d")),
        "a\fb\u2028\x85\nc\n".encode(): ("c", "d", (1, 0, 1, 1, "d")),
        b"a\nb\nc\n": ("b\nc\n", "", (0, 1, 2, 1, "")),
    }
    async with at_work(tmp_path, personality) as work:
        for number, (content, (search, new, expected)) in enumerate(cases.items()):
            work.open(f"{number}.txt", content)
            await work.turn(replace(f"{number}.txt", search, new))
            assert span(sent(work)[-1]) == expected


async def test_an_empty_file_gets_its_first_text_at_its_start(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"")
        await work.turn(write("a.txt", "x\n"))
        assert span(sent(work)[0]) == (0, 0, 0, 0, "x\n")
        assert work.saved(buffer) == b"x\n"


@pytest.mark.parametrize("personality", [VSCODE, NEOVIM, HELIX, ZED], ids=lambda personality: personality.name)
async def test_a_new_file_is_created_once_with_its_text_and_no_options(
    personality: Personality, tmp_path: Path
) -> None:
    # as reported in microsoft/vscode#146964: an existing file is never created again
    async with at_work(tmp_path, personality) as work:
        path = work.folder / "new" / "a.txt"
        turn = await work.turn([write("new/a.txt", "x\n"), write("new/a.txt", "y\n"), write("new/a.txt", "")])
        assert turn.statuses == ["completed"] * 3
        create, *edits = sent(work)
        assert create == {"kind": "create", "uri": path.as_uri()}
        assert [change.get("kind") for change in edits] == [None] * 3
        assert span(edits[0]) == (0, 0, 1, 0, "x\n")
        assert work.saved(path) == b""


async def test_a_file_that_appears_while_the_question_is_out_is_not_created_over(tmp_path: Path) -> None:
    # as reported in microsoft/vscode#146964
    async with at_work(tmp_path, access="confirm") as work:
        work.editor.answers = [NEVER]
        work.script(write("a.txt", "agent\n"))
        asked = work.ask(wait=True)
        question = await work.editor.question()
        path = work.file("a.txt", b"user\n")
        question.answer("Allow once")
        turn = await work.end_of(asked)
        assert turn.statuses == ["failed"]
        assert sent(work) == []
        assert path.read_bytes() == b"user\n"


async def test_a_client_that_creates_no_files_is_sent_the_text_alone(tmp_path: Path) -> None:
    # as reported in neovim/neovim#21925, clojure-lsp/clojure-lsp#1448
    async with at_work(tmp_path, EGLOT) as work:
        turn = await work.turn(write("a.txt", "x\n"))
        [params] = work.editor.sent("workspace/applyEdit")
        [change] = params["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": (work.folder / "a.txt").as_uri(), "version": None}
        assert span(change) == (0, 0, 1, 0, "x\n")
        assert turn.statuses == ["completed"]
        assert work.saved(work.folder / "a.txt") == b"x\n"


async def test_a_client_that_takes_no_document_changes_is_sent_changes(tmp_path: Path) -> None:
    async with at_work(tmp_path, KATE) as work:
        buffer = work.open("a.txt", b"a\n")
        turn = await work.turn(replace("a.txt", "a", "b"))
        assert turn.statuses == ["completed"]
        [params] = work.editor.sent("workspace/applyEdit")
        assert list(params["edit"]) == ["changes"]
        assert list(params["edit"]["changes"]) == [buffer.uri]
        assert work.saved(buffer) == b"b\n"


async def test_a_file_that_is_not_open_is_written_where_the_client_takes_no_edits(tmp_path: Path) -> None:
    async with at_work(tmp_path, KATE) as work:
        path = work.file("a.txt", b"a\r\nb\n")
        turn = await work.turn([replace("a.txt", "a", "A\nA"), write("new/b.txt", "x\r\n")])
        assert turn.statuses == ["completed", "completed"]
        assert path.read_bytes() == b"A\r\nA\r\nb\n"
        assert (work.folder / "new" / "b.txt").read_bytes() == b"x\r\n"
        assert turn.unsaved == []
        assert work.editor.sent("workspace/applyEdit") == []


async def test_a_document_that_is_open_is_never_written_to_the_disk(tmp_path: Path) -> None:
    deaf = dataclasses.replace(KATE, says=NEVER, applies=False)
    async with at_work(tmp_path, deaf) as work:
        buffer = work.open("a.txt", b"a\n")
        work.editor.handlers["workspace/applyEdit"] = lambda number, params: unknown_method()
        turn = await work.turn(replace("a.txt", "a", "b"))
        assert turn.statuses == ["failed"]
        assert turn.told[0].startswith("Not applied to a.txt: workspace/applyEdit: no such method")
        assert turn.edits[0]["applied"] is False
        assert buffer.text == "a\n"
        assert buffer.path is not None
        assert buffer.path.read_bytes() == b"a\n"


def unknown_method() -> Any:
    return Reply({"error": {"code": -32601, "message": "no such method"}})


# -------------------------------------------------------------------- line ends that editors see differently


@pytest.mark.parametrize("personality", EDITORS, ids=lambda personality: personality.name)
async def test_a_file_that_is_not_open_keeps_the_line_ends_of_its_other_lines_or_is_refused(
    personality: Personality, tmp_path: Path
) -> None:
    async with at_work(tmp_path, personality) as work:
        for number, content in enumerate(LINE_ENDS):
            path = work.file(f"{number}.txt", content)
            turn = await work.turn(replace(path.name, "c", "C"))
            edited = [content.replace(b"c", b"C")]
            if personality is NEOVIM:
                edited += [edited[0] + b"\n"]  # the final newline is its own
            held = personality.load(content)
            exact = dataclasses.replace(held, text=held.text.replace("c", "C"))
            lines = held.text.replace("\r\n", "\n").split("\n")
            if personality is KATE:
                assert turn.statuses == ["completed"]
                assert path.read_bytes() in edited
            elif personality.save(exact) in edited and lines == content.decode().replace("\r\n", "\n").split("\n"):
                assert turn.statuses == ["completed"], (content, turn.told)
                assert work.saved(path) in edited
            else:
                assert turn.statuses == ["failed"], (content, work.saved(path))
                assert "line ends of other lines" in turn.told[0] or "U+000D" in turn.told[0]
                assert sent(work) == [], content
                assert path.read_bytes() == content
            work.editor.received.clear()


@pytest.mark.parametrize("personality", EDITORS, ids=lambda personality: personality.name)
async def test_a_file_that_is_open_is_edited_whatever_the_editor_made_of_its_line_ends(
    personality: Personality, tmp_path: Path
) -> None:
    async with at_work(tmp_path, personality) as work:
        for number, content in enumerate(LINE_ENDS):
            buffer = work.open(f"{number}.txt", content)
            held = dataclasses.replace(buffer.held, text=buffer.text.replace("c", "C"))
            turn = await work.turn(replace(f"{number}.txt", "c", "C"))
            assert turn.statuses == ["completed"], (content, turn.told)
            assert buffer.text == held.text
            assert work.saved(buffer) == personality.save(held)


@pytest.mark.parametrize("personality", [NEOVIM, HELIX, EGLOT], ids=["Neovim", "helix", "Eglot"])
async def test_a_lone_carriage_return_is_no_line_to_these_editors_and_stays(
    personality: Personality, tmp_path: Path
) -> None:
    # as reported in openclaw/openclaw#116011
    async with at_work(tmp_path, personality) as work:
        for opened in (True, False):
            path = work.file(f"{opened}.txt", b"p\rq\r\nr\n")
            if opened:
                work.editor.open(path)
            turn = await work.turn(replace(path.name, "r", "R"))
            assert turn.statuses == ["completed"]
            assert work.saved(path) == b"p\rq\r\nR\n"


@pytest.mark.parametrize(
    "personality", [VSCODE, ZED, dataclasses.replace(HELIX, name="who knows")], ids=["Code", "Zed", "unknown"]
)
async def test_a_lone_carriage_return_is_refused_where_lines_may_be_counted_otherwise(
    personality: Personality, tmp_path: Path
) -> None:
    async with at_work(tmp_path, personality) as work:
        path = work.file("a.txt", b"p\rq\r\nr\n")
        turn = await work.turn(replace("a.txt", "r", "R"))
        assert turn.statuses == ["failed"]
        assert "U+000D" in turn.told[0]
        assert path.read_bytes() == b"p\rq\r\nr\n"
        assert sent(work) == []


@pytest.mark.parametrize("opened", [True, False], ids=["open", "not open"])
@pytest.mark.parametrize("personality", [EGLOT, HELIX, NEOVIM], ids=["Eglot", "helix", "Neovim"])
async def test_a_file_with_both_line_ends_keeps_each_or_is_refused(
    personality: Personality, opened: bool, tmp_path: Path
) -> None:
    async with at_work(tmp_path, personality) as work:
        path = work.file("a.txt", b"a\r\nb\nc\r\nd\n")
        if opened:
            work.editor.open(path)
        turn = await work.turn(
            [replace("a.txt", "b", "B"), replace("a.txt", "c", "c1\nc2"), replace("a.txt", "a\nB", "A\nB")]
        )
        if personality is NEOVIM:
            # It would insert `\n` into lines that have `\r\n`.
            assert turn.statuses == ["completed", "failed", "completed"]
            assert "both \\r\\n and \\n" in turn.told[1]
            assert work.saved(path) == b"A\r\nB\nc\r\nd\n"
        else:
            assert turn.statuses == ["completed"] * 3
            assert work.saved(path) == b"A\r\nB\nc1\r\nc2\r\nd\n"


async def test_eglot_that_gives_no_name_keeps_both_line_ends(tmp_path: Path) -> None:
    async with at_work(tmp_path, dataclasses.replace(EGLOT, tells_name=False)) as work:
        path = work.file("a.txt", b"a\r\nb\nc\r\n")
        assert (await work.turn(replace("a.txt", "b", "B"))).statuses == ["completed"]
        assert work.saved(path) == b"a\r\nB\nc\r\n"


async def test_how_an_unknown_editor_would_hold_a_file_that_is_not_open_is_not_guessed(tmp_path: Path) -> None:
    unknown = dataclasses.replace(EGLOT, name="who knows")
    async with at_work(tmp_path, unknown) as work:
        mixed = work.file("mixed.txt", b"a\r\nb\n")
        turn = await work.turn(replace("mixed.txt", "b", "B"))
        assert turn.statuses == ["failed"]
        assert "line ends of other lines" in turn.told[0]
        assert mixed.read_bytes() == b"a\r\nb\n"
        buffer = work.editor.open(mixed)
        assert (await work.turn(replace("mixed.txt", "b", "B"))).statuses == ["completed"]
        assert work.saved(buffer) == b"a\r\nB\n"
        path = work.file("a.txt", b"a\r\nb\r\n")
        turn = await work.turn([replace("a.txt", "a\nb", "a\nnew\nb"), replace("a.txt", "b", "B")])
        assert turn.statuses == ["failed", "completed"]
        assert "not known how this editor would hold it" in turn.told[0]
        assert work.saved(path) == b"a\r\nB\r\n"
        turn = await work.turn(replace("a.txt", "a\nB", "a\nnew\nB"))
        assert turn.statuses == ["completed"]
        assert work.saved(path) == b"a\r\nnew\r\nB\r\n"


@pytest.mark.parametrize(
    ("before", "search", "new", "saved"),
    [
        (b"a", "a", "a\nb\n", b"a\nb\n"),
        (b"a\nb\n", "b\n", "b", None),
        (b"a\nb\n", "b\n", "c", b"a\nc\n"),
        (b"a\nb\n", "a\nb\n", "", b""),
        (b"a", "a", "a\n", None),
    ],
    ids=["added", "taken", "changed and taken", "everything", "only added"],
)
@pytest.mark.parametrize("opened", [True, False], ids=["open", "not open"])
async def test_the_final_newline_is_neovims_own(
    before: bytes, search: str, new: str, saved: bytes | None, opened: bool, tmp_path: Path
) -> None:
    async with at_work(tmp_path, NEOVIM) as work:
        path = work.file("a.txt", before)
        if opened:
            work.editor.open(path)
        turn = await work.turn(replace("a.txt", search, new))
        if saved is None:
            assert turn.statuses == ["failed"]
            assert "final newline" in turn.told[0]
        else:
            assert turn.statuses == ["completed"]
            assert work.saved(path) == saved


# -------------------------------------------------------------------- names of documents


async def test_a_drive_letter_names_the_same_document_in_either_case(tmp_path: Path) -> None:
    # as reported in sveltejs/language-tools#435
    async with at_work(tmp_path) as work:
        buffer = Buffer("file:///c%3A/work/a.txt", None, work.editor.personality.load(b"first\n"), 1, "first\n")
        work.editor.open_untitled(buffer.uri, "first\n")
        opened = work.editor.buffers[buffer.uri]
        work.editor.replace(opened, "first", "second")
        edges = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
        await work.turn(textDocument={"uri": "file:///C:/work/a.txt"}, range=edges)
        assert "second" in work.model.requests[0]["messages"][1]["content"]
