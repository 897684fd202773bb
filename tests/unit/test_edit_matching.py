"""What `replace_once` matches, what it refuses, and what the refusal says."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hel_lsp.errors import InvalidArguments, MatchError, ToolError
from hel_lsp.messages import FileEdit
from hel_lsp.tools.edit import replace_once, rewrite

PATH = Path("file.txt")


def replaced(text: str, search: str, replace: str) -> str:
    edit = replace_once(PATH, text, search, replace)
    assert edit.before == text
    return edit.after


def refusal(text: str, search: str, replace: str = "something else") -> str:
    with pytest.raises(ToolError) as caught:
        replace_once(PATH, text, search, replace)
    return caught.value.message


# ------------------------------------------------------------------ once, or not at all


@pytest.mark.parametrize(
    ("text", "search", "count", "lines"),
    [
        ("x=1\ny=1\n", "1", 2, "1, 2"),
        ("[dev]\nlog=on\n[prod]\nlog=on\n", "log=on", 2, "2, 4"),
        ("aaa\n", "aa", 2, "1, 1"),
        ("x\r\n\r\n\r\ny\r\n", "\n\n", 2, "1, 2"),
        ("a\rb\na\n", "a", 2, "1, 3"),
    ],
)
def test_a_search_that_occurs_more_than_once_is_refused_with_count_and_lines(
    text: str, search: str, count: int, lines: str
) -> None:
    message = refusal(text, search)
    assert f"occurs {count} times" in message
    assert f"lines {lines}." in message


def test_more_of_the_surroundings_makes_an_ambiguous_search_unique() -> None:
    text = "[dev]\nlog=on\n[prod]\nlog=on\n"
    edit = replace_once(PATH, text, "[prod]\nlog=on", "[prod]\nlog=off")
    assert edit.after == "[dev]\nlog=on\n[prod]\nlog=off\n"
    assert text.count("\n", 0, edit.start) == 3


def test_thousands_of_occurrences_are_told_without_listing_them() -> None:
    message = refusal("a\n" * 50_000, "a")
    assert "occurs 50000 times" in message
    assert len(message) < 300


def test_places_that_each_cost_a_long_search_are_counted_as_far_as_that_is_cheap() -> None:
    message = refusal("a" * 1_000_000, "a" * 1_000)
    assert "at least 1000 times" in message
    assert "occurs 101 times" in refusal("a" * 1_100, "a" * 1_000)


@pytest.mark.parametrize("text", ["x\n" * 300, "x\r\n" * 300, "x\r\nx\n" * 150], ids=["lf", "crlf", "mixed"])
def test_the_count_is_that_of_all_places_with_overlaps_and_whatever_the_line_ends(text: str) -> None:
    assert "occurs 299 times" in refusal(text, "x\nx\n")
    assert "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …" in refusal(text, "x\nx\n")


@pytest.mark.parametrize(
    ("text", "search"),
    [("q(2)\n", "q(9)"), ("rate_limt = 5\n", "rate_limit"), ("total = sum(items)\n", "total = sum(item)")],
)
def test_a_near_match_is_a_hint_and_never_an_edit(text: str, search: str) -> None:
    message = refusal(text, search)
    assert "not found" in message
    assert "line 1" in message
    assert text.strip() in message


def test_the_first_line_that_differs_is_named_in_a_long_search() -> None:
    text = "import os\n\ndef f():\n    a = 1\n    return 1\n\ndef g():\n    a = 1\n    return 3\n"
    message = refusal(text, "def g():\n    a = 1\n    return 2")
    assert "line 7" in message
    assert "line 9, which reads:\n    return 3\n" in message


def test_a_search_that_begins_above_the_first_line_is_shown_from_there() -> None:
    message = refusal("target = compute(1)\nother\nlast\n", "x\ny\nz\ntarget = compute(1)")
    assert "at line 1, which reads:\ntarget = compute(1)\n" in message


def test_a_text_with_nothing_alike_says_so() -> None:
    assert "Nothing in the file comes near" in refusal("alpha\nbeta\n", "zzzzqqqq(1, 2, 3)")
    assert "the file is empty" in refusal("", "x")


def test_one_refused_call_leaves_the_others_standing() -> None:
    text, failures = "one\ntwo\nthree\n", 0
    for search, replace in (("one", "1"), ("missing", "x"), ("three", "3")):
        try:
            text = replaced(text, search, replace)
        except MatchError:
            failures += 1
    assert (text, failures) == ("1\ntwo\n3\n", 1)


def test_two_calls_on_one_line_both_land() -> None:
    text = replaced("if l<r {l} else {r}\n", "l<r", "a<b")
    assert replaced(text, "{l}", "{a}") == "if a<b {a} else {r}\n"


# ------------------------------------------------------------------ literally


@pytest.mark.parametrize(
    ("text", "search", "replace", "expected"),
    [
        ("f(x)[0].*+?^$|\n", "f(x)[0].*+?^$|", "g", "g\n"),
        ("a\n", "a", r"$& \1 \g<0> $1 %s {0}", "$& \\1 \\g<0> $1 %s {0}\n"),
        ("x\n", "x", 're("[\'\\"]")', 're("[\'\\"]")\n'),
        ("把“甲”改\n", "“甲”", "“乙”", "把“乙”改\n"),
        ("x\ny\n", "x", "a\\nb", "a\\nb\ny\n"),
        ("中文 a 日本語\n", "a", "b", "中文 b 日本語\n"),
        ("a\u00a0b c\n", "c", "d", "a\u00a0b d\n"),
        ("\ufeffa\n", "a", "b", "\ufeffb\n"),
        ("a\nb\nc\n", "b\n", "", "a\nc\n"),
    ],
)
def test_everything_is_literal(text: str, search: str, replace: str, expected: str) -> None:
    assert replaced(text, search, replace) == expected


@pytest.mark.parametrize(
    ("text", "search", "replace", "expected"),
    [
        ("a\nb\n", "a\n", "A\n", "A\nb\n"),
        ("a\n", "a", "b", "b\n"),
        ("a", "a", "b", "b"),
        ("a\n", "a\n", "b\n", "b\n"),
        ("a\n", "a\n", "a\nb\n", "a\nb\n"),
        ("a", "a", "a\n", "a\n"),
        ("a\n", "a\n", "a", "a"),
        ("a\n\n", "a\n\n", "a\n", "a\n"),
        ("a\n", "a\n", "", ""),
    ],
)
def test_the_final_newline_is_what_was_asked_for(text: str, search: str, replace: str, expected: str) -> None:
    assert replaced(text, search, replace) == expected


# ------------------------------------------------------------------ calls that can make no edit


@pytest.mark.parametrize("text", ["keep\n", "abc", ""])
def test_an_empty_search_is_refused_for_an_existing_file(text: str) -> None:
    with pytest.raises(InvalidArguments, match="must not be empty"):
        replace_once(PATH, text, "", "add\n")


@pytest.mark.parametrize(("search", "replace"), [("a", "a"), ("a\nb", "a\r\nb"), ("missing", "missing")])
def test_a_replacement_equal_to_the_search_is_no_change(search: str, replace: str) -> None:
    with pytest.raises(InvalidArguments, match="No change"):
        replace_once(PATH, "a\nb\n", search, replace)


@pytest.mark.parametrize(("character", "name"), [("\0", "U+0000"), ("\ud83d", "U+D83D")])
def test_a_character_that_no_file_holds_is_refused(character: str, name: str) -> None:
    with pytest.raises(InvalidArguments, match=name.replace("+", r"\+")):
        replace_once(PATH, "a\n", "a", f"b{character}")
    with pytest.raises(InvalidArguments, match=name.replace("+", r"\+")):
        rewrite(PATH, None, character)


# ------------------------------------------------------------------ already applied


@pytest.mark.parametrize(
    ("text", "search", "replace"),
    [
        ("pub struct S {}\n", "struct S {}\n", "pub struct S {}"),
        ("pub struct S {}\n", "struct S {}", "pub struct S {}"),
        ("pub struct S {}\n", "struct S {}", "pub struct S {}\n"),
        ("pub struct S {}\r\n", "struct S {}\n", "pub struct S {}\n"),
        ("import os\nimport sys\nx\n", "import os\n", "import os\nimport sys\n"),
        ("a\nb\n", "b", "a\nb"),
    ],
)
def test_an_edit_that_stands_there_already_is_not_made_twice(text: str, search: str, replace: str) -> None:
    assert refusal(text, search, replace).startswith("Already applied")


@pytest.mark.parametrize(
    ("text", "search", "replace", "expected"),
    [
        ("foo\nbar\n", "foo\n", "foo", "foobar\n"),
        ("b  a\n", "a", "b a", "b  b a\n"),
        ("pub x;\nstruct S;\n", "struct S", "pub struct S", "pub x;\npub struct S;\n"),
    ],
)
def test_what_only_resembles_an_applied_edit_is_made(text: str, search: str, replace: str, expected: str) -> None:
    assert replaced(text, search, replace) == expected


def test_the_same_call_twice_is_applied_once() -> None:
    text = replaced("old()\n", "old()", "new()")
    assert "may be already applied" in refusal(text, "old()", "new()")


# ------------------------------------------------------------------ why it does not match


@pytest.mark.parametrize(
    ("text", "search", "expected"),
    [
        ("\tif x:\n", "    if x:", "line 1 starts with a TAB where `search` has 4 spaces"),
        ("    if x:\n", "\tif x:", "line 1 starts with 4 spaces where `search` has a TAB"),
        ("y\n\tif x:\n\t\tz\n", "if x:\n        z", "line 3 starts with 2 TABs where `search` has 8 spaces"),
        ("a\u00a0b\n", "a b", "line 1, column 2 has U+00A0 NO-BREAK SPACE where `search` has a space"),
        ("x\n a b\n", "a\u00a0b", "column 3 has a space where `search` has U+00A0 NO-BREAK SPACE"),
        ("a \u3000b\n", "a  b", "column 3 has U+3000 IDEOGRAPHIC SPACE"),
        ("foo\u200bbar\n", "foobar", "column 4 has U+200B ZERO WIDTH SPACE where `search` has nothing"),
        ("a\fb\n", "a b", "U+000C"),
        ("say “hi”\n", 'say "hi"', 'column 5 has “ (U+201C) where `search` has " (U+0022)'),
        ("it's\n", "it’s", "column 3 has ' (U+0027) where `search` has ’ (U+2019)"),
        ("a – b\n", "a - b", "U+2013"),
        (
            "caf\u00e9\n",
            "cafe\u0301",
            "(U+00E9 composed, NFC) where `search` has e\u0301 (U+0065 U+0301 decomposed, NFD)",
        ),
        ("カ\u3099\n", "ガ", "decomposed, NFD"),
        ("a  \nb\n", "a\nb", "line 1, column 2 has 2 spaces at its end where `search` has nothing"),
        ("a\nb\n", "a \nb", "line 1, column 2 has nothing at its end where `search` has a space"),
        ("a\nb\n", "a\nb\t", "line 2, column 2 has nothing at its end where `search` has a TAB"),
        ("Hello\n", "hello", "has H (U+0048) where `search` has h (U+0068)"),
        ("foo()\n", "  12 | foo()", "looks like a line-number prefix ('  12 | '); without it, it matches at line 1"),
        ("a\nfoo()\nbar()\n", "2\tfoo()\n3\tbar()", "line-number prefix"),
        ("a\nfoo()\nbar()\n", "   2→foo()\n   3→bar()", "line-number prefix"),
        ("a\nb\n", "a\\nb", r"literal \n (a backslash and what follows it)"),
        ("x\n\ty\n", "x\\n\\ty", "unescaped it matches at line 1"),
        ('say("x")\n', 'say(\\"x\\")', r"literal \""),
        ("a\rb\n", "a\nb", "lone carriage return (U+000D)"),
    ],
)
def test_the_refusal_names_what_differs(text: str, search: str, expected: str) -> None:
    message = refusal(text, search)
    assert "not found" in message
    assert expected in message


def test_all_kinds_of_difference_are_named_together() -> None:
    message = refusal("foo\n    bar\nbaz\n", "foo\n\tbar  \nbaz")
    assert "line 2 starts with 4 spaces where `search` has a TAB" in message
    assert "line 2, column 8 has nothing at its end where `search` has 2 spaces" in message


def test_hints_come_for_any_text_without_an_error_of_their_own() -> None:
    chance = random.Random(7)
    pieces = [
        "\n",
        "\r",
        "\r\n",
        "\t",
        " ",
        "\u00a0",
        "a",
        "B",
        "é",
        "e\u0301",
        "“",
        '"',
        "\\n",
        "1: ",
        "|",
        "😀",
        "ß",
        "İ",
    ]
    for _ in range(3_000):
        text = "".join(chance.choices(pieces, k=chance.randrange(30)))
        search = "".join(chance.choices(pieces, k=chance.randrange(1, 8)))
        if search.replace("\r\n", "\n") not in text.replace("\r\n", "\n"):
            assert "not found" in refusal(text, search)


# ------------------------------------------------------------------ whole files


def test_a_new_file_gets_the_content_as_it_is() -> None:
    assert rewrite(PATH, None, "a\r\nb\n") == FileEdit(PATH, None, 0, 0, "a\r\nb\n")
    assert rewrite(PATH, None, "a\nb\n", newline="\r\n").after == "a\r\nb\r\n"
    assert rewrite(PATH, None, "").after == ""


@pytest.mark.parametrize(
    ("text", "content", "span"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", (2, 3, "B")),
        ("a\nb\n", "a\nb\nc\n", (3, 3, "\nc")),
        ("a\nb\n", "", (0, 4, "")),
        ("", "x\n", (0, 0, "x\n")),
        ("a\r\nb\r\n", "a\nB\n", (3, 4, "B")),
    ],
)
def test_a_whole_file_is_replaced_by_the_smallest_edit(text: str, content: str, span: tuple[int, int, str]) -> None:
    edit = rewrite(PATH, text, content)
    assert (edit.start, edit.end, edit.text) == span


@pytest.mark.parametrize("content", ["a\nb\n", "a\r\nb\r\n"])
def test_a_whole_file_of_the_same_content_is_no_change(content: str) -> None:
    with pytest.raises(MatchError, match="No change"):
        rewrite(PATH, "a\r\nb\r\n", content)
