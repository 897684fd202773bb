"""What is kept for `hel.undo`: no more than there is room for, the newest turns whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from hel_lsp.agent import made as kept
from hel_lsp.agent.made import Made, MadeEdits
from hel_lsp.messages import EditReport, FileEdit

ROOM = 10_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT_BYTES", ROOM)
    monkeypatch.setattr(kept, "KEPT_EDITS", 20)


def add(edits: MadeEdits, turn: int, size: int, session: str = "s") -> Made:
    edit = FileEdit(Path("/a"), "x" * size, 0, 1, "y")
    made = Made(session, turn, edit.path, EditReport("file:///a", True, 1, 1), edit)
    edits.add(made)
    return made


def left(edits: MadeEdits, session: str = "s") -> list[int]:
    """The turns of the edits whose texts are there."""
    return [made.turn for made in edits.of(session) if made.edit is not None]


def test_the_oldest_turns_give_up_their_texts_whole_and_are_still_known() -> None:
    edits = MadeEdits()
    for turn in (1, 1, 2, 2, 3):
        add(edits, turn, 2_200)
    assert left(edits) == [2, 2, 3]
    assert [made.turn for made in edits.of("s")] == [1, 1, 2, 2, 3]


def test_the_room_is_one_for_all_sessions_together() -> None:
    edits = MadeEdits()
    for turn in (1, 2, 3, 4):
        add(edits, turn, 2_200, "one")
        add(edits, turn, 2_200, "other")
    assert (left(edits, "one"), left(edits, "other")) == ([3, 4], [3, 4])


def test_of_a_turn_that_has_no_room_by_itself_the_newest_edits_are_kept() -> None:
    edits = MadeEdits()
    for _ in range(9):
        add(edits, 1, 3_000)
    assert [made.edit is not None for made in edits.of("s")] == [False] * 6 + [True] * 3


def test_one_edit_is_kept_however_large_it_is() -> None:
    edits = MadeEdits()
    add(edits, 1, 100)
    add(edits, 2, 10 * ROOM)
    assert left(edits) == [2]


def test_wide_characters_count_by_what_they_take() -> None:
    edits = MadeEdits()
    for turn in (1, 2):
        edit = FileEdit(Path("/a"), "😀" * 2_000, 0, 1, "y")
        edits.add(Made("s", turn, edit.path, EditReport("file:///a", True, 1, 1), edit))
    assert left(edits) == [2]


def test_there_is_a_bound_for_the_number_of_edits_too_which_a_turn_by_itself_may_pass() -> None:
    edits = MadeEdits()
    for turn in range(1, 26):
        add(edits, turn, 10)
    assert left(edits) == list(range(6, 26))
    for _ in range(30):
        add(edits, 26, 10)
    assert left(edits) == [26] * 30


def test_what_was_taken_back_makes_room() -> None:
    edits = MadeEdits()
    first = add(edits, 1, 4_000)
    add(edits, 2, 4_000)
    edits.remove(first)
    add(edits, 3, 4_000)
    assert left(edits) == [2, 3]
