"""The transport: framed messages over stdio or one loopback socket, and the end of the process.

One thread reads and one writes, so an editor that stops reading never blocks the event loop, and the same code
serves pipes, sockets and Windows. Whatever ends the connection (`exit`, end of input, a broken pipe, a signal)
takes the same way out, which is bounded: after `LAST_RESORT` seconds the process ends, come what may.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import ipaddress
import logging
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any, BinaryIO

from hel_lsp.errors import ConfigError
from hel_lsp.lsp.guard import GuardedServer

logger = logging.getLogger(__name__)

LAST_RESORT = 4.9
"""Seconds from the end of the connection to the end of the process, at most."""

FLUSH_TIME = 0.5
"""Seconds that the last messages get to leave."""

MESSAGE_LIMIT = 1 << 30
"""Bytes of a message. A length beyond it is a mistake: to wait for so many would be to hear no more of the editor."""

HEADER_LIMIT = 8192
READ_SIZE = 1 << 20
UNHANDLED_LIMIT = 64

ENDING_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)


def start_stdio(server: GuardedServer) -> int:
    """Serve the editor on stdin and stdout until it is gone; returns the exit code for the process.

    `exit` after `shutdown` gives 0, `exit` alone or end of input alone 1, a signal 128 plus its number. From here
    on `print` and whatever else writes to stdout ends up in stderr. Call it last: threads may be left behind.
    """
    source, sink = _take_stdio()

    async def connect() -> Connection:
        return Connection(source, sink)

    return asyncio.run(_serve(server, connect))


def start_tcp(server: GuardedServer, host: str, port: int) -> int:
    """Serve the first client that connects, until it is gone; returns the exit code as `start_stdio` does.

    Port 0 takes a free one; the address is written to stderr. Raises ConfigError for a host that is not this
    machine's loopback, and for an address that cannot be used.
    """
    listener = _listen_on_loopback(host, port)
    address = listener.getsockname()
    os.dup2(2, 1)

    async def connect() -> Connection:
        sys.stderr.write(f"hel-lsp listens on {address[0]}:{address[1]}\n")
        sys.stderr.flush()
        with listener:
            client, _ = await asyncio.get_running_loop().sock_accept(listener)
        client.setblocking(True)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Connection(client.makefile("rb"), client.makefile("wb", buffering=0))

    return asyncio.run(_serve(server, connect))


def read_messages(stream: BinaryIO, on_fault: Callable[[str], None] = lambda reason: None) -> Iterator[bytes]:
    """The bodies of the messages on a stream, until it ends.

    Header names may be spelled in any case and come in any order. Without a usable Content-Length nobody knows how
    much follows: `on_fault` is told, and reading goes on at the next one, also where it stands right behind the body
    that could not be measured. A message that is cut off ends the iteration.
    """
    length: int | None = None
    fault, lost = "", False
    for line in _lines(stream):
        _, found, value = line.lower().rpartition(b"content-length")
        if found and value.lstrip().startswith(b":"):
            value = value.partition(b":")[2].strip()
            length = _length(value)
            fault = "" if length is not None else f"Content-Length: {ascii(value[:40])[2:-1]} is not that of a message"
        elif line.strip():
            if length is None and not fault and not lost:
                fault = "there is no Content-Length"
        elif length is not None:
            body = _read_exactly(stream, length)
            if body is None:
                return
            yield body
            length, fault, lost = None, "", False
        elif fault:
            on_fault(fault)
            fault, lost = "", True


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Its lines; of a long one the end alone, for in front of a header it is a body that could not be measured."""
    end = b""
    while part := stream.readline(HEADER_LIMIT):
        end = end[-HEADER_LIMIT:] + part
        if end.endswith(b"\n"):
            yield end
            end = b""


def _length(value: bytes) -> int | None:
    if not value.isdigit() or len(value) > len(str(MESSAGE_LIMIT)) or int(value) > MESSAGE_LIMIT:
        return None
    return int(value)


def _read_exactly(stream: BinaryIO, length: int) -> bytes | None:
    """`length` bytes, or None at end of input; what a header claims is never allocated before it arrives."""
    parts: list[bytes] = []
    while length > 0:
        part = stream.read(min(length, READ_SIZE))
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


class Connection:
    """A stream of framed messages; its threads are daemons, since a read from stdin cannot be interrupted."""

    def __init__(self, source: BinaryIO, sink: io.RawIOBase) -> None:
        self._source = source
        self._sink = sink
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._unhandled = threading.Semaphore(UNHANDLED_LIMIT)
        self._writer = threading.Thread(target=self._write_all, name="hel-lsp writer", daemon=True)
        self._on_end: Callable[[], None] = lambda: None

    def start(
        self, on_message: Callable[[bytes], None], on_fault: Callable[[str], None], on_end: Callable[[], None]
    ) -> None:
        """Begin to read and write; the callbacks run in the event loop that is running now."""
        loop = asyncio.get_running_loop()

        def tell(callback: Callable[..., None], *arguments: object) -> None:
            # A closed loop is the end of the process, where nobody is interested any longer.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(callback, *arguments)

        def deliver(callback: Callable[[Any], None], what: object) -> None:
            self._unhandled.release()
            callback(what)

        def pass_on(callback: Callable[[Any], None], what: object) -> None:
            self._unhandled.acquire()
            tell(deliver, callback, what)

        def read() -> None:
            try:
                for body in read_messages(self._source, partial(pass_on, on_fault)):
                    pass_on(on_message, body)
            except (OSError, ValueError) as error:
                logger.info("reading from the editor failed: %s", error)
            tell(on_end)
            # From here too, and a little later: an event loop that is stuck would never hear of the end.
            _end_process_after(LAST_RESORT + 0.2, 1)

        self._on_end = lambda: tell(on_end)
        threading.Thread(target=read, name="hel-lsp reader", daemon=True).start()
        self._writer.start()

    def write(self, data: bytes) -> None:
        """Queue bytes; they leave in order, and never block the caller."""
        self._outbox.put(data)

    def close(self) -> None:
        """Send what is queued, as long as the editor still reads, for `FLUSH_TIME` seconds at most."""
        self._outbox.put(None)
        if self._writer.is_alive():
            self._writer.join(FLUSH_TIME)

    def _write_all(self) -> None:
        try:
            while (data := self._outbox.get()) is not None:
                rest = memoryview(data)
                while rest:
                    rest = rest[self._sink.write(rest) or 0 :]
        except OSError as error:
            logger.info("writing to the editor failed: %s", error)
            self._on_end()


async def _serve(server: GuardedServer, connect: Callable[[], Awaitable[Connection]]) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def on_signal(number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(end, 128 + number)

    # Plain handlers and not the loop's own, which Windows does not have.
    for number in ENDING_SIGNALS:
        signal.signal(number, on_signal)

    connecting = asyncio.ensure_future(connect())
    await asyncio.wait((connecting, ended), return_when=asyncio.FIRST_COMPLETED)
    connection = connecting.result() if connecting.done() else None
    if connection is not None:
        server.protocol.attach(connection, on_exit=end)
        connection.start(server.protocol.receive, server.protocol.refuse, lambda: end(server.protocol.exit_code))

    code = await ended
    _end_process_after(LAST_RESORT, code)
    await server.close()
    if connection is not None:
        connection.close()
    return code


def _end_process_after(seconds: float, code: int) -> None:
    # A thread in a blocking call or a task that swallows its cancellation would keep the interpreter alive.
    timer = threading.Timer(seconds, os._exit, [code])
    timer.daemon = True
    timer.start()


def _take_stdio() -> tuple[BinaryIO, io.RawIOBase]:
    """Move the protocol's streams out of the way of `print`, of C libraries and of child processes.

    The copies are not inherited by children, so none can keep the editor's pipe open or read from it.
    """
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(source, "rb"), os.fdopen(sink, "wb", buffering=0)


def _listen_on_loopback(host: str, port: int) -> socket.socket:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ConfigError(f"--host {host}: only a loopback address is served (127.0.0.1, ::1 or localhost)")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error}") from error
    listener.setblocking(False)
    return listener
