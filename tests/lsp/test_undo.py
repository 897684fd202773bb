"""`hel.undo` at the wire: a turn's own edits are taken back, what the user typed stays, and what cannot be is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.lsp.personalities import EDITORS, LIAR, NEOVIM, VSCODE, Personality
from tests.lsp.turns import at_work, replace, write

FORGETFUL = [
    sys.executable,
    "-c",
    "import sys, hel_lsp.cli, hel_lsp.agent.made as made; made.KEPT_BYTES = 10_000; sys.exit(hel_lsp.cli.main())",
]
"""The server with room for two texts of 4,000 characters, where it has room for 64 MB."""

everyone = pytest.mark.parametrize("personality", EDITORS, ids=lambda personality: personality.name)


@everyone
async def test_what_the_user_typed_since_stays(personality: Personality, tmp_path: Path) -> None:
    async with at_work(tmp_path, personality) as work:
        buffer = work.open("a.py", b"def f():\n    return 1\n\ndef g():\n    return 2\n")
        await work.turn(replace("a.py", "return 2", "value = 2\n    return value"))
        work.editor.type(buffer, "# 😀 top\n", at=0)
        work.editor.replace(buffer, "return 1", "return 10")
        work.editor.type(buffer, "# end\n")
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert work.saved(buffer) == "# 😀 top\ndef f():\n    return 10\n\ndef g():\n    return 2\n# end\n".encode()
        work.editor.undo(buffer)
        assert "value = 2\n    return value\n" in buffer.text, "an undo is one step of the editor's too"


async def test_a_text_that_was_edited_over_is_kept_with_the_reason(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"one\n")
        other = work.open("b.txt", b"one\n")
        await work.turn([replace("a.txt", "one", "agent wrote this"), replace("b.txt", "one", "2")])
        work.editor.replace(buffer, "wrote", "once wrote")
        undone = await work.editor.command("hel.undo")
        [kept] = undone["kept"]
        assert kept["uri"] == buffer.uri
        assert "changed since" in kept["reason"]
        assert undone["reverted"] == [other.uri]
        assert (buffer.text, other.text) == ("agent once wrote this\n", "one\n")


@pytest.mark.parametrize(
    ("search", "new"), [("def g(): 2\n\n", ""), ("def g(): 2", "def g(): 3"), ("def h", "def i(): 4\n\ndef h")]
)
async def test_what_was_taken_back_in_the_editor_is_not_taken_back_again(search: str, new: str, tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        before = "def f(): 1\n\ndef g(): 2\n\ndef h(): 3\n"
        buffer = work.open("a.py", before.encode())
        await work.turn(replace("a.py", search, new))
        work.editor.undo(buffer)
        undone = await work.editor.command("hel.undo")
        assert undone == {
            "reverted": [],
            "kept": [{"uri": buffer.uri, "reason": "The edit has been taken back already."}],
        }
        assert buffer.text == before


async def test_a_turn_that_was_edited_over_does_not_keep_older_ones_out_of_reach(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer, other = work.open("a.txt", b"one\n"), work.open("b.txt", b"x\n")
        await work.turn(replace("b.txt", "x", "y"))
        await work.turn(replace("b.txt", "y", "z"))
        await work.turn(replace("a.txt", "one", "two words"))
        work.editor.replace(buffer, "two", "three")
        undone = await work.editor.command("hel.undo")
        assert [kept["uri"] for kept in undone["kept"]] == [buffer.uri]
        for text in ("y\n", "x\n"):
            assert await work.editor.command("hel.undo") == {"reverted": [other.uri], "kept": []}
            assert other.text == text
        assert await work.editor.command("hel.undo") == undone, "with no other left it says once more why it stays"
        work.editor.undo(buffer)
        assert await work.editor.command("hel.undo", {"turn": 3}) == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "one\n"
        with pytest.raises(Exception, match="nothing to undo"):
            await work.editor.command("hel.undo")


async def test_a_turn_of_which_a_part_was_kept_can_be_undone_by_its_number_later(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer, other = work.open("a.txt", b"1\n"), work.open("b.txt", b"1\n")
        await work.turn(replace("a.txt", "1", "0"))
        await work.turn([replace("a.txt", "0", "agent wrote this"), replace("b.txt", "1", "2")])
        work.editor.replace(buffer, "wrote", "once wrote")
        assert (await work.editor.command("hel.undo"))["reverted"] == [other.uri]
        work.editor.undo(buffer)
        assert await work.editor.command("hel.undo", {"turn": 2}) == {"reverted": [buffer.uri], "kept": []}
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert (buffer.text, other.text) == ("1\n", "1\n")


async def test_an_edit_whose_text_is_no_longer_kept_is_named_with_the_reason(tmp_path: Path) -> None:
    async with at_work(tmp_path, command=FORGETFUL) as work:
        buffer, other = work.open("a.txt", b"a\n" + b"x\n" * 2_000), work.open("b.txt", b"a\n" + b"x\n" * 2_000)
        for name, search, new in (("a.txt", "a\n", "b\n"), ("b.txt", "a\n", "b\n"), ("b.txt", "b\n", "c\n")):
            await work.turn(replace(name, search, new))
        assert await work.editor.command("hel.undo") == {"reverted": [other.uri], "kept": []}
        assert await work.editor.command("hel.undo") == {"reverted": [other.uri], "kept": []}
        undone = await work.editor.command("hel.undo")
        assert undone["reverted"] == []
        [kept] = undone["kept"]
        assert kept["uri"] == buffer.uri
        assert "no longer kept" in kept["reason"]
        assert (buffer.text[:2], other.text[:2]) == ("b\n", "a\n")


async def test_the_edits_of_a_turn_go_newest_first_and_only_those(tmp_path: Path) -> None:
    async with at_work(tmp_path, NEOVIM) as work:
        buffer = work.open("a.txt", b"1\nx\n")
        await work.turn(replace("a.txt", "x", "y"))
        await work.turn([replace("a.txt", "1", "2"), replace("a.txt", "2", "3\n4"), replace("a.txt", "3\n", "")])
        assert buffer.text == "4\ny\n"
        assert await work.editor.command("hel.undo", {}) == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "1\ny\n"
        assert await work.editor.command("hel.undo", {}) == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "1\nx\n"
        with pytest.raises(Exception, match="nothing to undo"):
            await work.editor.command("hel.undo", {})
        assert buffer.text == "1\nx\n"


async def test_an_older_turn_is_undone_under_a_newer_one(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"1\n2\n3\n")
        await work.turn(replace("a.txt", "1", "one"))
        await work.turn(replace("a.txt", "3", "three"))
        assert (await work.editor.command("hel.undo", {"turn": 1}))["kept"] == []
        assert buffer.text == "1\n2\nthree\n"
        with pytest.raises(Exception, match="turn: 1 made no edits"):
            await work.editor.command("hel.undo", {"turn": 1})


async def test_a_call_that_failed_is_no_obstacle(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\nb\n")
        honest = work.editor.personality
        work.script([replace("a.txt", "a", "A"), replace("a.txt", "b", "B")])

        def lie_next() -> None:
            work.editor.personality = LIAR if len(work.editor.sent("workspace/applyEdit")) > 1 else honest

        work.editor.before_edit = lie_next
        turn = await work.end_of(work.ask(wait=True))
        assert turn.statuses == ["completed", "failed"]
        work.editor.before_edit = lambda: None
        work.editor.personality = honest
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "a\nb\n"


@pytest.mark.parametrize("personality", [VSCODE, NEOVIM], ids=["Code", "Neovim"])
async def test_a_file_that_the_turn_created_stays_and_is_named(personality: Personality, tmp_path: Path) -> None:
    async with at_work(tmp_path, personality) as work:
        old = work.open("old.txt", b"0\n")
        await work.turn(replace("old.txt", "0", "a"))
        turn = await work.turn([write("new.txt", "x\n"), replace("new.txt", "x", "y"), replace("old.txt", "a", "b")])
        assert turn.statuses == ["completed"] * 3
        new = work.editor.buffer(work.folder / "new.txt")
        undone = await work.editor.command("hel.undo")
        assert undone["reverted"] == [old.uri]
        [kept] = undone["kept"]
        assert kept["uri"] == new.uri
        assert "created this file" in kept["reason"]
        assert (old.text, new.text) == ("a\n", "y\n"), "a file that is kept is left as the turn left it"
        assert (await work.editor.command("hel.undo")) == {"reverted": [old.uri], "kept": []}
        assert old.text == "0\n"


async def test_a_document_that_was_saved_and_closed_is_undone_in_a_new_buffer(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\r\nb\r\n")
        await work.turn(replace("a.txt", "b", "c\nd"))
        work.saved(buffer)
        work.editor.close(buffer)
        assert (await work.editor.command("hel.undo"))["kept"] == []
        path = work.folder / "a.txt"
        assert path.read_bytes() == b"a\r\nc\r\nd\r\n"
        assert work.editor.buffer(path).dirty
        assert work.saved(path) == b"a\r\nb\r\n"


async def test_an_undo_that_the_editor_does_not_make_is_not_reported_as_done_and_can_be_tried_again(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\n")
        await work.turn(replace("a.txt", "a", "b"))
        honest, work.editor.personality = work.editor.personality, LIAR
        undone = await work.editor.command("hel.undo")
        assert undone["reverted"] == []
        assert "has not changed" in undone["kept"][0]["reason"]
        work.editor.personality = honest
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "a\n"


async def test_nothing_is_undone_while_a_turn_is_running(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\n")
        await work.turn(replace("a.txt", "a", "b"))
        work.model.replies.append({"text": "thinking", "hold": True})
        asked = work.ask(wait=True)
        await work.model.wait_for_requests(3)
        with pytest.raises(Exception, match="A turn is running"):
            await work.editor.command("hel.undo")
        await work.editor.command("hel.cancel", {})
        await asked.result
        assert (await work.editor.command("hel.undo"))["reverted"] == [buffer.uri]


async def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        buffer = work.open("a.txt", b"a\n")
        await work.turn(replace("a.txt", "a", "b"))
        work.editor.close(buffer)
        (work.folder / "a.txt").unlink()
        undone = await work.editor.command("hel.undo")
        assert undone == {"reverted": [], "kept": [{"uri": buffer.uri, "reason": "The file is gone."}]}
        assert not (work.folder / "a.txt").exists()
