"""`read_file`, `search_replace`, `write_file`: the workspace's texts as the editor has them."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field

from hel_lsp import textfile
from hel_lsp.errors import FileRefused, MatchError, StaleDocument
from hel_lsp.messages import Access, EditOutcome, FileEdit, ToolDefinition, ToolResult
from hel_lsp.ports import MakeEdit, Prepared, Preview, Tool, Workspace
from hel_lsp.tools import edit as engine
from hel_lsp.tools.arguments import Arguments, check, define
from hel_lsp.tools.lines import line_number, split_lines
from hel_lsp.tools.spill import LIMIT

READ_LINES = 2_000
READ_BYTES = LIMIT
"""What one `read_file` shows at most."""

SHOWN_AFTER_FAILURE = 4_000
"""Characters of the real text that go along with an edit that did not arrive."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model last saw of each file, as hashes: a whole file is only replaced when nothing came in between."""

    _hashes: dict[Path, bytes] = field(default_factory=dict[Path, bytes])

    def note(self, path: Path, text: str) -> None:
        self._hashes[path] = _hash(text)

    def is_outdated(self, path: Path, text: str) -> bool:
        """True when the model saw this file and it has changed since."""
        return path in self._hashes and self._hashes[path] != _hash(text)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def file_tools(workspace: Workspace) -> list[Tool]:
    """The tools of one session, sharing the record of what its model has seen."""
    seen = Seen()
    return [ReadFile(workspace, seen), SearchReplace(workspace, seen), WriteFile(workspace, seen)]


# ------------------------------------------------------------------ read_file


class _Read(Arguments):
    path: str
    offset: int = Field(1, ge=1, description="First line")
    limit: int = Field(READ_LINES, ge=1, description="Number of lines")


@dataclass(frozen=True, slots=True)
class ReadFile:
    workspace: Workspace
    seen: Seen

    @property
    def definition(self) -> ToolDefinition:
        return _READ

    @property
    def access(self) -> Access:
        return "read"

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        wanted = check(_Read, "read_file", arguments)
        path = self.workspace.resolve(wanted.path)
        run = partial(self._run, path, wanted)
        return Prepared("read", Preview(f"read {wanted.path}"), run, "read_file", path=path)

    async def _run(self, path: Path, wanted: _Read) -> ToolResult:
        document = await self.workspace.read(path)
        self.seen.note(path, document.text)
        lines = split_lines(document.text)
        further = _further_parts(lines) if wanted.offset > max(len(lines), 1) else []
        if wanted.offset > max(len(lines) + len(further), 1):
            raise FileRefused(f"{wanted.path} has {len(lines)} lines; there is no line {wanted.offset}.")
        if further:
            return ToolResult(_in_part(further[wanted.offset - len(lines) - 1], lines), is_part=True)
        return ToolResult(_excerpt(lines, wanted.offset, min(wanted.limit, READ_LINES)), is_part=True)


def _excerpt(lines: list[str], offset: int, limit: int) -> str:
    """As many whole lines as READ_BYTES admits; where even the first is longer, its beginning."""
    if not lines:
        return "the file is empty\n"
    room, last = READ_BYTES, offset - 1
    for line in lines[last : last + limit]:
        room -= len(_encoded(line))
        if room < 0:
            break
        last += 1
    if last < offset:
        return _in_part(_parts(offset, lines[last])[0], lines)
    return f"lines {offset}-{last} of {len(lines)}\n{''.join(lines[offset - 1 : last])}"


@dataclass(frozen=True, slots=True)
class _Part:
    """What one read shows of a line that is longer, and where in the line it stands."""

    line: int
    start: int
    of: int
    content: bytes


def _parts(number: int, line: str) -> list[_Part]:
    content = _encoded(line)
    cuts = [0]
    while cuts[-1] < len(content):
        cut = cuts[-1] + READ_BYTES
        while cut < len(content) and content[cut] & 0xC0 == 0x80:  # in the middle of a character
            cut -= 1
        cuts.append(min(cut, len(content)))
    return [_Part(number, start, len(content), content[start:end]) for start, end in pairwise(cuts)]


def _further_parts(lines: list[str]) -> list[_Part]:
    """What the reads of lines that are too long leave out. It is read with offsets after the last line's.

    So everything can be read, and a line has the number here that it has everywhere else.
    """
    long = (number for number, line in enumerate(lines, 1) if len(line) > READ_BYTES // 4)
    return [part for number in long for part in _parts(number, lines[number - 1])[1:]]


def _in_part(part: _Part, lines: list[str]) -> str:
    end = part.start + len(part.content)
    places = enumerate(_further_parts(lines), len(lines) + 1)
    more = [f"; go on at offset {offset}" for offset, other in places if (other.line, other.start) == (part.line, end)]
    head = f"lines {part.line}-{part.line} of {len(lines)}"
    shown = part.content.decode("utf-8", "surrogatepass")
    return f"{head} (bytes {part.start + 1}-{end} of the line's {part.of}{''.join(more)})\n{shown}"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_READ = define(
    "read_file", "Read a text file as it is in the editor, unsaved changes included. Lines count from 1", _Read
)


# ------------------------------------------------------------------ search_replace


class _Replace(Arguments):
    path: str
    search: str
    replace: str


@dataclass(frozen=True, slots=True)
class SearchReplace:
    workspace: Workspace
    seen: Seen

    @property
    def definition(self) -> ToolDefinition:
        return _REPLACE

    @property
    def access(self) -> Access:
        return "edit"

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        wanted = check(_Replace, "search_replace", arguments)
        path = self.workspace.resolve(wanted.path, writing=True)
        make = partial(_replacement, path, wanted)
        preview = make((await self.workspace.read(path)).text if self.workspace.exists(path) else None)
        return _prepared(self, "search_replace", path, preview, partial(self._run, path, wanted, make, preview))

    async def _run(self, path: Path, wanted: _Replace, make: MakeEdit, preview: FileEdit) -> ToolResult:
        try:
            outcome = await self.workspace.edit(path, make)
        except MatchError as error:
            # It matched when the question was asked: what has changed is the file.
            text = (await self.workspace.read(path)).text
            shown = _shown(text, preview)
            raise StaleDocument(f"{wanted.path} changed since it was read: {error.message}\n{shown}") from error
        return _result(self, path, outcome)


def _replacement(path: Path, wanted: _Replace, text: str | None) -> FileEdit:
    if text is None:
        if wanted.search:
            raise FileRefused(f"{wanted.path} does not exist. An empty search would create it.")
        return _rewritten(path, None, wanted.replace)
    return engine.replace_once(path, text, wanted.search, wanted.replace)


_REPLACE = define(
    "search_replace",
    "Replace a text that occurs exactly once in a file. Copy it exactly, with its indentation; take more lines along "
    "where it is not unique",
    _Replace,
)


# ------------------------------------------------------------------ write_file


class _Write(Arguments):
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class WriteFile:
    workspace: Workspace
    seen: Seen

    @property
    def definition(self) -> ToolDefinition:
        return _WRITE

    @property
    def access(self) -> Access:
        return "edit"

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        wanted = check(_Write, "write_file", arguments)
        path = self.workspace.resolve(wanted.path, writing=True)
        shown = (await self.workspace.read(path)).text if self.workspace.exists(path) else None
        if shown is not None and self.seen.is_outdated(path, shown):
            raise StaleDocument(f"{wanted.path} changed since it was read. Read it again before replacing all of it.")

        def make(text: str | None) -> FileEdit:
            if text != shown:
                raise StaleDocument(f"{wanted.path} changed since it was shown, so it was not replaced. Read it again.")
            return _rewritten(path, text, wanted.content)

        return _prepared(self, "write_file", path, make(shown), partial(self._run, path, make))

    async def _run(self, path: Path, make: MakeEdit) -> ToolResult:
        return _result(self, path, await self.workspace.edit(path, make))


_WRITE = define("write_file", "Create a file, or replace all of one. For changes prefer search_replace", _Write)


# ------------------------------------------------------------------ what both edits share


def _rewritten(path: Path, text: str | None, content: str) -> FileEdit:
    if text is None:
        textfile.refuse_notebook(path)
    return engine.rewrite(path, text, content)


def _prepared(
    tool: SearchReplace | WriteFile, name: str, path: Path, edit: FileEdit, run: Callable[[], Awaitable[ToolResult]]
) -> Prepared:
    shown = tool.workspace.display(path)
    added, removed = engine.added_and_removed(edit)
    verb = "create" if edit.before is None else "edit"
    diff = engine.unified_diff(edit, shown)
    # Without the two lines of file names; a changed line may begin like them.
    changed = [line for line in diff.split("\n")[2:] if line[:1] in ("+", "-")]
    preview = Preview(f"{verb} {shown} (+{added} −{removed})", "\n".join(changed), diff, edit)
    return Prepared("edit", preview, run, name, path=path)


def _result(tool: SearchReplace | WriteFile, path: Path, outcome: EditOutcome) -> ToolResult:
    report = outcome.report
    shown = tool.workspace.display(path)
    if report.applied:
        before = outcome.edit.before
        if outcome.text is None and (before is None or not tool.seen.is_outdated(path, before)):
            tool.seen.note(path, outcome.edit.after)
        return ToolResult(f"Applied to {shown} (+{report.added} −{report.removed}).", edit=outcome)
    real = "" if outcome.text is None else "\n" + _shown(outcome.text, outcome.edit)
    if report.applied is None:
        return ToolResult(f"Unknown whether the edit of {shown} arrived: {report.reason}{real}", "failed", outcome)
    return ToolResult(f"Not applied to {shown}: {report.reason}{real}", "failed", outcome)


def _shown(text: str, edit: FileEdit) -> str:
    """The real text, or as much of it around the place of `edit` as there is room for, in whole lines if they fit."""
    if len(text) <= SHOWN_AFTER_FAILURE:
        return f"The text is now:\n{text}"
    place = engine.place_near(edit, text)
    start = max(0, min(place - SHOWN_AFTER_FAILURE // 2, len(text) - SHOWN_AFTER_FAILURE))
    end = start + SHOWN_AFTER_FAILURE
    if start > 0:
        start = text.find("\n", start, place) + 1 or start
    if end < len(text):
        end = text.rfind("\n", place, end) + 1 or end
    first, last, count = (line_number(text, offset) for offset in (start, end - 1, len(text) - 1))
    return f"The text is now (lines {first}-{last} of {count}):\n{text[start:end]}"
