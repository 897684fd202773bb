"""Undo of one edit in a text that the user may have changed since."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hel_lsp.errors import MatchError
from hel_lsp.messages import FileEdit
from hel_lsp.tools.edit import arrived, replace_once, revert, rewrite

PATH = Path("file.txt")

BEFORE = "def f():\n    return 1\n\ndef g():\n    return 2\n\ndef h():\n    return 3\n"


def edited(search: str = "return 2", replace: str = "value = 2\n    return value") -> FileEdit:
    return replace_once(PATH, BEFORE, search, replace)


@pytest.mark.parametrize(
    "typed",
    [
        pytest.param(lambda text: "# top\n" + text, id="above"),
        pytest.param(lambda text: text + "# end\n", id="below"),
        pytest.param(lambda text: "# top\n" + text + "# end\n", id="above and below"),
        pytest.param(lambda text: text.replace("return 1", "return 10").replace("return 3", "return 30"), id="lines"),
        pytest.param(lambda text: text.replace("def g()", "def gg()"), id="the line above"),
        pytest.param(lambda text: text.replace("\ndef h():\n    return 3\n", ""), id="deleted below"),
        pytest.param(lambda text: text.replace("def f():\n    return 1\n\n", ""), id="deleted above"),
        pytest.param(lambda text: text.replace("return value\n", "return value  # sure\n"), id="on the same line"),
        pytest.param(lambda text: text.replace("\n\n", "\n\n\n"), id="blank lines everywhere"),
    ],
)
def test_what_the_user_typed_elsewhere_stays(typed: object) -> None:
    assert callable(typed)
    edit = edited()
    assert revert(edit, typed(edit.after)).after == typed(BEFORE).replace("return 2\n", _same_line(typed(edit.after)))


def _same_line(current: str) -> str:
    return "return 2  # sure\n" if "# sure" in current else "return 2\n"


@pytest.mark.parametrize(
    "typed",
    [
        pytest.param(lambda text: text.replace("value = 2", "value = 20"), id="inside"),
        pytest.param(lambda text: text.replace("return value", "return values"), id="the same word"),
        pytest.param(lambda text: text.replace("    value", "    my_value"), id="the same word, in front"),
        pytest.param(lambda text: text.replace("    value = 2\n    return value\n", ""), id="deleted"),
        pytest.param(lambda text: text.replace("value = 2\n", "value = 2\n\n"), id="a line in between"),
        pytest.param(lambda text: "", id="everything deleted"),
        pytest.param(lambda text: "other\n", id="another text"),
        pytest.param(lambda text: "#\n" + text + text + "#\n", id="there twice"),
    ],
)
def test_where_the_edits_own_text_was_changed_nothing_is_undone(typed: object) -> None:
    assert callable(typed)
    edit = edited()
    with pytest.raises(MatchError, match="so they stay"):
        revert(edit, typed(edit.after))


def test_deleted_text_goes_back_between_its_neighbours() -> None:
    edit = replace_once(PATH, BEFORE, "def g():\n    return 2\n\n", "")
    current = "# top\n" + edit.after + "# end\n"
    assert revert(edit, current).after == "# top\n" + BEFORE + "# end\n"


@pytest.mark.parametrize(
    "current",
    [
        pytest.param("p\na\nX\nc\nq\n", id="a line where it was"),
        pytest.param("#\na\nX\nc\n#\n", id="that and more"),
        pytest.param("#\na\n#\n", id="a neighbour is gone"),
        pytest.param("#\nc\n#\n", id="the other neighbour is gone"),
        pytest.param("#\naX\nc\n#\n", id="a neighbour was changed"),
        pytest.param("p\nq\n", id="both are gone"),
        pytest.param("#\na\nc\na\nc\n#\n", id="both are there twice"),
        pytest.param("p\naX\nY\nc\nq\n", id="a neighbour was changed and a line added"),
        pytest.param("p\na\nY\nXc\nq\n", id="a line added and the other neighbour changed"),
    ],
)
def test_deleted_text_has_no_place_once_its_neighbours_are_apart(current: str) -> None:
    edit = replace_once(PATH, "p\na\nb\nc\nq\n", "b\n", "")
    with pytest.raises(MatchError, match="so they stay"):
        revert(edit, current)


@pytest.mark.parametrize(
    ("search", "current", "expected"),
    [
        ("a\n", "b\nc\nX\n", "a\nb\nc\nX\n"),
        ("a\n", "X\nb\nc\n", None),
        ("a\n", "X\nb\nc\nY\n", None),
        ("c\n", "X\na\nb\n", "X\na\nb\nc\n"),
        ("c\n", "a\nb\nX\n", None),
        ("c\n", "X\na\nb\nY\n", None),
    ],
)
def test_text_deleted_at_an_end_of_the_file_goes_back_only_while_that_is_its_end(
    search: str, current: str, expected: str | None
) -> None:
    edit = replace_once(PATH, "a\nb\nc\n", search, "")
    if expected is not None:
        assert revert(edit, current).after == expected
        return
    with pytest.raises(MatchError, match="so they stay"):
        revert(edit, current)


def test_a_blank_line_is_a_neighbour_only_while_it_is_blank() -> None:
    edit = replace_once(PATH, "a\n\nm\nz\n", "m\n", "")
    with pytest.raises(MatchError, match="so they stay"):
        revert(edit, "a\nTYPED\nX\nz\n")


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        ("aX\nc\n", "aX\nb\nc\n"),
        ("a\nXc\n", "a\nb\nXc\n"),
        ("#\na\nc\n", "#\na\nb\nc\n"),
    ],
)
def test_a_deleted_line_goes_back_between_lines_that_were_typed_in(current: str, expected: str) -> None:
    for edit in (replace_once(PATH, "a\nb\nc\n", "b\n", ""), replace_once(PATH, "a\nb\nc\n", "\nb", "")):
        assert revert(edit, current).after == expected


def test_of_two_equal_lines_the_one_that_was_deleted_cannot_be_told() -> None:
    for start, text in ((1, "\nsame"), (2, "same\n"), (6, "\nsame"), (7, "same\n")):
        edit = FileEdit(PATH, "a\nsame\nb\n", start, start, text)
        assert edit.after == "a\nsame\nsame\nb\n"
        for current in ("a\nsame\nb\n", "A\nsame\nb\n", "a\nsame\nB\n", "#\na\nsame\nb\n#\n"):
            with pytest.raises(MatchError, match="so they stay"):
                revert(edit, current)


def test_a_deletion_that_may_have_been_anywhere_in_a_pattern_is_refused() -> None:
    edit = FileEdit(PATH, "babab\n", 0, 0, "a")
    with pytest.raises(MatchError, match="so they stay"):
        revert(edit, "abab\n")


def test_lines_that_stand_there_twice_are_told_apart_by_those_around_them() -> None:
    before = "f:\n  a\n  b\n  c\n  d\ng:\n  a\n  c\n  d\n"
    edit = FileEdit(PATH, before, before.rindex("  c"), before.rindex("  c"), "  b\n")
    assert revert(edit, f"# top\n{edit.after}# end\n").after == f"# top\n{before}# end\n"
    other = FileEdit(PATH, before, before.index("  b"), before.index("  c"), "")
    assert revert(other, f"# top\n{other.after}# end\n").after == f"# top\n{before}# end\n"


def test_a_line_added_right_below_the_edit_stays() -> None:
    edit = replace_once(PATH, "a\nz\n", "a\n", "a\nb\n")
    assert revert(edit, "a\nb\nc\nz\n").after == "a\nc\nz\n"
    assert revert(edit, "a\nc\nb\nz\n").after == "a\nc\nz\n"


def test_edits_of_a_turn_are_undone_newest_first() -> None:
    first = replace_once(PATH, BEFORE, "return 1", "return 100")
    second = replace_once(PATH, first.after, "return 100", "return 200")
    third = replace_once(PATH, second.after, "def h", "def hh")
    text = "# typed\n" + third.after
    for edit in (third, second, first):
        text = revert(edit, text).after
    assert text == "# typed\n" + BEFORE


@pytest.mark.parametrize("current", ["a\nB\nc\nd\n", "a\nB\nc\nd\ntyped\n"])
def test_in_a_buffer_with_other_line_ends_the_undo_takes_those_of_the_buffer(current: str) -> None:
    edit = replace_once(PATH, "a\r\nb\r\nx\r\nc\r\nd\r\n", "b\nx", "B", newline="\n")
    assert revert(edit, current).after == current.replace("B", "b\nx")


def test_the_caller_can_name_the_line_ends_of_the_buffer() -> None:
    edit = rewrite(PATH, "a\r\nb\r\n", "X", newline="\n")
    assert revert(edit, "X", newline="\n").after == "a\nb\n"
    assert revert(edit, "X").after == "a\r\nb\r\n"


def test_a_created_file_is_emptied_unless_it_was_changed() -> None:
    edit = rewrite(PATH, None, "a\nb\n")
    assert revert(edit, "a\nb\n").after == ""
    assert revert(edit, "a\r\nb\r\n").after == ""
    with pytest.raises(MatchError, match="changed since it was created"):
        revert(edit, "a\nb\nc\n")


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "a b\n", "c\r\n", "é\n", "}\n"]), max_size=10).map("".join)


# The text that comes back is like no other: of two equal lines it would not matter which one it is.
REMOVED = st.lists(st.sampled_from(["m\n", "m n\n", "n", "\n"]), max_size=4).map("".join)


@given(LINES, REMOVED, LINES, st.data())
def test_an_undo_keeps_what_was_typed_or_is_refused(before: str, middle: str, new: str, data: st.DataObject) -> None:
    """The user's changes are made to the text without the edit as well: the undo has to come out there."""
    start = data.draw(st.integers(0, len(before)))
    end = data.draw(st.integers(start, len(before)))
    text = f"{before[:start]}{middle}{before[end:]}"
    edit = FileEdit(PATH, text, start, start + len(middle), new)
    above = data.draw(st.integers(0, start))
    below = data.draw(st.integers(start + len(new), len(edit.after)))
    typed = st.sampled_from(["", "TYPED", "TYPED\n", "\nTYPED", "TYPED\nTWICE\n"])
    above_typed, below_typed = data.draw(typed), data.draw(typed)
    # Beside a gap, a line that is typed over another cannot be told from one that was changed.
    top_end = data.draw(st.integers(0, above)) if new else above
    bottom_start = data.draw(st.integers(below, len(edit.after))) if new else below
    top, head = before[:top_end], before[above:start]
    tail, bottom = edit.after[start + len(new) : below], edit.after[bottom_start:]
    if new and not new.strip():
        return  # of several line ends it does not matter which one goes
    parts = (top, above_typed, head, middle, new, tail, below_typed, bottom)
    if any(one[-1:] == "\r" for one in parts) or any(one[:1] == "\n" and one != "\n" for one in parts):
        return
    current = top + above_typed + head + new + tail + below_typed + bottom
    expected = {top + above_typed + head + middle + tail + below_typed + bottom}
    # A word typed where text was deleted may stand on either side of it, a line may not.
    if not new and not head and "\n" not in above_typed:
        expected.add(top + middle + above_typed + tail + below_typed + bottom)
    if not new and not tail and "\n" not in below_typed:
        expected.add(top + above_typed + head + below_typed + middle + bottom)
    try:
        result = revert(edit, current)
    except MatchError:
        return
    assert result.before == current
    assert result.after in expected


# -------------------------------------------------------------------- whether it is there at all


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    ("search", "replace"),
    [
        ("return 2", "value = 2\n    return value"),
        ("def g():\n    return 2\n\n", ""),
        ("def h", "def i():\n    return 4\n\ndef h"),
    ],
)
def test_whether_an_edit_has_arrived_is_seen_also_where_the_user_has_typed_elsewhere(
    search: str, replace: str, newline: str
) -> None:
    edit = edited(search, replace)
    for text, expected in ((edit.after, True), (BEFORE, False)):
        for typed in (text, "# top\n" + text, text + "# end\n", text.replace("return 1", "return 10")):
            assert arrived(edit, typed.replace("\n", newline)) is expected
    assert arrived(edit, "another text\n") is None
    assert arrived(edit, None) is False


def test_a_file_that_was_to_be_created_has_arrived_when_it_is_there_with_its_text() -> None:
    edit = rewrite(PATH, None, "a\nb\n")
    assert arrived(edit, "a\r\nb\r\n") is True
    assert arrived(edit, "a\n") is None
    assert arrived(edit, None) is False


@given(st.text("ab\n"), st.text("o\n"), st.text("n\n"), st.text("ab\n"))
def test_what_is_there_is_never_taken_for_missing_nor_the_other_way_round(
    head: str, old: str, new: str, tail: str
) -> None:
    edit = FileEdit(PATH, head + old + tail, len(head), len(head + old), new)
    # Line ends alone are like those that were typed.
    if old != new and all(part == "" or part.strip() for part in (old, new)):
        for above, below in (("", ""), ("typed\n", ""), ("", "typed\n"), ("typed\n", "typed\n")):
            assert arrived(edit, above + edit.after + below) is not False
            assert arrived(edit, above + head + old + tail + below) is not True
