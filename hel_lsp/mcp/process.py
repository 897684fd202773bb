"""An MCP server as a child process: started in a group of its own, read line by line, ended with all it started."""

from __future__ import annotations

import asyncio
import codecs
import subprocess
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio

from hel_lsp.platforms import GRACE, end_group, process_group, spawn_options, tied_to_parent

_CHUNK = 1 << 16
_LAST_WORDS = 0.25
"""Seconds that output may still come in after the process has ended, where a child of it holds the pipe open."""


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """What is kept of a line above the limit: enough to see which request it answers."""

    size: int
    head: bytes
    tail: bytes


class ServerProcess:
    """A running server. `exited` is set when the process has ended, whatever holds its pipes."""

    def __init__(self, transport: asyncio.SubprocessTransport, protocol: _Protocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self._group = process_group(transport.get_pid())
        self.exited = protocol.exited

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    @property
    def exit_text(self) -> str:
        """How it ended, in words."""
        status = self._transport.get_returncode()
        if status is None:
            return "closed its output"
        return f"ended by signal {-status}" if status < 0 else f"exited with status {status}"

    async def write(self, data: bytes) -> None:
        """Raises ConnectionError when the server no longer reads."""
        stdin = self._protocol.stdin
        assert stdin is not None
        stdin.write(data)
        await stdin.drain()

    async def lines(self, limit: int) -> AsyncIterator[bytes | OverlongLine]:
        """Each line of standard output, without its end; in time linear in what is read."""
        stdout = self._protocol.stdout
        assert stdout is not None
        line = _Line(limit)
        while chunk := await stdout.read(_CHUNK):
            *complete, rest = chunk.split(b"\n")
            for piece in complete:
                line.add(piece)
                yield line.whole()
                line = _Line(limit)
            line.add(rest)
        if line.size:
            yield line.whole()

    async def read_stderr(self, heard: Callable[[str], None]) -> None:
        """Pass on standard error in the pieces that it comes in, and "" at its end."""
        stderr = self._protocol.stderr
        assert stderr is not None
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := await stderr.read(_CHUNK):
            if text := decoder.decode(data):
                heard(text)
        if text := decoder.decode(b"", final=True):
            heard(text)
        heard("")

    async def end(self) -> None:
        """Close its input and end it and what it started: 2 s to leave by itself, 2 s after asking, then killed."""
        assert self._protocol.stdin is not None
        self._group.trace()
        self._protocol.stdin.close()
        drain = asyncio.create_task(self._drain())
        with anyio.move_on_after(GRACE):
            await self.exited.wait()
        await end_group(self._group, grace=GRACE)
        self._transport.close()
        await drain

    async def _drain(self) -> None:
        """A server that is stuck writing cannot notice that its input has closed."""
        async for _ in self.lines(0):
            pass


class _Protocol(SubprocessStreamProtocol):
    """Tells when the process has ended. asyncio's own `wait` also waits for pipes that grandchildren hold open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_CHUNK, loop=loop)
        self.exited = asyncio.Event()
        self._loop_of_pipes = loop
        self._child: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._child = cast("asyncio.SubprocessTransport", transport)

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()
        self._loop_of_pipes.call_later(_LAST_WORDS, self._close_output)

    def _close_output(self) -> None:
        if self._child is not None and (pipe := self._child.get_pipe_transport(1)) is not None:
            pipe.close()


class _Line:
    """A line as it comes in; of one above the limit only the two ends are kept."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._parts: list[bytes] = []
        self._head = b""
        self._tail = b""

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size <= self._limit:
            self._parts.append(piece)
            return
        if not self._head:
            self._head = b"".join([*self._parts, piece])[:_CHUNK]
            self._parts.clear()
        self._tail = (self._tail + piece)[-_CHUNK:]

    def whole(self) -> bytes | OverlongLine:
        return OverlongLine(self.size, self._head, self._tail) if self._head else b"".join(self._parts)


@asynccontextmanager
async def running(
    argv: Sequence[str], environment: Mapping[str, str], folder: Path, on_stderr: Callable[[str], None]
) -> AsyncGenerator[ServerProcess]:
    """Start `argv` in `folder` with exactly `environment`; leaving ends it, however it is left. Raises OSError."""
    process: ServerProcess | None = None
    with anyio.CancelScope(shield=True):  # a cancel in the middle would leave a process that nobody knows
        process = await _spawn(tied_to_parent(argv, environment), environment, folder)
    assert process is not None
    reading = asyncio.create_task(process.read_stderr(on_stderr))
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await process.end()
            await reading


async def _spawn(argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> ServerProcess:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: _Protocol(loop),
        *argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environment),
        cwd=folder,
        **spawn_options(),
    )
    return ServerProcess(transport, protocol)
