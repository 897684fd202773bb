"""Which lines two texts share, for line endings that stay, for counts and for previews.

`difflib` alone takes seconds on a few thousand lines that change here and there, so lines that occur once in both
texts are matched first (patience diff) and only the small gaps between them go to `difflib`. A gap too large even for
that counts as changed altogether.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from hel_lsp.messages import FileEdit

_CONTEXT = 3
_GAP_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class ChangedBlock:
    """Lines `old_start` to `old_end` of the old text stand where `new_start` to `new_end` of the new one do."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changed_blocks(old: Sequence[str], new: Sequence[str]) -> list[ChangedBlock]:
    """The blocks in which two lists of lines differ, in order; what lies between them is equal."""
    blocks: list[ChangedBlock] = []
    i = j = 0
    for match_i, match_j in [*_matches(old, new), (len(old), len(new))]:
        if i < match_i or j < match_j:
            blocks.append(ChangedBlock(i, match_i, j, match_j))
        i, j = match_i + 1, match_j + 1
    return blocks


def added_and_removed(edit: FileEdit) -> tuple[int, int]:
    """How many lines the edit adds and how many it removes, as its unified diff shows them."""
    old, new, _ = _surroundings(edit, 0)
    blocks = changed_blocks(old, new)
    return sum(b.new_end - b.new_start for b in blocks), sum(b.old_end - b.old_start for b in blocks)


def unified_diff(edit: FileEdit, name: str) -> str:
    """The edit as `diff -u` prints it, with every line ending shown as `\\n`."""
    old, new, first = _surroundings(edit, _CONTEXT)
    if not (hunks := list(_hunks(changed_blocks(old, new)))):
        return ""
    source = "/dev/null" if edit.before is None else f"a/{name}"
    parts = [f"--- {source}\n+++ b/{name}\n"]
    for hunk in hunks:
        start, end = max(hunk[0].old_start - _CONTEXT, 0), min(hunk[-1].old_end + _CONTEXT, len(old))
        new_start = hunk[0].new_start - (hunk[0].old_start - start)
        new_end = hunk[-1].new_end + (end - hunk[-1].old_end)
        parts.append(f"@@ -{_range(first + start, end - start)} +{_range(first + new_start, new_end - new_start)} @@\n")
        for block in hunk:
            parts += [_row(" ", line) for line in old[start : block.old_start]]
            parts += [_row("-", line) for line in old[block.old_start : block.old_end]]
            parts += [_row("+", line) for line in new[block.new_start : block.new_end]]
            start = block.old_end
        parts += [_row(" ", line) for line in old[start:end]]
    return "".join(parts)


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of equal lines, both sides rising."""
    head = _equal_head(old, new, 0, len(old), 0, len(new))
    yield from ((k, k) for k in range(head))
    i, j = head, head
    tail = _equal_tail(old, new, head, len(old), head, len(new))
    end = (len(old) - tail, len(new) - tail)
    for next_i, next_j in [*_lines_that_occur_once(old, new, head, *end), end]:
        yield from _matches_in_gap(old, new, i, next_i, j, next_j)
        if (next_i, next_j) != end:
            yield next_i, next_j
        i, j = next_i + 1, next_j + 1
    yield from ((end[0] + k, end[1] + k) for k in range(tail))


def _lines_that_occur_once(
    old: Sequence[str], new: Sequence[str], start: int, old_end: int, new_end: int
) -> list[tuple[int, int]]:
    """The longest rising run of lines that occur once on both sides."""
    old_counts, new_counts = Counter(old[start:old_end]), Counter(new[start:new_end])
    place = {line: j for j, line in enumerate(new[start:new_end], start) if new_counts[line] == 1}
    pairs = [(i, place[old[i]]) for i in range(start, old_end) if old_counts[old[i]] == 1 and old[i] in place]
    lowest: list[int] = []  # the smallest `j` that ends a run of each length
    piles: list[int] = []  # the pair that it belongs to
    before: list[int] = []  # for each pair, the one before it in its run
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(lowest, j)
        lowest[length : length + 1] = [j]
        before.append(piles[length - 1] if length else -1)
        piles[length : length + 1] = [index]
    run: list[tuple[int, int]] = []
    index = piles[-1] if piles else -1
    while index >= 0:
        run.append(pairs[index])
        index = before[index]
    return run[::-1]


def _matches_in_gap(
    old: Sequence[str], new: Sequence[str], i: int, old_end: int, j: int, new_end: int
) -> Iterator[tuple[int, int]]:
    head = _equal_head(old, new, i, old_end, j, new_end)
    yield from ((i + k, j + k) for k in range(head))
    i, j = i + head, j + head
    tail = _equal_tail(old, new, i, old_end, j, new_end)
    old_end, new_end = old_end - tail, new_end - tail
    if 0 < (old_end - i) * (new_end - j) <= _GAP_LIMIT:
        matcher = SequenceMatcher(None, old[i:old_end], new[j:new_end], autojunk=False)
        for block in matcher.get_matching_blocks():
            yield from ((i + block.a + k, j + block.b + k) for k in range(block.size))
    yield from ((old_end + k, new_end + k) for k in range(tail))


def _equal_head(old: Sequence[str], new: Sequence[str], i: int, old_end: int, j: int, new_end: int) -> int:
    count, most = 0, min(old_end - i, new_end - j)
    while count < most and old[i + count] == new[j + count]:
        count += 1
    return count


def _equal_tail(old: Sequence[str], new: Sequence[str], i: int, old_end: int, j: int, new_end: int) -> int:
    count, most = 0, min(old_end - i, new_end - j)
    while count < most and old[old_end - 1 - count] == new[new_end - 1 - count]:
        count += 1
    return count


def _surroundings(edit: FileEdit, context: int) -> tuple[list[str], list[str], int]:
    """The whole lines that the edit touches, before and after, with lines of context, and the number of the first."""
    before = edit.before or ""
    start = before.rfind("\n", 0, edit.start) + 1
    end = before.find("\n", edit.end) + 1 or len(before)
    for _ in range(context):
        start = before.rfind("\n", 0, max(start - 1, 0)) + 1
        end = before.find("\n", end) + 1 or len(before)
    old = before[start:end]
    new = before[start : edit.start] + edit.text + before[edit.end : end]
    return _lines(old), _lines(new), before.count("\n", 0, start) + 1


def _lines(text: str) -> list[str]:
    *lines, last = text.replace("\r\n", "\n").split("\n")
    return [line + "\n" for line in lines] + [last] * bool(last)


def _hunks(blocks: Sequence[ChangedBlock]) -> Iterator[list[ChangedBlock]]:
    hunk: list[ChangedBlock] = []
    for block in blocks:
        if hunk and block.old_start - hunk[-1].old_end > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(block)
    if hunk:
        yield hunk


def _range(first: int, count: int) -> str:
    # An empty range names the line before it, as `diff` does.
    return f"{first}" if count == 1 else f"{first if count else first - 1},{count}"


def _row(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"
