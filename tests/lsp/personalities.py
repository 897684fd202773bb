"""How editors hold a file and what they do with `workspace/applyEdit`: the reference for the tests at the wire.

Measured in Neovim 0.11 and 0.12, VS Code 1.139 and Emacs with eglot, or read in the client's source (Helix, Kate, Zed).
Each is data plus the few methods in which it differs. The rude ones are nobody in particular: clients get things wrong.

Positions are worked out here once more, apart from the server's code, so that neither hides a mistake of the other.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

from lsprotocol import types


@dataclass(frozen=True, eq=False)
class Reply:
    """What goes into a reply beside its id; `fields` is None for a reply that is never sent."""

    fields: dict[str, Any] | None


NEVER = Reply(None)
DISMISSED = Reply({"result": None})
OMITTED = Reply({})
EMPTY = Reply({"result": {}})
GARBAGE = Reply({"result": "ok", "more": [1]})
CANCELED = Reply({"error": {"code": -32800, "message": "Canceled"}})
MALFORMED_ERROR = Reply({"error": "no"})


def applied(yes: bool, **more: Any) -> Reply:
    return Reply({"result": {"applied": yes, **more}})


class Refused(Exception):
    """The editor does not do what a workspace edit asks; `reply` is what it says then."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


@dataclass(frozen=True)
class Held:
    """A file as an editor holds it. `text` is what the editor sends; `ending` is the file's line ending.

    Two marks of Neovim's: `final_line_end`, that the last line is complete (its text ends accordingly), and `empty`,
    that there is no line at all (which is sent as one empty line, and saved as an empty file).
    """

    text: str
    ending: str = "\n"
    bom: bool = False
    final_line_end: bool = True
    empty: bool = False


@dataclass(frozen=True, eq=False)
class Personality:
    """An editor. The defaults are the plain protocol; every field that is set somewhere says what differs there."""

    name: str
    capabilities: dict[str, Any]
    tells_name: bool = True
    """Whether `initialize` has clientInfo."""
    encoding: Literal["utf-8", "utf-16", "utf-32"] = "utf-16"
    first_version: int = 1
    versions: Literal["exact", "exact above 0", "not older", "unchecked", "rebased"] = "exact"
    """Which edits are for the buffer as it is: `not older` looks at versions above 0 and at the first document alone,
    `rebased` moves the edit to where its text is now."""
    refusal: Reply = field(default_factory=lambda: applied(False))
    """What it says about an edit for another version."""
    changes_after_reply: bool = False
    """`didChange` waits for a quiet moment and follows the reply."""
    creates: Literal["fails when there", "empties what is there", "cannot"] = "fails when there"
    line_end: str = r"\r\n|\n|\r"
    """Where the editor itself ends lines, for positions."""
    holds_lf: bool = False
    """The buffer has `\\n` for the file's line ending, and so have the texts that are sent; saving puts that back."""
    makes_endings_one: bool = False
    """Each `\\r\\n`, `\\n` and `\\r` of a file becomes the file's line ending when it is loaded."""
    inserts: Literal["as sent", "buffer's ending", "lf"] = "as sent"
    applies: bool = True
    says: Reply | None = None
    """For the rude ones: what they say whatever they did."""

    # ---------------------------------------------------------------- files

    def load(self, data: bytes) -> Held:
        text = data.decode("utf-8-sig")
        ending = self.ending_of(text)
        ends = r"\r\n|\n|\r" if self.makes_endings_one else ending
        text = re.sub(ends, "\n" if self.holds_lf else ending, text)
        return Held(text, ending, bom=data.startswith(b"\xef\xbb\xbf"))

    def save(self, held: Held) -> bytes:
        text = held.text.replace("\n", held.ending) if self.holds_lf else held.text
        return text.encode("utf-8-sig" if held.bom else "utf-8")

    def ending_of(self, text: str) -> str:
        """The line ending of a file with this text."""
        return "\r\n" if "\r\n" in text and "\n" not in text.replace("\r\n", "") else "\n"

    # ---------------------------------------------------------------- edits

    def check_version(self, version: int, wanted: int | None, index: int) -> None:
        """Raise Refused for an edit of a document at another version; `index` counts the documents of one edit."""
        fits = {
            "exact": wanted is None or wanted == version,
            "exact above 0": not wanted or wanted == version,
            "not older": not wanted or wanted < 0 or wanted >= version or index > 0,
        }
        if not fits.get(self.versions, True):
            raise Refused(self.refusal)

    def apply(self, held: Held, edit: types.TextEdit) -> Held:
        """What is held after one edit."""
        start, end = sorted(self.offset(held.text, position) for position in (edit.range.start, edit.range.end))
        return replace(held, text=held.text[:start] + self.inserted(held, edit.new_text) + held.text[end:])

    def inserted(self, held: Held, text: str) -> str:
        if self.inserts == "as sent":
            return text
        return re.sub(r"\r\n|\n|\r", held.ending if self.inserts == "buffer's ending" else "\n", text)

    def offset(self, text: str, position: types.Position) -> int:
        start = 0
        for _ in range(position.line):
            end_of_line = re.compile(self.line_end).search(text, start)
            if end_of_line is None:
                return len(text)
            start = end_of_line.end()
        end_of_line = re.compile(self.line_end).search(text, start)
        line = text[start : end_of_line.start() if end_of_line else len(text)]
        return start + characters(line, position.character, self.encoding)

    def rebase(self, was: str, text: str, edit: types.TextEdit) -> types.TextEdit:
        """An edit that was made on `was`, for `text`."""
        return edit


def characters(line: str, units: int, encoding: str) -> int:
    """How many characters of a line the first `units` code units are."""
    taken = 0
    for index, character in enumerate(line):
        if taken >= units:
            return index
        taken += {
            "utf-8": len(character.encode("utf-8", "surrogatepass")),
            "utf-16": 1 + (ord(character) > 0xFFFF),
        }.get(encoding, 1)
    return len(line)


class VSCode(Personality):
    """Brings a file to the more frequent line ending when it opens it, and keeps all insertions at that."""

    def ending_of(self, text: str) -> str:
        endings = re.findall(r"\r\n|\n|\r", text)
        return "\r\n" if endings.count("\n") < len(endings) / 2 else "\n"


@dataclass(frozen=True, eq=False)
class Neovim(Personality):
    """Keeps a list of lines that end at `\\n`, or all at `\\r\\n`, and a mark for the line ending at the end."""

    trims_appended: bool = False
    """An empty line at the end goes after text was put behind the last line, too."""

    def load(self, data: bytes) -> Held:
        held = super().load(data)
        text = held.text or "\n"
        return replace(held, text=text, final_line_end=text.endswith("\n"), empty=not held.text)

    def save(self, held: Held) -> bytes:
        # 'fixendofline': a file is written with a line ending at its end.
        text = "" if held.empty else held.ending.join([*self.lines(held), ""])
        return text.encode("utf-8-sig" if held.bom else "utf-8")

    def lines(self, held: Held) -> list[str]:
        text = held.text.removesuffix(held.ending) if held.final_line_end else held.text
        return text.split(held.ending)

    def apply(self, held: Held, edit: types.TextEdit) -> Held:
        lines = self.lines(held)
        new = re.sub(r"\r\n?", "\n", edit.new_text).split("\n")
        (first, left), (last, right) = sorted(
            (position.line, position.character) for position in (edit.range.start, edit.range.end)
        )
        beyond = trims = last >= len(lines)
        if first >= len(lines):
            trims = self.trims_appended
            lines += new
        else:
            final = lines[min(last, len(lines) - 1)]
            if not beyond and right > len(final.encode()) and len(new) > 1 and new[-1] == "":
                # An edit up to a place behind the end of a line is taken to include the line ending.
                new.pop()
            left = characters(lines[first], left, self.encoding)
            right = len(final) if beyond else characters(final, right, self.encoding)
            lines[first : last + 1] = (lines[first][:left] + "\n".join(new) + final[right:]).split("\n")
        if trims and lines[-1] == "":
            lines.pop()
        text = held.ending.join(lines) + (held.ending if held.final_line_end else "")
        return replace(held, text=text, empty=not lines)


class Emacs(Personality):
    """Knows `\\r` as a line ending, where a file has no other."""

    def ending_of(self, text: str) -> str:
        return "\r" if "\r" in text and "\n" not in text else super().ending_of(text)


class Kate(Personality):
    """Takes one `\\r\\n` for the line ending of a file, or else one `\\n`, or else `\\r`."""

    def ending_of(self, text: str) -> str:
        return "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"


class Zed(Personality):
    """Applies an edit of an older version it knows to what that text has become, and says `applied` to everything.

    The first `\\n` in the first 1,000 bytes tells a file's line ending.
    """

    def ending_of(self, text: str) -> str:
        found = re.search(r"\r?\n", text.encode()[:1000].decode(errors="ignore"))
        return found[0] if found else os.linesep

    def rebase(self, was: str, text: str, edit: types.TextEdit) -> types.TextEdit:
        head = next((i for i, (a, b) in enumerate(zip(was, text, strict=False)) if a != b), min(len(was), len(text)))
        tail = 0
        while tail < min(len(was), len(text)) - head and was[-1 - tail] == text[-1 - tail]:
            tail += 1

        def moved(position: types.Position) -> types.Position:
            offset = self.offset(was, position)
            if offset > len(was) - tail:
                offset += len(text) - len(was)
            return self.position(text, min(offset, len(text) - tail) if head < offset <= len(was) - tail else offset)

        return types.TextEdit(types.Range(moved(edit.range.start), moved(edit.range.end)), edit.new_text)

    def position(self, text: str, offset: int) -> types.Position:
        line = text.count("\n", 0, offset)
        start = text.rfind("\n", 0, offset) + 1
        return types.Position(line, len(text[start:offset].encode("utf-16-le")) // 2)


def recorded(name: str) -> dict[str, Any]:
    """Capabilities as an editor really sent them, out of pytest-lsp's collection."""
    file = resources.files("pytest_lsp.clients") / f"{name}.json"
    capabilities: dict[str, Any] = json.loads(file.read_text())["capabilities"]
    return capabilities


def plain(encodings: list[str] | None, *, edit: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    return {
        "workspace": {"applyEdit": True, "configuration": True, "workspaceFolders": True, "workspaceEdit": edit},
        "window": window,
        "textDocument": {"synchronization": {"didSave": True}},
        "general": {"positionEncodings": encodings} if encodings else {},
    }


VSCODE = VSCode(
    "Visual Studio Code",
    recorded("visual_studio_code_v1.65.2"),
    versions="exact above 0",
    makes_endings_one=True,
    inserts="buffer's ending",
)

NEOVIM = Neovim(
    "Neovim",
    recorded("neovim_v0.11.0"),
    encoding="utf-8",
    first_version=0,
    versions="not older",
    # It prints a line, drops the edit and goes on.
    refusal=applied(True),
    changes_after_reply=True,
    creates="empties what is there",
    line_end=r"\n",
)

NEOVIM_12 = replace(NEOVIM, trims_appended=True)
"""Neovim since 0.12; what differs is only what comes of an edit behind the last line."""

EGLOT = Emacs(
    "Eglot",
    recorded("emacs_v29.1"),
    encoding="utf-32",
    first_version=0,
    refusal=Reply({"error": {"code": -32603, "message": "Edits require another version"}}),
    changes_after_reply=True,
    creates="cannot",
    line_end=r"\n",
    holds_lf=True,
)

HELIX = Personality(
    "helix",
    plain(
        ["utf-8", "utf-32", "utf-16"],
        edit={
            "documentChanges": True,
            "resourceOperations": ["create", "rename", "delete"],
            "failureHandling": "abort",
        },
        window={"workDoneProgress": True, "showDocument": {"support": True}},
    ),
    encoding="utf-8",
    first_version=0,
    refusal=applied(False, failureReason="document has changed", failedChange=0),
    creates="empties what is there",
    line_end=r"\r\n|\n",
)

KATE = Kate(
    "kate",
    # It says nothing of workspace/applyEdit, nor who it is, and takes edits of both forms all the same.
    {"window": {"workDoneProgress": True}, "textDocument": {"synchronization": {"didSave": True}}},
    tells_name=False,
    versions="unchecked",
    creates="cannot",
    line_end=r"\n",
    holds_lf=True,
    makes_endings_one=True,
)

KATE_LATER = replace(KATE, applies=False, says=applied(False, failureReason=""))
"""Kate again: it takes edits for two seconds after it has sent a command, and none after that."""

ZED = Zed(
    "Zed",
    plain(
        ["utf-16"],
        edit={"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
        window={"workDoneProgress": True},
    ),
    first_version=0,
    versions="rebased",
    line_end=r"\n",
    holds_lf=True,
    makes_endings_one=True,
    inserts="lf",
    says=applied(True),
)

LINE_ENDS = [
    b"a\nb\nc\n",
    b"a\r\nb\r\nc\r\n",
    b"a\r\nb\nc\r\nd\nA\n",
    b"a\nb\nc\nd\r\n",
    b"a\r\nb\r\nd\r\ne\r\nc\n",
    b"p\rq\r\nc\n",
    b"p\rq\r\nc\r\n",
    b"p\rq\nc\n",
    b"a\rc\rb",
    b"x" * 1000 + b"\r\nc\r\nb\r\n",
    b"x" * 1000 + b"\nc\nb\n",
]
"""Files with line ends that editors hold differently."""

EDITORS = (VSCODE, NEOVIM, EGLOT, HELIX, KATE, ZED)

LIAR = replace(VSCODE, name="says yes and does nothing", applies=False, says=applied(True))
DENIER = replace(VSCODE, name="says no and does it", says=applied(False))
SILENT = replace(VSCODE, name="does nothing and says nothing", applies=False, says=NEVER)
SHY = replace(VSCODE, name="does it and says nothing", says=NEVER)
BABBLER = replace(VSCODE, name="does nothing and says garbage", applies=False, says=GARBAGE)
BLANK = replace(VSCODE, name="does nothing and says {}", applies=False, says=EMPTY)
CANCELLER = replace(VSCODE, name="does nothing and says canceled", applies=False, says=CANCELED)
REFUSER = replace(VSCODE, name="says no without a reason", applies=False, says=applied(False))

RUDE = (LIAR, DENIER, SILENT, SHY, BABBLER, BLANK, CANCELLER, REFUSER)

Answer = str | Reply | None
"""To a question: the title of a button, None for a dismissal, or any reply."""

AnswerPolicy = Callable[[str, list[str]], Answer]
"""Decides by the message and the titles of the actions."""
