"""The edit engine: text in, edit out, exact or not at all.

The order of its steps, and why:

1. Arguments that can make no edit in any text (an empty search, a replacement equal to it, characters that no text
   file holds) are refused before the text is looked at, so nobody is asked about them.
2. Text, search and replacement are compared with `\\r\\n` read as `\\n`: a model writes `\\n` whatever the file has.
   A lone `\\r` is a character like any other. Nothing else is ever converted: what merely looks alike is a hint in
   the error.
3. Places are counted with overlaps: `aa` stands in `aaa` twice, and editing either one would be a guess.
4. Only then is "already applied" asked, since the answer depends on where the one place lies in the replacement.
5. Offsets are mapped back to the text as it was given, and each line of the replacement gets its ending there before
   anything is trimmed: in a text with mixed endings the trimming has to see which bytes really differ.
6. The common suffix is cut off before the common prefix. A line added after the last one then becomes `\\nline` in
   front of the final line end; the other order would put `line\\n` at the end of the file, where some editors add a
   blank line. A pure insertion or deletion that still touches the end moves in front of that line end too.
7. Last, because each step before may cause it: a boundary between `\\r` and `\\n`, in the old text or in the new, is
   moved out of the pair, since no editor has a position there.

`newline` overrides what new lines take, for a client that holds the file with other line ends than the disk. Then the
edit is made on the text with `\\n` alone, as every ending that is sent has to be the client's.

What runs over a whole text is `str` methods and slice comparisons alone, so 10 MB take milliseconds.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from hel_lsp.errors import InvalidArguments, MatchError
from hel_lsp.messages import FileEdit
from hel_lsp.tools.diff import added_and_removed, unified_diff
from hel_lsp.tools.endings import ending_near, final_ending, original_offset, with_endings, with_lf
from hel_lsp.tools.hints import why_ambiguous, why_not_found
from hel_lsp.tools.lines import line_number
from hel_lsp.tools.relocate import common_prefix, common_suffix, place_since

__all__ = ["added_and_removed", "arrived", "place_near", "replace_once", "revert", "rewrite", "unified_diff"]

_MOST_LINES = 10
_MOST_COMPARED = 1_000_000
"""Characters: a place may cost as many as the search has, where that overlaps itself."""


def replace_once(path: Path, text: str, search: str, replace: str, *, newline: str | None = None) -> FileEdit:
    """The edit that puts `replace` where `search` stands in `text`.

    Raises InvalidArguments for arguments that can make no edit in any text, MatchError unless the search stands there
    exactly once and the replacement does not stand there already.
    """
    if not search:
        raise InvalidArguments(
            "`search` must not be empty for an existing file: quote the text to replace, "
            "or give the whole new text to write_file."
        )
    _check_characters("replace", replace)
    ending = ending_near(replace, 0)
    search, replace = with_lf(search), with_lf(replace)
    if search == replace:
        raise InvalidArguments("No change: `search` and `replace` are equal (line ends stay as the file has them).")
    places = _places(text, search)
    if not places:
        raise MatchError(why_not_found(with_lf(text), search, replace))
    if len(places) > 1:
        most = max(_MOST_COMPARED // len(search), _MOST_LINES)
        count = sum(1 for _ in islice(_starts(with_lf(text), search), most))
        raise MatchError(why_ambiguous([line_number(text, start) for start, _ in places], count, more=count == most))
    ((start, end),) = places
    if _is_applied(text, start, end, search, replace):
        raise MatchError(
            f"Already applied: at line {line_number(text, start)} the text is what this edit would make of it. "
            "Nothing was changed."
        )
    if newline is not None:
        plain_start = len(with_lf(text[:start]))
        return _edit_held_otherwise(path, text, plain_start, plain_start + len(search), replace, newline)
    new = with_endings(text, start, end, replace, ending_near(text, start) or ending or "\n")
    return FileEdit(path, text, *_minimal(text, start, end, new))


def rewrite(path: Path, text: str | None, content: str, *, newline: str | None = None) -> FileEdit:
    """The edit that turns the whole `text` into `content`; None means that there is no file yet.

    A new file gets the line ends of `content`. In an existing one the lines that stay keep theirs, new ones take the
    kind that the text has most of. Raises InvalidArguments, and MatchError where nothing would change.
    """
    _check_characters("content", content)
    new = with_lf(content)
    if text is None:
        return FileEdit(path, None, 0, 0, content if newline is None else new.replace("\n", newline))
    plain = with_lf(text)
    if new == plain:
        raise MatchError("No change: the file has this content already (line ends stay as the file has them).")
    if newline is not None:
        return _edit_held_otherwise(path, text, 0, len(plain), new, newline)
    pairs = text.count("\r\n")
    singles = text.count("\n") - pairs
    ending = ending_near(text, 0) or ending_near(content, 0) or "\n"
    if pairs != singles:
        ending = "\r\n" if pairs > singles else "\n"
    new = with_endings(text, 0, len(text), new, ending)
    return FileEdit(path, text, *_minimal(text, 0, len(text), new))


def revert(edit: FileEdit, current: str, *, newline: str | None = None) -> FileEdit:
    """The edit that takes `edit` back in a text that may have changed elsewhere since.

    For an edit that created a file it empties the file. Raises MatchError where the text that the edit made was itself
    changed, or cannot be told from other text: nothing is guessed.
    """
    if edit.before is None:
        if with_lf(current) != with_lf(edit.text):
            raise MatchError("The file was changed since it was created, so it stays.")
        return FileEdit(edit.path, current, 0, len(current), "")
    refusal = MatchError()
    for same in _same_edits(edit, edit.before):
        try:
            return _reverted(same, edit.before, current, newline)
        except MatchError as error:
            refusal = error
    raise refusal


def arrived(edit: FileEdit, current: str | None) -> bool | None:
    """Whether an edit that was sent stands in the text that the file has later, None where it has none.

    The answer is None where the text shows neither the edit nor what it would replace, or both.
    """
    if current is None:
        return False
    is_there = _can_be_reverted(edit, current)
    if edit.before is None:
        return is_there or None
    for text, answer in ((edit.after, True), (edit.before, False)):
        if with_lf(current) == with_lf(text):
            return answer
    replaced = edit.before[edit.start : edit.end]
    inverse = FileEdit(edit.path, edit.after, edit.start, edit.start + len(edit.text), replaced)
    is_missing = _can_be_reverted(inverse, current)
    if edit.text and replaced:
        return is_there if is_there != is_missing else None
    # A gap can seem to be where it is not, beside blank lines above all: text that is seen counts for more.
    is_seen, is_gap = (is_there, is_missing) if edit.text else (is_missing, is_there)
    text, elsewhere = (edit.text, edit.before) if edit.text else (replaced, edit.after)
    if is_seen and (not is_gap or text not in elsewhere):
        return bool(edit.text)
    return not edit.text if is_gap and not is_seen and with_lf(text) not in with_lf(current) else None


def place_near(edit: FileEdit, current: str) -> int:
    """Where an edit would be in a text that has changed since: exact where the change lies wholly on one side of it."""
    before = edit.before or ""
    unchanged = common_prefix(before, current)
    return edit.start if edit.start <= unchanged else max(unchanged, edit.start + len(current) - len(before))


def _can_be_reverted(edit: FileEdit, current: str) -> bool:
    try:
        revert(edit, current)
    except MatchError:
        return False
    return True


def _check_characters(argument: str, value: str) -> None:
    if "\0" in value:
        raise InvalidArguments(f"`{argument}` has a NUL character (U+0000), which no text file holds.")
    if found := re.search("[\ud800-\udfff]", value):
        raise InvalidArguments(
            f"`{argument}` has half of a surrogate pair (U+{ord(found[0]):04X}), which no text file holds."
        )


def _places(text: str, search: str) -> list[tuple[int, int]]:
    """Start and end in `text` of the first places where the search (with `\\n` endings) stands."""
    if "\r" in text and ("\r" in search or "\n" in search):
        if "\r" in search or text.count("\n") != text.count("\r\n"):
            return _places_in_mixed_text(text, search)
        search = search.replace("\n", "\r\n")
    return [(start, start + len(search)) for start in islice(_starts(text, search), _MOST_LINES)]


def _places_in_mixed_text(text: str, search: str) -> list[tuple[int, int]]:
    places: list[tuple[int, int]] = []
    previous = start = 0
    for plain_start in islice(_starts(with_lf(text), search), _MOST_LINES):
        # A stretch of n characters in the one text covers at most 2n of the other: each may be a line end.
        start += original_offset(text[start : start + 2 * (plain_start - previous) + 2], plain_start - previous)
        places.append((start, start + original_offset(text[start : start + 2 * len(search)], len(search))))
        previous = plain_start
    return places


def _starts(text: str, search: str) -> Iterator[int]:
    start = text.find(search)
    while start >= 0:
        yield start
        start = text.find(search, start + 1)


def _is_applied(text: str, start: int, end: int, search: str, replace: str) -> bool:
    """Whether the replacement stands in the text already, with this place of the search where it has one.

    A final line end that only one of them has makes no difference, unless the edit is about that line end.
    """
    reach = 2 * len(replace) + 1
    before = with_lf(text[max(start - reach, 0) : start])
    around = before + search + with_lf(text[end : end + reach])
    search_line, replace_line = search.rstrip("\n"), replace.rstrip("\n")
    return _stands_around(around, len(before), search, replace, 0) or (
        search_line != "" and _stands_around(around, len(before), search_line, replace_line, 1)
    )


def _stands_around(plain: str, start: int, search: str, replace: str, least: int) -> bool:
    inside = replace.find(search, least)
    while inside >= 0:
        if inside <= start and plain.startswith(replace, start - inside):
            return True
        inside = replace.find(search, inside + 1)
    return False


# ------------------------------------------------------------------ the smallest span


def _edit_held_otherwise(path: Path, text: str, start: int, end: int, new: str, newline: str) -> FileEdit:
    """Like the others, made on the text with `\\n` endings, in which `start` and `end` are given."""
    start, end, new = _minimal(with_lf(text), start, end, new)
    start, end = original_offset(text, start), original_offset(text, end)
    return FileEdit(path, text, start, end, new.replace("\n", newline))


def _minimal(text: str, start: int, end: int, new: str) -> tuple[int, int, str]:
    """The smallest `start`, `end` and `new` with the same outcome that cut no line end in two."""
    old = text[start:end]
    kept = common_suffix(old, new)
    if kept and old[-kept] == "\n" and "\r" in (old[-kept - 1 : -kept], new[-kept - 1 : -kept]):
        kept -= 1
    end, new = end - kept, new[: len(new) - kept]
    kept = common_prefix(text[start:end], new)
    start, new = start + kept, new[kept:]
    if end == len(text):
        start, end, new = _before_final_line_end(text, start, end, new)
    if text[start - 1 : start] == "\r" and "\n" in (text[start : start + 1], (new or text[end : end + 1])[:1]):
        start, new = start - 1, "\r" + new
    if text.startswith("\n", end) and "\r" in (text[end - 1 : end], (new or text[start - 1 : start])[-1:]):
        end, new = end + 1, new + "\n"
    return start, end, new


def _before_final_line_end(text: str, start: int, end: int, new: str) -> tuple[int, int, str]:
    """`x\\n` put or taken at the end of the text, as `\\nx` in front of its final line end."""
    if start < end and new:
        return start, end, new
    ending = final_ending(text[start:end] + new)
    if not ending or final_ending(text[max(start - 2, 0) : start]) != ending:
        return start, end, new
    new = ending + new.removesuffix(ending) if new else ""
    return start - len(ending), end - len(ending), new


# ------------------------------------------------------------------ back again


def _same_edits(edit: FileEdit, before: str) -> Iterator[FileEdit]:
    """The edit, and where it only removes lines, the one that takes the line end on their other side.

    `\\nb` behind `a` is `b\\n` in front of `c`: what was typed since may touch one of these places and not the other.
    """
    yield edit
    if edit.text:
        return
    removed = before[edit.start : edit.end]
    first, last = "\r\n" if removed.startswith("\r\n") else "\n", final_ending(removed)
    if removed.startswith(first) and before.startswith(first, edit.end):
        yield dataclasses.replace(edit, start=edit.start + len(first), end=edit.end + len(first))
    if last and final_ending(before[max(edit.start - 2, 0) : edit.start]) == last:
        yield dataclasses.replace(edit, start=edit.start - len(last), end=edit.end - len(last))


def _reverted(edit: FileEdit, before: str, current: str, newline: str | None) -> FileEdit:
    after, removed = edit.after, before[edit.start : edit.end]
    start = len(with_lf(after[: edit.start]))
    length = len(with_lf(edit.text))
    start = place_since(with_lf(after), with_lf(current), start, start + length)
    start, end = original_offset(current, start), original_offset(current, start + length)
    if newline is None and ("\r\n" in after) != ("\r\n" in current):
        newline = ending_near(current, start)
    if newline is not None:
        removed = with_lf(removed).replace("\n", newline)
    return FileEdit(edit.path, current, *_minimal(current, start, end, removed))
