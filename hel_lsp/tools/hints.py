"""What the error of a failed match says, so that the next try is right.

Everything here only looks and describes. The text is compared in a loose form (blanks left out, quotes made straight,
letters composed and in lower case), the place that this finds is walked together with the search, and each kind of
difference is named with its line and column. Lines count from 1 as `read_file` counts them, columns in characters.
All texts here are without `\\r\\n`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from hel_lsp.tools.lines import line_number

_ODD_BLANKS = (
    "\v\f\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
    "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
)
_BLANKS = " \t" + _ODD_BLANKS
_MARKS = "\u0300-\u036f\u1160-\u11ff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f"
_TOKEN = re.compile(f"\n|[{_BLANKS}]+|[^\n{_BLANKS}][{_MARKS}]*")
_LOOKALIKES = (
    dict.fromkeys("`´‘’‚‛′", "'") | dict.fromkeys("“”„‟″«»", '"') | dict.fromkeys("‐‑‒–—―−", "-")
)  # fmt: skip
_LINE_NUMBER = re.compile(r"[ \t]*\d+[ \t]*[|│:→\t] ?")
_ESCAPE = re.compile(r"""\\(r\\n|[nrt"'\\])""")
_ESCAPED = {"r\\n": "\n", "n": "\n", "r": "\r", "t": "\t"}

_MOST_DIFFERENCES = 4
_MOST_SHOWN = 200
_MOST_CANDIDATES = 300
_NEAR = 0.6


def why_ambiguous(lines: Sequence[int], count: int, *, more: bool) -> str:
    """How often and where the search stands: `lines` are the first of `count` places, `more` says there are others."""
    return (
        f"`search` occurs {'at least ' if more else ''}{count} times, nothing was changed: "
        f"lines {', '.join(map(str, lines))}{', …' if count > len(lines) else ''}. "
        "Quote more of the text around the one that is meant."
    )


def why_not_found(plain: str, search: str, replace: str) -> str:
    """Why the search does not stand in the text, and which lines come nearest."""
    if not plain:
        return "`search` was not found: the file is empty."
    hints = [*_already_there(plain, search, replace), *_miscopied(plain, search), *_lookalike(plain, search)]
    return " ".join(["`search` was not found, nothing was changed.", *(hints or _nearest(plain, search))])


def _already_there(plain: str, search: str, replace: str) -> Iterator[str]:
    place = plain.find(replace) if replace.strip() and replace not in search else -1
    if place >= 0 and plain.find(replace, place + 1) < 0:
        yield f"`replace` stands at line {line_number(plain, place)}: the edit may be already applied."


def _miscopied(plain: str, search: str) -> Iterator[str]:
    """A search that was right before it was written down: escaped twice, with line numbers, other line ends."""
    if escape := _ESCAPE.search(search):
        bare = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), search)
        if where := _where(plain, bare):
            yield (
                f"`search` has a literal {escape[0]} (a backslash and what follows it) where the file has the "
                f"character itself; unescaped it matches {where}. Send the characters themselves."
            )
    lines = [line for line in search.split("\n") if line.strip()]
    prefixes = [prefix[0] for line in lines if (prefix := _LINE_NUMBER.match(line))]
    if lines and len(prefixes) == len(lines):
        bare = "\n".join(_LINE_NUMBER.sub("", line, count=1) for line in search.split("\n"))
        where = _where(plain, bare)
        if where or prefixes[0].strip()[-1] in "|│→":
            yield (
                f"`search` starts with what looks like a line-number prefix ({prefixes[0]!r})"
                f"{f'; without it, it matches {where}' if where else ''}. Quote the text alone."
            )
    if "\r" in plain and "\n" in search and (where := _where(plain.replace("\r", "\n"), search)):
        yield (
            f"The text is there {where}, but with a lone carriage return (U+000D) as line end, "
            "which `\\n` does not match: quote within one line."
        )


def _where(plain: str, text: str) -> str:
    place = plain.find(text) if text else -1
    if place < 0:
        return ""
    return f"at line {line_number(plain, place)}" + (" and elsewhere" if plain.find(text, place + 1) >= 0 else "")


# ------------------------------------------------------------------ a place that looks alike


def _lookalike(plain: str, search: str) -> Iterator[str]:
    loose, wanted = _loose(plain), _loose(search)
    place = loose.find(wanted) if wanted.strip() else -1
    if place < 0:
        return
    above = loose.count("\n", 0, place)
    lines = plain.split("\n")[above : above + search.count("\n") + 1]
    number = line_number(loose, place)
    column = place - loose.rfind("\n", 0, place) - 1
    found = list(_differences("\n".join(lines), number, column, search))
    if found:
        shown = found[:_MOST_DIFFERENCES] + ["…"] * (len(found) > _MOST_DIFFERENCES)
        yield f"Line {number} is nearly it: {'; '.join(shown)}. Quote the file exactly."


def _loose(text: str) -> str:
    """The text without what may differ unseen; line ends stay, so that lines keep their numbers."""
    text = unicodedata.normalize("NFC", text)
    for blank in _BLANKS:
        text = text.replace(blank, "")
    for char, plain_char in _LOOKALIKES.items():
        text = text.replace(char, plain_char)
    return text.lower()


def _differences(file_text: str, number: int, column: int, search: str) -> Iterator[str]:
    """What differs between the search and the file from a column (in the loose form) of line `number` on."""
    theirs, ours = list(_TOKEN.finditer(file_text)), [found[0] for found in _TOKEN.finditer(search)]
    while column > 0 and theirs:
        column -= len(_loose(theirs.pop(0)[0]))
    if theirs and _is_blank(theirs[0][0]) and not _is_blank(ours[0]):
        theirs.pop(0)
    seen: set[tuple[str, str]] = set()
    for start, their, our in _pairs(theirs, ours, len(file_text)):
        if their != our and (their, our) not in seen:
            seen.add((their, our))
            yield _sentence(file_text, number, start, their, our)


def _pairs(theirs: list[re.Match[str]], ours: list[str], end: int) -> Iterator[tuple[int, str, str]]:
    """Tokens that stand for each other, with their place in the file; blanks may stand for nothing."""
    i = 0
    for our in ours:
        start, their = (theirs[i].start(), theirs[i][0]) if i < len(theirs) else (end, "")
        if _is_blank(their) and not _is_blank(our):
            yield start, their, ""
            i += 1
            start, their = (theirs[i].start(), theirs[i][0]) if i < len(theirs) else (end, "")
        if _is_blank(our) and not _is_blank(their):
            yield start, "", our
        elif _loose(their) == _loose(our):
            yield start, their, our
            i += 1
        else:
            return


def _is_blank(token: str) -> bool:
    return token != "" and token[0] in _BLANKS


def _sentence(file_text: str, number: int, start: int, their: str, our: str) -> str:
    odd = next((k for k, char in enumerate(their) if char in _ODD_BLANKS and char not in our), 0)
    line, column = number + file_text.count("\n", 0, start), start + odd - file_text.rfind("\n", 0, start)
    at_end = (their or our)[0] in _BLANKS and file_text[start + len(their) :][:1] in ("\n", "")
    end = " at its end" if at_end else ""
    if column == 1 and their and their[0] in _BLANKS:
        return f"line {line} starts with {_named(their)} where `search` has {_named(our)}"
    return f"line {line}, column {column} has {_named(their)}{end} where `search` has {_named(our)}"


def _named(token: str) -> str:
    """A run of blanks or a character in words, with the code points of what cannot be told by sight."""
    if not token:
        return "nothing"
    if token[0] in _BLANKS:
        odd = dict.fromkeys(char for char in token if char in _ODD_BLANKS)
        names = [f"U+{ord(char):04X} {unicodedata.name(char, 'CONTROL CHARACTER')}" for char in odd]
        tabs, spaces = token.count("\t"), token.count(" ")
        names += ["a TAB" if tabs == 1 else f"{tabs} TABs"] * (tabs > 0)
        names += ["a space" if spaces == 1 else f"{spaces} spaces"] * (spaces > 0)
        return " and ".join(names)
    points = " ".join(f"U+{ord(char):04X}" for char in token)
    composed, decomposed = unicodedata.normalize("NFC", token), unicodedata.normalize("NFD", token)
    form = "" if composed == decomposed else " composed, NFC" if token == composed else " decomposed, NFD"
    return f"{token} ({points}{form})"


# ------------------------------------------------------------------ the nearest lines


def _nearest(plain: str, search: str) -> list[str]:
    wanted = search.split("\n")
    start = _nearest_place(plain, wanted)
    if start is None:
        return ["Nothing in the file comes near it: read the file again."]
    lines = plain[start : start + len(search) + 10_000].split("\n")[: len(wanted)]
    differing = (k for k, (line, ours) in enumerate(zip(lines, wanted, strict=False)) if ours.strip() not in line)
    at = next(differing, 0)
    number = line_number(plain, start)
    near = f"The nearest text is at line {number}" + (f" and differs first at line {number + at}" if at else "")
    return [f"{near}, which reads:\n{lines[at][:_MOST_SHOWN]}\nwhere `search` has:\n{wanted[at][:_MOST_SHOWN]}"]


def _nearest_place(plain: str, wanted: list[str]) -> int | None:
    """Where the lines that resemble the wanted ones begin: around one that is there, or one much like the longest."""
    longest = sorted(((line.strip(), k) for k, line in enumerate(wanted)), key=lambda pair: -len(pair[0]))
    for line, above in longest[:_MOST_DIFFERENCES] if len(wanted) > 1 else []:
        place = plain.find(line) if len(line) > 2 else -1
        if place >= 0:
            return _lines_above(plain, place, above)
    line, above = longest[0]
    matcher = SequenceMatcher(None, b=line[:_MOST_SHOWN], autojunk=False)
    best, best_start = _NEAR, None
    for start in _candidates(plain, line):
        matcher.set_seq1(plain[start : (plain.find("\n", start) + 1 or len(plain) + 1) - 1][:_MOST_SHOWN].strip())
        if matcher.real_quick_ratio() >= best and matcher.quick_ratio() >= best and (ratio := matcher.ratio()) >= best:
            best, best_start = ratio + 1e-9, start
    return None if best_start is None else _lines_above(plain, best_start, above)


def _candidates(plain: str, line: str) -> list[int]:
    """Starts of lines that share a word with `line`; in a short text, of all lines."""
    needles = sorted(re.findall(r"\w{3,}", line), key=len, reverse=True)[:3]
    if plain.count("\n") <= _MOST_CANDIDATES:
        needles = ["\n"]
    starts: dict[int, None] = {0: None}
    for needle in needles:
        place = plain.find(needle)
        while place >= 0 and len(starts) <= _MOST_CANDIDATES:
            end_of_word = place + len(needle)
            starts[plain.rfind("\n", 0, end_of_word) + 1] = None
            place = plain.find(needle, end_of_word)
    return list(starts)


def _lines_above(plain: str, offset: int, count: int) -> int:
    """The start of the line `count` lines above the one at the offset."""
    for _ in range(count):
        offset = max(plain.rfind("\n", 0, offset), 0)
    return plain.rfind("\n", 0, offset) + 1
