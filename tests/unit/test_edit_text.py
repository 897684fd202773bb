"""Every byte that an edit does not quote stays: line endings, odd characters, and where the edit sits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hel_lsp.errors import MatchError, ToolError
from hel_lsp.messages import FileEdit
from hel_lsp.tools.edit import replace_once, revert, rewrite

PATH = Path("file.txt")

PIECES = [
    *("\n", "\n", "\n", "\r", "a", "b", "ab", "x\n", " ", "\t", "é", "e\u0301", "😀", "中"),
    *("\f", "\v", "\u0085", "\u2028", "\u00a0", "\ufeff", "\u200b", "“", "\\n", "$&"),
]
pieces = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


# ------------------------------------------------------------------ an independent way to say what must come out


def tokens(text: str) -> list[str]:
    """Characters, with each `\\r\\n` as one."""
    return re.findall(r"(?s)\r\n|.", text)


def plain(text: str) -> list[str]:
    return ["\n" if token == "\r\n" else token for token in tokens(text)]


def places(text: list[str], search: list[str]) -> list[int]:
    return [k for k in range(len(text) - len(search) + 1) if text[k : k + len(search)] == search]


def splits_a_line_end(text: str, offset: int) -> bool:
    return text[max(offset - 1, 0) : offset + 1] == "\r\n"


def assert_smallest(edit: FileEdit) -> None:
    """No common first or last character that could be left out without cutting a `\\r\\n` in two."""
    assert edit.before is not None
    before, after = edit.before, edit.after
    new_end = edit.start + len(edit.text)
    for text, offset in ((before, edit.start), (before, edit.end), (after, edit.start), (after, new_end)):
        assert not splits_a_line_end(text, offset)
    if edit.start < edit.end and edit.text:
        widened = before[edit.start] == edit.text[0]
        if widened:
            assert splits_a_line_end(before, edit.start + 1) or splits_a_line_end(after, edit.start + 1)
        if before[edit.end - 1] == edit.text[-1] and not widened:
            assert splits_a_line_end(before, edit.end - 1) or splits_a_line_end(after, new_end - 1)


def endings(text: str) -> set[str]:
    return {"\r\n", "\n"}.intersection(tokens(text))


@st.composite
def quoted(draw: st.DrawFn) -> tuple[str, str, str]:
    """A text in `\\n` form, a search that is mostly a part of it, and a replacement that mostly resembles it."""
    text = draw(pieces)
    start = draw(st.integers(0, len(text)))
    search = text[start : draw(st.integers(start, len(text)))] or draw(pieces)
    cut = draw(st.integers(0, len(search)))
    replace = draw(st.sampled_from([search[:cut], search[cut:], ""])) + draw(pieces)
    return text, search, draw(st.sampled_from([replace, replace + search[cut:]]))


def outcome(text: str, search: str, replace: str, newline: str | None = None) -> tuple[FileEdit | None, str]:
    """The edit, or why there is none."""
    try:
        return replace_once(PATH, text, search, replace, newline=newline), ""
    except ToolError as error:
        return None, error.message


# ------------------------------------------------------------------ properties


@given(quoted(), st.sampled_from(["\n", "\r\n"]))
def test_a_unique_replacement_gives_exactly_the_expected_text_and_anything_else_nothing(
    case: tuple[str, str, str], ending: str
) -> None:
    text = case[0].replace("\n", ending)
    assume(len(endings(text)) < 2)
    search, replace = case[1], case[2]
    found = places(plain(text), plain(search))
    edit, message = outcome(text, search, replace)
    if edit is None:
        equal = plain(search) == plain(replace)
        assert not search or equal or len(found) != 1 or message.startswith("Already applied")
        return
    assert len(found) == 1
    k, whole = found[0], tokens(text)
    taken = next(iter(endings(text)), "\r\n" if re.search(r"^[^\n]*\r\n", replace) else "\n")
    new = [taken if token == "\n" else token for token in plain(replace)]
    assert edit.before == text
    assert edit.after == "".join([*whole[:k], *new, *whole[k + len(plain(search)) :]])
    assert_smallest(edit)
    assert revert(edit, edit.after).after == text


@given(quoted(), st.data())
def test_in_a_mixed_text_all_that_is_not_quoted_stays(case: tuple[str, str, str], data: st.DataObject) -> None:
    endings = st.sampled_from(["\n", "\r\n"])
    text = re.sub("\n", lambda _: data.draw(endings), case[0])
    found = places(plain(text), plain(case[1]))
    assume(len(found) == 1)
    edit, _ = outcome(text, case[1], case[2])
    if edit is None:
        return
    k, whole = found[0], tokens(text)
    head, tail = "".join(whole[:k]), "".join(whole[k + len(plain(case[1])) :])
    new = "".join(r"\r?\n" if token == "\n" else re.escape(token) for token in plain(case[2]))
    assert re.fullmatch(re.escape(head) + new + re.escape(tail), edit.after)
    assert_smallest(edit)
    assert revert(edit, edit.after).after == text


@given(quoted(), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["\n", "\r\n"]))
def test_for_a_client_with_other_line_ends_each_new_one_is_the_clients(
    case: tuple[str, str, str], ending: str, newline: str
) -> None:
    assume("\r" not in case[0] + case[2])
    text = case[0].replace("\n", ending)
    edit, _ = outcome(text, case[1], case[2], newline)
    if edit is None:
        return
    assert edit.after.replace("\r\n", "\n") == case[0].replace(case[1], case[2])
    assert edit.text.count("\n") == edit.text.count(newline)
    assert newline == "\r\n" or "\r" not in edit.text
    assert_smallest(edit)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["\n", "\r\n"])), unique_by=lambda line: line[0]), st.data()
)
def test_lines_that_stay_keep_their_own_ending(lines: list[tuple[int, str]], data: st.DataObject) -> None:
    assume(len(lines) > 1)
    text = "".join(f"line {number}{ending}" for number, ending in lines)
    first = data.draw(st.integers(0, len(lines) - 1))
    quoted_lines = lines[first : data.draw(st.integers(first + 1, len(lines)))]
    new: list[str] = []
    for number, _ in quoted_lines:
        new += data.draw(st.sampled_from([[f"line {number}"], [f"line {number}", "new"], ["new"], []]))
    search = "\n".join(f"line {number}" for number, _ in quoted_lines) + "\n"
    replace = "".join(f"{line}\n" for line in new)
    assume(search != replace)
    edit, message = outcome(text, search, replace)
    if edit is None:
        assert message.startswith("Already applied")
        return
    after = edit.after
    for number, ending in lines:
        if f"line {number}\n" in replace or (number, ending) not in quoted_lines:
            assert re.search(f"line {number}(\r?\n)", after)[1] == ending  # pyright: ignore[reportOptionalSubscript]


@given(pieces, pieces, st.sampled_from(["\n", "\r\n"]))
def test_a_whole_file_becomes_its_new_content_with_the_endings_it_had(old: str, new: str, ending: str) -> None:
    text = old.replace("\n", ending)
    assume(len(endings(text)) < 2 and plain(text) != plain(new))
    edit = rewrite(PATH, text, new)
    taken = next(iter(endings(text)), "\r\n" if re.search(r"^[^\n]*\r\n", new) else "\n")
    assert edit.after == "".join(taken if token == "\n" else token for token in plain(new))
    assert_smallest(edit)
    assert revert(edit, edit.after).after == text


@given(quoted(), st.sampled_from(["\n", "\r\n"]))
def test_with_a_final_newline_on_both_sides_the_edit_stays_in_front_of_it(
    case: tuple[str, str, str], ending: str
) -> None:
    text = case[0].replace("\r", "").replace("\n", ending) + ending
    edit, _ = outcome(text, case[1].replace("\r", ""), case[2].replace("\r", ""))
    if edit is not None and edit.after.endswith(ending):
        assert edit.end <= len(text) - len(ending)


# ------------------------------------------------------------------ cases


@pytest.mark.parametrize(
    ("text", "search", "replace", "expected"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "A\nB", "A\r\nB\r\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "A\r\nB", "A\r\nB\r\n"),
        ("a\nb\n", "a\r\nb", "A\r\nB", "A\nB\n"),
        ("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"),
        ("a\r\nb\r\n", "a\n", "", "b\r\n"),
        ("a\r\nb", "b", "b\nc\n", "a\r\nb\r\nc\r\n"),
        ("ab", "b", "b\r\nc", "ab\r\nc"),
        ("a\nb\r\nc", "c", "c\nd", "a\nb\r\nc\r\nd"),
    ],
)
def test_new_lines_take_the_ending_of_the_text(text: str, search: str, replace: str, expected: str) -> None:
    assert replace_once(PATH, text, search, replace).after == expected


@pytest.mark.parametrize(
    ("text", "search", "replace", "expected"),
    [
        ("a\r\nb\nc\r\n", "a\nb\nc", "A\nb\nC", "A\r\nb\nC\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc", "A\nB\nC", "A\r\nB\r\nC\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\n"),
        ("a\r\nb\nc\r\n", "b", "b\nX", "a\r\nb\nX\nc\r\n"),
        ("a\r\nb\nc\r\n", "a", "a\nX", "a\r\nX\r\nb\nc\r\n"),
        ("h\r\na\nb\r\n", "h\na\n", "h\na\nx\n", "h\r\na\nx\r\nb\r\n"),
        ("h\r\na\nb\r\n", "h\na", "h\na\nx", "h\r\na\nx\nb\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc", "c\nb", "c\r\nb\r\n"),
    ],
)
def test_in_a_mixed_text_new_lines_take_that_of_the_line_where_the_match_starts(
    text: str, search: str, replace: str, expected: str
) -> None:
    assert replace_once(PATH, text, search, replace).after == expected


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        ("a\r\nb\nc\r\nd\r\n", "a\nx\nb\nc\nd\ny\n", "a\r\nx\r\nb\nc\r\nd\r\ny\r\n"),
        ("a\r\nb\nc\n", "a\nb\nx\nc\n", "a\r\nb\nx\nc\n"),
        ("a\r\nb\n", "a\nx\nb\n", "a\r\nx\r\nb\n"),
    ],
)
def test_a_whole_file_keeps_the_endings_of_its_lines_and_gets_the_most_common_for_new_ones(
    text: str, content: str, expected: str
) -> None:
    assert rewrite(PATH, text, content).after == expected


@pytest.mark.parametrize(
    ("text", "search", "replace", "expected"),
    [
        ("p\rq\r\nr\n", "r", "R", "p\rq\r\nR\n"),
        ("a\rb\r", "b", "x\ny", "a\rx\ny\r"),
        ("a\r\r\nb\n", "b", "c", "a\r\r\nc\n"),
        ("a\rX\n", "X", "", "a\r\n"),
        ("a\rb\n", "a\rb", "c", "c\n"),
    ],
)
def test_a_lone_cr_is_a_character_like_any_other(text: str, search: str, replace: str, expected: str) -> None:
    edit = replace_once(PATH, text, search, replace)
    assert edit.after == expected
    assert_smallest(edit)


@pytest.mark.parametrize(
    ("text", "search"), [("a\rb\n", "a\nb"), ("a\r\nb\n", "a\r"), ("a\r\nb\r\n", "a\r"), ("a\r\r\nb\n", "a\n")]
)
def test_a_lone_cr_is_no_line_end_and_half_a_line_end_no_cr(text: str, search: str) -> None:
    with pytest.raises(MatchError):
        replace_once(PATH, text, search, "x")


@pytest.mark.parametrize(
    ("text", "search", "replace", "span"),
    [
        ("a\n", "a\n", "a\nb\n", (1, 1, "\nb")),
        ("a\r\n", "a\n", "a\nb\n", (1, 1, "\r\nb")),
        ("a\n", "a\n", "a\n\n", (1, 1, "\n")),
        ("a\nb\n", "b\n", "", (1, 3, "")),
        ("a\r\nb\r\n", "b\n", "", (1, 4, "")),
        ("a\nb\n", "b\n", "B\n", (2, 3, "B")),
        ("a\nb\n", "a\nb\n", "a\nb\nc\nd\n", (3, 3, "\nc\nd")),
        ("one two\n", "two", "too", (5, 6, "o")),
        ("a\nb\nc\n", "b\n", "", (2, 4, "")),
        ("h\r\na\nb\r\n", "h\na\n", "h\na\nx\n", (5, 5, "x\r\n")),
        ("x\r\ny\r\n", "x\n", "x\r", (1, 3, "\r")),
        ("aab\n", "ab", "aab", None),
    ],
)
def test_the_edit_is_the_smallest_and_in_front_of_the_final_line_end(
    text: str, search: str, replace: str, span: tuple[int, int, str] | None
) -> None:
    if span is None:
        with pytest.raises(MatchError, match="Already applied"):
            replace_once(PATH, text, search, replace)
        return
    edit = replace_once(PATH, text, search, replace)
    assert (edit.start, edit.end, edit.text) == span


def test_an_edit_for_a_client_with_other_line_ends_is_as_small() -> None:
    edit = replace_once(PATH, "a\r\nb\r\nc\r\n", "a\nb", "A\nx\nb", newline="\n")
    assert (edit.start, edit.end, edit.text) == (0, 1, "A\nx")
