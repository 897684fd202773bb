"""The same turns in every editor, and in those that do not keep to the protocol: exact, or honestly not done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lsp.personalities import (
    BABBLER,
    BLANK,
    CANCELLER,
    DENIER,
    EDITORS,
    EGLOT,
    HELIX,
    KATE,
    KATE_LATER,
    LIAR,
    NEOVIM,
    REFUSER,
    VSCODE,
    ZED,
    Personality,
)
from tests.lsp.turns import at_work, read, replace, write

everyone = pytest.mark.parametrize("personality", EDITORS, ids=lambda personality: personality.name)

BEFORE = "# Ü 😀\r\nport = 7000\r\nhost = a\r\n".encode()
AFTER = "# Ü 😀\r\nport = 8437\r\nextra = 1\r\nhost = a\r\n".encode()
CHANGE = replace("config.ini", "port = 7000\n", "port = 8437\nextra = 1\n")


@everyone
@pytest.mark.parametrize("opened", [True, False], ids=["open", "not open"])
async def test_an_approved_edit_is_exact_when_saved_and_one_step_to_undo(
    personality: Personality, opened: bool, tmp_path: Path
) -> None:
    async with at_work(tmp_path, personality, access="confirm") as work:
        path = work.file("config.ini", BEFORE)
        if opened:
            work.editor.open(path)
        work.editor.answers = ["Allow once"]
        turn = await work.turn(CHANGE)
        assert turn.statuses == ["completed"]
        assert turn.told == ["Applied to config.ini (+2 −1)."]
        if personality is KATE and not opened:
            # It does not say that it takes edits.
            assert path.read_bytes() == AFTER
            assert turn.unsaved == []
            undone = await work.editor.command("hel.undo")
            assert undone == {"reverted": [path.as_uri()], "kept": []}
            assert path.read_bytes() == BEFORE
            return
        buffer = work.editor.buffer(path)
        assert turn.result["edits"] == [{"uri": buffer.uri, "applied": True, "added": 2, "removed": 1}]
        assert turn.unsaved == [buffer.uri]
        assert path.read_bytes() == BEFORE
        assert work.saved(buffer) == AFTER
        work.editor.undo(buffer)
        assert work.saved(buffer) == BEFORE


@everyone
async def test_hel_undo_gives_the_first_bytes_after_several_edits_and_a_save(
    personality: Personality, tmp_path: Path
) -> None:
    async with at_work(tmp_path, personality) as work:
        buffer = work.open("config.ini", BEFORE)
        await work.turn(CHANGE, replace("config.ini", "Ü 😀", "Ö"), replace("config.ini", "8437\nextra = 1\n", "1\n"))
        work.saved(buffer)
        undone = await work.editor.command("hel.undo")
        assert undone == {"reverted": [buffer.uri], "kept": []}
        assert work.saved(buffer) == BEFORE


@pytest.mark.parametrize("personality", [VSCODE, NEOVIM, HELIX, ZED], ids=lambda personality: personality.name)
async def test_a_new_file_in_a_new_folder_saves_exactly(personality: Personality, tmp_path: Path) -> None:
    async with at_work(tmp_path, personality) as work:
        turn = await work.turn(write("new/dir/notes.md", "# Ü 😀\n\none\n"), read("new/dir/notes.md"))
        path = work.folder / "new" / "dir" / "notes.md"
        assert turn.statuses == ["completed", "completed"]
        assert turn.told[1].endswith("\n# Ü 😀\n\none\n")
        assert turn.unsaved == [path.as_uri()]
        assert work.saved(path) == "# Ü 😀\n\none\n".encode()


@everyone
async def test_an_edit_that_meets_typing_is_made_once_in_the_right_place_or_not_at_all(
    personality: Personality, tmp_path: Path
) -> None:
    """The user types when the edit has arrived and before the editor looks at it."""
    async with at_work(tmp_path, personality) as work:
        buffer = work.open("a.txt", b"one\ntwo\nthree")
        work.editor.type(buffer, "\n")
        typed = iter(["typed\n"])

        def type_now() -> None:
            for text in typed:
                work.editor.type(buffer, text)

        work.editor.before_edit = type_now
        turn = await work.turn(replace("a.txt", "two", "2"))
        assert turn.statuses == ["completed"], turn.told
        assert buffer.text == "one\n2\nthree\ntyped\n"
        assert turn.edits[0]["applied"] is True
        assert len(work.editor.sent("workspace/applyEdit")) == (
            1 if personality.versions in ("unchecked", "rebased") else 2
        )
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
        assert buffer.text == "one\ntwo\nthree\ntyped\n"


@everyone
async def test_an_edit_whose_text_is_typed_over_meanwhile_is_not_reported_as_done(
    personality: Personality, tmp_path: Path
) -> None:
    async with at_work(tmp_path, personality) as work:
        buffer = work.open("a.txt", b"one\ntwo\nthree")
        work.editor.type(buffer, "\n")
        work.editor.before_edit = lambda: work.editor.replace(buffer, "two", "mine") if "two" in buffer.text else None
        turn = await work.turn(replace("a.txt", "two", "2"))
        assert turn.statuses == ["failed"]
        assert "changed since it was read" in turn.told[0]
        assert buffer.text in turn.told[0], "the model hears what the text is now"
        assert turn.edits[0]["applied"] is False
        assert "mine" in buffer.text or personality.versions in ("unchecked", "rebased")
        assert (await work.turn(replace("a.txt", "three", "3"))).statuses == ["completed"]


# -------------------------------------------------------------------- the rude ones

NOT_DONE = {
    LIAR: ("says that it was applied, but the text has not changed", 1),
    BABBLER: ("could not be read", 1),
    BLANK: ("could not be read", 1),
    CANCELLER: ("Canceled", 1),
    REFUSER: ("gave no reason", 2),
    KATE_LATER: ("gave no reason", 2),
}


@pytest.mark.parametrize(
    ("personality", "said", "tries"),
    [(personality, *expected) for personality, expected in NOT_DONE.items()],
    ids=[personality.name if personality is not KATE_LATER else "kate later" for personality in NOT_DONE],
)
async def test_what_was_not_done_is_said_so_and_nothing_is_lost(
    personality: Personality, said: str, tries: int, tmp_path: Path
) -> None:
    # as reported in microsoft/vscode-languageserver-node#1756, mfussenegger/nvim-jdtls#67,
    # pappasam/jedi-language-server#84, sublimelsp/LSP#2896, microsoft/language-server-protocol#618,
    # microsoft/vscode#226746
    async with at_work(tmp_path, personality) as work:
        buffer = work.open("a.txt", b"a\n")
        work.editor.type(buffer, "typed\n")
        turn = await work.turn(replace("a.txt", "a", "b"), read("a.txt"))
        assert turn.statuses == ["failed", "completed"]
        # Of an edit that the editor says it made, and that cannot be seen, nothing is known: it may come later.
        unknown = personality is LIAR
        assert turn.told[0].startswith("Unknown whether the edit of a.txt" if unknown else "Not applied to a.txt: ")
        assert said in turn.told[0]
        assert "a\ntyped\n" in turn.told[0]
        assert "a\ntyped\n" in turn.told[1]
        assert turn.edits[0]["applied"] is False
        assert len(work.editor.sent("workspace/applyEdit")) == tries
        assert buffer.text == "a\ntyped\n"
        assert buffer.path is not None
        assert buffer.path.read_bytes() == b"a\n"
        with pytest.raises(Exception, match="nothing to undo"):
            await work.editor.command("hel.undo")
        assert (await work.turn(read("a.txt"))).result["stopReason"] == "end_turn"


@pytest.mark.parametrize("personality", [LIAR, REFUSER], ids=lambda personality: personality.name)
async def test_a_file_that_is_not_open_and_does_not_appear_is_not_reported_as_edited(
    personality: Personality, tmp_path: Path
) -> None:
    async with at_work(tmp_path, personality) as work:
        path = work.file("a.txt", b"a\n")
        turn = await work.turn([replace("a.txt", "a", "b"), write("new.txt", "x\n")])
        assert turn.statuses == ["failed", "failed"]
        assert [edit["applied"] for edit in turn.edits] == [False, False]
        assert path.read_bytes() == b"a\n"
        assert not (work.folder / "new.txt").exists()


async def test_an_editor_that_denies_what_it_has_done_is_not_asked_again(tmp_path: Path) -> None:
    async with at_work(tmp_path, DENIER) as work:
        buffer = work.open("a.txt", b"a\n")
        turn = await work.turn(replace("a.txt", "a", "b"))
        assert turn.statuses == ["completed"]
        assert len(work.editor.sent("workspace/applyEdit")) == 1
        assert buffer.text == "b\n"
        assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}


async def test_a_document_that_is_spoiled_on_the_way_is_unknown_with_its_real_text(tmp_path: Path) -> None:
    async with at_work(tmp_path, VSCODE) as work:
        buffer = work.open("a.txt", b"one\ntwo\n")
        # It puts the edit somewhere else and says that all went well.
        work.editor.before_edit = lambda: work.editor.replace(buffer, "one\ntwo\n", "2one\n")
        work.editor.personality = LIAR
        turn = await work.turn(replace("a.txt", "two", "2"))
        assert turn.statuses == ["failed"]
        assert turn.told[0].startswith("Unknown whether the edit of a.txt arrived")
        assert "2one\n" in turn.told[0]
        assert len(work.editor.sent("workspace/applyEdit")) == 1


async def test_a_version_of_zero_is_checked_by_nobody_and_so_the_text_is(tmp_path: Path) -> None:
    # as reported in neovim/neovim#14366: Neovim takes an edit for version 0 at any version
    async with at_work(tmp_path, NEOVIM) as work:
        buffer = work.open("a.txt", b"one\ntwo\n")
        work.editor.before_edit = lambda: work.editor.type(buffer, "top\n", at=0) if buffer.version == 0 else None
        turn = await work.turn(replace("a.txt", "two", "2"))
        # It was put one line too high: neither what it was nor what it should be.
        assert buffer.text == "top\n2\ntwo\n"
        assert turn.statuses == ["failed"]
        assert "top\n2\ntwo\n" in turn.told[0]


async def test_emacs_is_known_by_any_of_its_names(tmp_path: Path) -> None:
    import dataclasses

    for name in ("Emacs (eglot)", "Eglot", "emacs"):
        (tmp_path / name).mkdir()
        async with at_work(tmp_path / name, dataclasses.replace(EGLOT, name=name)) as work:
            path = work.file("config.ini", BEFORE)
            assert (await work.turn(CHANGE)).statuses == ["completed"]
            assert work.saved(path) == AFTER


async def test_zed_is_known_in_each_of_its_release_channels(tmp_path: Path) -> None:
    import dataclasses

    for name in ("Zed", "Zed Preview", "Zed Nightly", "Zed Dev"):
        (tmp_path / name).mkdir()
        async with at_work(tmp_path / name, dataclasses.replace(ZED, name=name)) as work:
            path = work.file("config.ini", BEFORE)
            assert (await work.turn(CHANGE)).statuses == ["completed"]
            assert work.saved(path) == AFTER
