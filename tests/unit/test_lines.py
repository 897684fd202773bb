"""Lines and positions, against the encoders of Python as an independent measure."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hel_lsp.tools.lines import PositionEncoding, offset_to_position, position_to_offset, split_lines

ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")
texts = st.lists(
    st.sampled_from(
        ["\n", "\r\n", "\r", "a", "ab c", "é", "e\u0301", "😀", "中", "\f", "\v", "\u0085", "\u2028", "\ufeff"]
    ),
    max_size=15,
).map("".join)


def width(text: str, encoding: PositionEncoding) -> int:
    size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    return len(text.encode(encoding + ("-le" if size > 1 else ""))) // size


def position(text: str, offset: int, encoding: PositionEncoding) -> tuple[int, int]:
    """By definition: how many line ends are before, and what is left of the line."""
    lines = re.split("\r\n|\n|\r", text[:offset])
    return len(lines) - 1, width(lines[-1], encoding)


@given(texts, st.sampled_from(ENCODINGS))
def test_every_offset_has_a_position_that_leads_back(text: str, encoding: PositionEncoding) -> None:
    for offset in range(len(text) + 1):
        if text[max(offset - 1, 0) : offset + 1] == "\r\n":
            assert offset_to_position(text, offset, encoding) == position(text, offset - 1, encoding)
            continue
        found = offset_to_position(text, offset, encoding)
        assert found == position(text, offset, encoding)
        assert position_to_offset(text, *found, encoding) == offset


@given(texts, st.integers(-1, 20), st.integers(-1, 40), st.sampled_from(ENCODINGS))
def test_every_position_means_an_offset_and_none_is_refused(
    text: str, line: int, character: int, encoding: PositionEncoding
) -> None:
    offset = position_to_offset(text, line, character, encoding)
    assert 0 <= offset <= len(text)
    back_line, back_character = offset_to_position(text, offset, encoding)
    assert (back_line, back_character) <= (max(line, 0), max(character, 0))


@given(texts)
def test_the_lines_are_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(re.fullmatch("[^\r\n]*(\r\n|\n|\r)", line) for line in lines[:-1])
    assert len(lines) == offset_to_position(text, len(text), "utf-32")[0] + (text[-1:] not in ("", "\n", "\r"))


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 9), ("utf-16", 5), ("utf-32", 3)])
def test_columns_after_emoji(encoding: PositionEncoding, character: int) -> None:
    text = "😀😀 x\n"
    assert offset_to_position(text, text.index("x"), encoding) == (0, character)
    assert position_to_offset(text, 0, character, encoding) == text.index("x")


def test_an_insertion_at_a_byte_offset_lands_between_the_characters() -> None:
    offset = position_to_offset("öbc", 0, 2, "utf-8")
    assert "öbc"[:offset] + "a" + "öbc"[offset:] == "öabc"


@pytest.mark.parametrize("odd", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"])
def test_only_newlines_and_carriage_returns_end_a_line(odd: str) -> None:
    text = f"a{odd}b\nc\n"
    assert offset_to_position(text, text.index("c"), "utf-16") == (1, 0)
    assert split_lines(text) == [f"a{odd}b\n", "c\n"]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("", (0, 0)),
        ("abc", (0, 3)),
        ("a\n", (1, 0)),
        ("a\r", (1, 0)),
        ("a\r\n", (1, 0)),
        ("\n\n", (2, 0)),
        ("a\nb", (1, 1)),
    ],
)
def test_the_end_of_a_text_has_a_position(text: str, end: tuple[int, int]) -> None:
    assert offset_to_position(text, len(text), "utf-16") == end
    assert position_to_offset(text, *end, "utf-16") == len(text)


@pytest.mark.parametrize(
    ("line", "character", "offset"),
    [(0, 99, 1), (1, 99, 4), (2, 0, 6), (2, 5, 6), (7, 0, 6), (1, 0, 3)],
)
def test_a_position_too_far_is_the_end_of_its_line_or_of_the_text(line: int, character: int, offset: int) -> None:
    assert position_to_offset("a\r\nb\r\n", line, character, "utf-16") == offset


@pytest.mark.parametrize(("encoding", "inside"), [("utf-8", 2), ("utf-8", 4), ("utf-16", 2)])
def test_a_position_inside_a_character_is_its_start(encoding: PositionEncoding, inside: int) -> None:
    assert position_to_offset("a😀b", 0, inside, encoding) == 1


def test_half_a_surrogate_pair_from_a_client_has_a_width() -> None:
    assert offset_to_position("\ud83dx", 1, "utf-16") == (0, 1)
    assert position_to_offset("\ud83dx", 0, 1, "utf-16") == 1
