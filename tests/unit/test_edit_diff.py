"""Counts and previews of an edit."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hel_lsp.messages import FileEdit
from hel_lsp.tools.diff import changed_blocks
from hel_lsp.tools.edit import added_and_removed, replace_once, rewrite, unified_diff

PATH = Path("file.txt")
TEXT = "".join(f"line {number}\n" for number in range(1, 21))


def test_a_diff_shows_the_change_with_three_lines_around_it() -> None:
    edit = replace_once(PATH, TEXT, "line 10\n", "line ten\nand more\n")
    assert unified_diff(edit, "dir/file.txt") == (
        "--- a/dir/file.txt\n+++ b/dir/file.txt\n@@ -7,7 +7,8 @@\n line 7\n line 8\n line 9\n"
        "-line 10\n+line ten\n+and more\n line 11\n line 12\n line 13\n"
    )
    assert added_and_removed(edit) == (2, 1)


@pytest.mark.parametrize(
    ("text", "search", "replace", "counts"),
    [
        ("a\n", "a\n", "a\nb\n", (1, 0)),
        ("a\nb\n", "b\n", "", (0, 1)),
        ("a\nb\nc\n", "a\nb\nc", "A\nb\nC", (2, 2)),
        ("a\r\nb\r\nc\r\n", "a\nb", "A\nx\nb", (2, 1)),
        ("a", "a", "a\n", (1, 1)),
        ("a b c\n", "b", "B", (1, 1)),
    ],
)
def test_counts_are_those_of_whole_lines(text: str, search: str, replace: str, counts: tuple[int, int]) -> None:
    edit = replace_once(PATH, text, search, replace)
    assert added_and_removed(edit) == counts
    rows = unified_diff(edit, "f").split("\n")[2:]
    assert (sum(row.startswith("+") for row in rows), sum(row.startswith("-") for row in rows)) == counts


def test_a_new_file_is_all_added() -> None:
    edit = rewrite(PATH, None, "a\nb\n")
    assert added_and_removed(edit) == (2, 0)
    assert unified_diff(edit, "f") == "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"


def test_a_missing_final_newline_is_shown() -> None:
    edit = replace_once(PATH, "a\nb\n", "b\n", "b")
    assert unified_diff(edit, "f").endswith(" a\n-b\n+b\n\\ No newline at end of file\n")


def test_changes_far_apart_are_separate_hunks() -> None:
    edit = rewrite(PATH, TEXT, TEXT.replace("line 2\n", "two\n").replace("line 19\n", ""))
    assert unified_diff(edit, "f").count("@@ -") == 2
    assert "@@ -16,5 +16,4 @@" in unified_diff(edit, "f")


def test_a_line_that_is_no_line_to_python_stays_in_one_piece() -> None:
    edit = replace_once(PATH, "a\fb\u2028c\nd\n", "d", "e")
    assert unified_diff(edit, "f").endswith("@@ -1,2 +1,2 @@\n a\fb\u2028c\n-d\n+e\n")


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c d\n", "}\n"]), max_size=25).map("".join)


@given(LINES, LINES, st.sampled_from(["", "end"]), st.sampled_from(["", "end"]))
def test_patch_makes_the_new_text_of_the_diff(old: str, new: str, old_end: str, new_end: str) -> None:
    old, new = old + old_end, new + new_end
    if old == new:
        return
    edit = rewrite(PATH, old, new)
    rows = unified_diff(edit, "f").split("\n")[2:]
    assert _patched(old, rows) == new
    assert added_and_removed(edit) == (
        sum(row.startswith("+") for row in rows),
        sum(row.startswith("-") for row in rows),
    )


def _patched(old: str, rows: list[str]) -> str:
    """The diff applied by hand, as `patch` would: context and removed rows have to be what the old text has there."""
    lines, result, at = old.splitlines(keepends=True), "", 0
    for number, row in enumerate(rows):
        cut = number + 1 < len(rows) and rows[number + 1].startswith("\\")
        line = row[1:] + ("" if cut else "\n")
        if row.startswith("@@"):
            first, count = (row.split(" ")[1][1:] + ",1").split(",")[:2]
            start = int(first) - (count != "0")
            result, at = result + "".join(lines[at:start]), start
        elif row.startswith("+"):
            result += line
        elif row[:1] in (" ", "-"):
            assert lines[at] == line
            result, at = result + (line if row[0] == " " else ""), at + 1
    return result + "".join(lines[at:])


@given(st.lists(st.sampled_from("abcde"), max_size=30), st.lists(st.sampled_from("abcde"), max_size=30))
def test_what_lies_between_changed_blocks_is_equal(old: list[str], new: list[str]) -> None:
    i = j = 0
    for block in changed_blocks(old, new):
        assert old[i : block.old_start] == new[j : block.new_start]
        i, j = block.old_end, block.new_end
    assert old[i:] == new[j:]


def test_a_diff_of_a_large_file_that_changes_everywhere_takes_no_seconds() -> None:
    text = "".join(f"line {number}\n}}\n\n" for number in range(20_000))
    edit = rewrite(PATH, text, text.replace("5\n", "five\n"))
    start = perf_counter()
    assert added_and_removed(edit) == (2_000, 2_000)
    assert perf_counter() - start < 3


def test_an_edit_of_nothing_has_no_diff() -> None:
    assert unified_diff(FileEdit(PATH, "a\n", 1, 1, ""), "f") == ""
