"""A command run to its end: fed, read, timed, and ended with everything that it started."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hel_lsp import platforms

_CHUNK = 1 << 16

OUTPUT = 1 << 20
"""Bytes that are kept of a long stream, half from its start and half from its end."""

LAST_WORDS = 0.5
"""Seconds that output may still come after the command has ended; a child that left its group may hold the pipe."""


class Captured:
    """A stream's bytes: all of them, or head and tail where there are many more than OUTPUT. `size` is of them all."""

    def __init__(self, on_overflow: Callable[[], None]) -> None:
        self._on_overflow = on_overflow
        self._head = bytearray()
        self._tail = bytearray()
        self._skipped = 0
        self.size = 0

    async def read(self, stream: asyncio.StreamReader) -> None:
        while part := await stream.read(_CHUNK):
            self.size += len(part)
            room = OUTPUT // 2 - len(self._head)
            self._head += part[:room]
            self._tail += part[room:]
            if len(self._tail) > OUTPUT:
                self._skipped += len(self._tail) - OUTPUT // 2
                del self._tail[: -OUTPUT // 2]
            if self.size > OUTPUT:
                self._on_overflow()

    def text(self) -> str:
        """As UTF-8, without the line ends at its end."""
        gap = f"\n[… {self._skipped} bytes left out …]\n".encode() if self._skipped else b""
        return (bytes(self._head) + gap + bytes(self._tail)).decode("utf-8", "replace").rstrip("\n")


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `code` is None where it was stopped for its time."""

    code: int | None
    stdout: Captured
    stderr: Captured


async def run(
    argv: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float,
    stdin: bytes | None = None,
    whole_output: bool = False,
) -> Finished:
    """Run `argv` in `folder` with exactly `environment`, for `timeout` seconds at most. Raises OSError.

    When it ends, or this is cancelled, its whole process group ends. With `whole_output` it is also ended when a stream
    has more than OUTPUT bytes, since a part would be of no use.
    """
    child, pipes = await _started(argv, folder, environment, feed=stdin is not None)
    group = platforms.process_group(child.get_pid())
    assert pipes.stdout is not None
    assert pipes.stderr is not None
    stdout, stderr = (Captured(group.kill if whole_output else lambda: None) for _ in range(2))
    reading = [asyncio.create_task(stdout.read(pipes.stdout)), asyncio.create_task(stderr.read(pipes.stderr))]
    feeding = asyncio.create_task(_feed(pipes.stdin, stdin or b""))
    code: int | None = None
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await pipes.exited.wait()
                code = child.get_returncode()
            group.kill()
            await asyncio.wait(reading, timeout=LAST_WORDS)
    finally:
        for task in (*reading, feeding):
            task.cancel()
        await _end(child, group, pipes)
    return Finished(code, stdout, stderr)


async def _started(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], *, feed: bool
) -> tuple[asyncio.SubprocessTransport, _Pipes]:
    """The process and its pipes; where this is cancelled, neither is left."""
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: _Pipes(loop),
            *platforms.tied_to_parent(argv, environment),
            cwd=folder,
            env=dict(environment),
            # Not an empty pipe: some programs read one in place of their folder.
            stdin=asyncio.subprocess.PIPE if feed else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            **platforms.spawn_options(),
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # By itself asyncio would end the command alone, and wait for whatever that has started by now.
        while not starting.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({starting})
        if starting.exception() is None:
            child, pipes = starting.result()
            await _end(child, platforms.process_group(child.get_pid()), pipes)
        raise


async def _end(child: asyncio.SubprocessTransport, group: platforms.ProcessGroup, pipes: _Pipes) -> None:
    """Kill what is left of a group, and see its leader gone where that does not take long."""
    group.terminate()  # at first: it looks up the descendants that left the group
    group.kill()
    group.close()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await pipes.exited.wait()
    finally:
        child.close()


class _Pipes(SubprocessStreamProtocol):
    """Tells when the command has ended. asyncio's own `wait` also waits for what it started and left the pipes to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_CHUNK, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


async def _feed(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    """Write `data` and close; a command need not read it."""
    if stream is None:
        return
    with contextlib.suppress(ConnectionError):
        stream.write(data)
        await stream.drain()
    stream.close()
