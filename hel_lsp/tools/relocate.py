"""Where a stretch of one text stands in a later one: exact, or not at all.

The sharp answer comes first: what lies wholly before or wholly behind everything that changed has kept its place, or
has moved by the difference in length. Where changes lie on both sides, the lines around the stretch decide, as many of
them as make them unique in the earlier text. A diff would answer more often, and sometimes by chance.

Deleted text leaves a gap, a place with nothing in it. It is found by its two neighbours, which have to be there still,
side by side: a line typed into the gap could belong above or below what was deleted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hel_lsp.errors import MatchError

_CHANGED = "The lines that the edit made, or those beside them, were changed since, so they stay."


def place_since(after: str, current: str, start: int, end: int) -> int:
    """Where the text at `start` to `end` of `after` starts in `current`.

    Raises MatchError where it was changed or cannot be told from other text.
    """
    if after == current:
        return start
    change = _change(after, current)
    return _place_of_text(change, start, end) if start < end else _place_of_gap(change, start)


def common_prefix(a: str, b: str) -> int:
    """Its length, found by halving: slices are compared at the speed of memory, in all about twice the text."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(a: str, b: str) -> int:
    """Its length, found like that of the common prefix."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, slots=True)
class _Change:
    """What differs, taken as one piece: `first` to `last` of `after`. All of it may not have changed.

    Head and tail may overlap: of `aa` either `a` can have been deleted, and then both are in the piece.
    """

    after: str
    current: str
    head: int
    tail: int
    first: int
    last: int

    @property
    def shift(self) -> int:
        return len(self.current) - len(self.after)

    @property
    def is_insertion(self) -> bool:
        """Whether text was typed in one place and nothing deleted."""
        return self.shift > 0 and self.head + self.tail >= len(self.after)

    @property
    def has_line_end(self) -> bool:
        return "\n" in self.after[self.first : self.last] + self.current[self.first : self.last + self.shift]


def _change(after: str, current: str) -> _Change:
    head, tail = common_prefix(after, current), common_suffix(after, current)
    shorter = min(len(after), len(current))
    first, last = min(head, shorter - tail), len(after) - min(tail, shorter - head)
    return _Change(after, current, head, tail, first, last)


# ------------------------------------------------------------------ text that is there


def _place_of_text(change: _Change, start: int, end: int) -> int:
    """What was typed right beside the text is not part of it, unless both make one word."""
    after, current, moved = change.after, change.current, start + change.shift
    ends_alone, starts_alone = not _within_word(current, end), not _within_word(current, moved)
    if change.is_insertion:
        if change.head + ends_alone > end:
            return start
        if change.tail + starts_alone > len(after) - start:
            return moved
    low, high = _reach(after, start, end)
    if high < change.first + ends_alone:
        return start
    if low > change.last - starts_alone:
        return moved
    block = _line_start(after, low - 1), _line_end(after, high)
    return start - block[0] + _place_of_lines(after, current, *block)


def _reach(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch with what repeats it on both sides: of `x x`, either `x ` or ` x` can be the one that was added."""
    return start - common_suffix(text[:start], text[:end]), end + common_prefix(text[start:], text[end:])


def _within_word(text: str, offset: int) -> bool:
    return offset > 0 and re.fullmatch(r"\w\w", text[offset - 1 : offset + 1]) is not None


# ------------------------------------------------------------------ a gap


def _place_of_gap(change: _Change, gap: int) -> int:
    after, current = change.after, change.current
    low, high = _line_start(after, gap - 1), _line_end(after, gap + 1)
    at_start, at_end = gap == 0, after[gap:] in ("", "\n")
    if not change.has_line_end:
        # Within a line the characters on both sides are neighbours enough.
        before, behind = gap - 1 >= change.last, gap + 1 <= change.first
    else:
        # A whole line that was typed or deleted ends in the same `\n` as the one above it: both lines have to be as
        # they were. At an end of the text nothing may have come between.
        starts_line = current.endswith("\n", 0, max(low + change.shift, 0))
        before, behind = low >= change.last and starts_line and not at_start, high + at_end <= change.first
    if behind:
        return gap
    if before:
        return gap + change.shift
    place = _place_of_lines(after, current, low, high)
    if (at_start and place > 0) or (at_end and place + len(after) - low < len(current)):
        raise MatchError(_CHANGED)
    return place + gap - low


# ------------------------------------------------------------------ whole lines


def _place_of_lines(after: str, current: str, start: int, end: int) -> int:
    """Where the lines at `start` to `end` of `after`, found with their surroundings, start in `current`."""
    block_start, block_end, context = start, end, 1
    while _is_repeated(after, after[block_start:block_end]):
        for _ in range(context):
            block_start, block_end = _line_start(after, block_start - 1), _line_end(after, block_end)
        context *= 2
    block = after[block_start:block_end]
    place = _place_of_block(current, block)
    if place is None:
        raise MatchError(_CHANGED)
    if _is_repeated(current, block):
        raise MatchError("The lines that the edit made stand there more than once now, so they stay.")
    return place + start - block_start


def _is_repeated(text: str, block: str) -> bool:
    place = _place_of_block(text, block)
    return place is not None and _place_of_block(text, block, place + 1) is not None


def _place_of_block(text: str, block: str, start: int = 0) -> int | None:
    """Where `block` stands as whole lines, at `start` or behind it."""
    lines, wanted = (f"\n{part}" if part.endswith("\n") else f"\n{part}\n" for part in (text, block))
    place = lines.find(wanted, start)
    return place if place >= 0 else None


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, max(offset, 0)) + 1


def _line_end(text: str, offset: int) -> int:
    return text.find("\n", offset) + 1 or len(text)
