"""Server processes without the second or two of imports: each is forked from one that has done them.

Nearly every test at the wire starts a server, and most of that is importing. `start` is like
`asyncio.create_subprocess_exec("python", "-m", "hel_lsp")`: the process has pipes, an environment and a folder of its
own, runs the same command line, and ends as any interpreter ends.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

AVAILABLE = sys.platform == "linux"
PROJECT = Path(__file__).parents[2]
IMPORTED = (
    "hel_lsp.cli.main",
    "hel_lsp.cli.compose",
    "hel_lsp.lsp.server",
    "hel_lsp.agent.agent",
    "hel_lsp.models.connection",
    "hel_lsp.mcp.host",
    "hel_lsp.mcp.connection",
)
ORDER_LIMIT = 1 << 18


class Forked:
    """A running server; what the tests need of `asyncio.subprocess.Process`."""

    def __init__(
        self, pid: int, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader
    ) -> None:
        self.pid, self.stdin, self.stdout, self.stderr = pid, stdin, stdout, stderr
        self.returncode: int | None = None
        self._ended = asyncio.Event()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    async def watch(self, told: asyncio.StreamReader, line: asyncio.StreamWriter) -> None:
        """Wait for the word that the process has ended."""
        self.returncode = int(await told.readline())
        line.close()
        self._ended.set()


_parent: socket.socket | None = None
"""The line to the process that is forked, which ends when this one does."""


async def start(environment: Mapping[str, str], folder: Path | None) -> tuple[Forked, asyncio.Task[None]]:
    """A server, and the task that watches over it."""
    global _parent
    if _parent is None:
        _parent = await asyncio.to_thread(_begin)
    pipes = [os.pipe() for _ in range(3)]
    theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
    ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
    line, their_line = socket.socketpair()
    order = json.dumps({"environment": dict(environment), "folder": str(folder or Path.cwd())}).encode()
    descriptors = array.array("i", [*theirs, their_line.fileno()])
    _parent.sendmsg([order], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
    for descriptor in theirs:
        os.close(descriptor)
    their_line.close()
    told, line_writer = await asyncio.open_connection(sock=line)
    pid = int(await told.readline())
    forked = Forked(pid, await _writer(ours[0]), await _reader(ours[1]), await _reader(ours[2]))
    return forked, asyncio.create_task(forked.watch(told, line_writer))


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(descriptor, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0))
    return reader


def _begin() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        environment = os.environ | {"PYTHONPATH": str(PROJECT)}
        command = (sys.executable, str(Path(__file__)), str(theirs.fileno()))
        subprocess.run(command, check=True, env=environment, pass_fds=[theirs.fileno()])
    atexit.register(ours.close)
    return ours


# ------------------------------------------------------------------ in the process that is forked


def _serve(orders: socket.socket) -> None:
    """Fork for each order; returns in the child, which then is what was ordered."""
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector = selectors.DefaultSelector()
    selector.register(orders, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    lines: dict[int, int] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is woken:
                woken.recv(4096)
                _tell_of_the_dead(lines)
                continue
            text, descriptors, *_ = socket.recv_fds(orders, ORDER_LIMIT, 4)
            if not text:
                sys.exit()
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                selector.close()
                for each in (orders, woken, wake):
                    each.close()
                for line in lines.values():
                    os.close(line)
                _become(json.loads(text), descriptors)
                return
            for descriptor in descriptors[:3]:
                os.close(descriptor)
            lines[pid] = descriptors[3]
            os.write(lines[pid], b"%d\n" % pid)


def _tell_of_the_dead(lines: dict[int, int]) -> None:
    while lines:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        line = lines.pop(pid)
        with contextlib.suppress(BrokenPipeError):  # nobody waited for it
            os.write(line, b"%d\n" % os.waitstatus_to_exitcode(status))
        os.close(line)


def _become(order: dict[str, Any], descriptors: list[int]) -> None:
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv[1:] = []


if __name__ == "__main__":
    import gc
    import importlib

    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    # A child of nobody's: there are tests that look for children which were left behind.
    if os.fork():
        os._exit(0)
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from hel_lsp.cli.main import main

    sys.exit(main())
