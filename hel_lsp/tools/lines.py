"""Lines and positions of a text, as the Language Server Protocol counts them.

Only `\\n`, `\\r\\n` and `\\r` end a line. `str.splitlines` also breaks at form feeds, vertical tabs, NEL and U+2028,
which no editor does, so nothing here uses it. Every function is linear with C-speed steps: counting and searching
run over the text, Python code runs only over a logarithmic number of pieces.
"""

from __future__ import annotations

import re
from typing import Literal

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
"""What a position's `character` counts: bytes, 16-bit units, or characters."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    """The lines with their endings; joined they are the text again.

    A final line end is not followed by another, empty line: `"a\\n"` is one line, `""` is none.
    """
    return _LINE.findall(text)


def offset_to_position(text: str, offset: int, encoding: PositionEncoding) -> tuple[int, int]:
    """The zero-based (line, character) of a character offset.

    An offset between `\\r` and `\\n` has no position of its own: it becomes that of the line's end.
    """
    if _splits_line_end(text, offset):
        offset -= 1
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return _line_ends(text, 0, start), _units(text[start:offset], encoding)


def line_number(text: str, offset: int) -> int:
    """The number, counted from 1, of the line that the offset is on."""
    return offset_to_position(text, offset, "utf-32")[0] + 1


def position_to_offset(text: str, line: int, character: int, encoding: PositionEncoding) -> int:
    """The character offset of a zero-based position.

    As the protocol asks, a character past the end of its line means that end; a line past the last one means the end
    of the text. A position inside a character (half a surrogate pair, a byte of several) means its start.
    """
    start = _line_start(text, line)
    if start is None:
        return len(text)
    ends = [end for end in (text.find("\n", start), text.find("\r", start)) if end >= 0]
    content = text[start : min(ends, default=len(text))]
    return start + _characters(content, character, encoding)


def _line_start(text: str, line: int) -> int | None:
    """Where a line starts, found by halving: the line ends of each half are counted, not visited."""
    if line <= 0:
        return 0
    low, high, missing = 0, len(text), line
    if _line_ends(text, low, high) < missing:
        return None
    while high - low > 2:
        middle = (low + high) // 2
        if _splits_line_end(text, middle):
            middle += 1
        ends = _line_ends(text, low, middle)
        if ends < missing:
            low, missing = middle, missing - ends
        else:
            high = middle
    while missing:
        low += 2 if text.startswith("\r\n", low) else 1
        missing -= text[low - 1] in "\r\n"
    return low


def _line_ends(text: str, start: int, end: int) -> int:
    ends = text.count("\n", start, end)
    returns = text.count("\r", start, end)
    return ends + returns - text.count("\r\n", start, end) if returns else ends


def _splits_line_end(text: str, offset: int) -> bool:
    return offset > 0 and text.startswith("\r\n", offset - 1)


def _units(text: str, encoding: PositionEncoding) -> int:
    if encoding == "utf-32" or text.isascii():
        return len(text)
    # A client may send half a surrogate pair in its JSON; it still has a width.
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _characters(line: str, units: int, encoding: PositionEncoding) -> int:
    """How many whole characters of the line fit into `units`, found by halving."""
    if encoding == "utf-32" or line.isascii():
        return min(max(units, 0), len(line))
    low, high = 0, len(line) + 1
    while high - low > 1:
        middle = (low + high) // 2
        width = _units(line[low:middle], encoding)
        if width <= units:
            low, units = middle, units - width
        else:
            high = middle
    return low
