"""The streams that connect the SDK's client to a server: messages mended on their way, over stdio read in linear time.

The SDK's own stdio reader copies what it has of a line again with every chunk, so that a long message takes time that
grows with its square; it ends one process where a server has started others; and it waits ten seconds for an answer
to `server/discover` from servers that ignore what they do not know.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import METHOD_NOT_FOUND, ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCRequest, RequestId

from hel_lsp.mcp.process import OverlongLine, ServerProcess
from hel_lsp.mcp.surroundings import Listener
from hel_lsp.mcp.wire import Mender, answer_for, answer_for_garbled, parse_line

MESSAGE_LIMIT = 64 << 20
"""Bytes of the longest message that is read."""

PROBE = 3.0
"""Seconds after which a server that does not answer `server/discover` is taken for one of the older protocol.

Too short for one that is slow to start costs little: it answers the `initialize` that follows with its version, or
refuses that and is started again without this limit.
"""


class _Received(Protocol):
    async def receive(self) -> SessionMessage | Exception: ...
    async def aclose(self) -> None: ...


class _Sent(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...
    async def aclose(self) -> None: ...


Streams = tuple[_Received, _Sent]

Transport = Callable[[Mender], AbstractAsyncContextManager[Any]]
"""What connects to a server, once it is told who mends the messages."""


@asynccontextmanager
async def mended(
    transport: AbstractAsyncContextManager[Any], mender: Mender
) -> AsyncGenerator[tuple[MendedRead, MendedWrite]]:
    """`transport` with what the server says set right by `mender`."""
    async with transport as streams:
        read, write = streams[0], streams[1]
        yield MendedRead(read, mender), MendedWrite(write, mender)


class MendedRead:
    """The SDK's reading end."""

    def __init__(self, inner: _Received, mender: Mender) -> None:
        self._inner = inner
        self._mender = mender

    async def receive(self) -> SessionMessage | Exception:
        item = await self._inner.receive()
        if isinstance(item, SessionMessage):
            item.message = self._mender.received(item.message)
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class MendedWrite:
    """The SDK's writing end."""

    def __init__(self, inner: _Sent, mender: Mender) -> None:
        self._inner = inner
        self._mender = mender

    async def send(self, item: SessionMessage, /) -> None:
        self._mender.sent(item.message)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


@asynccontextmanager
async def stdio(process: ServerProcess, listener: Listener, patient: bool, mender: Mender) -> AsyncGenerator[Streams]:
    """Messages over the pipes of `process`; with `patient` the answer to `server/discover` may take its time.

    What is sent never waits for the server to read: a cancel has to get away from one that is stuck.
    """
    arrived, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, waiting = anyio.create_memory_object_stream[SessionMessage](math.inf)

    async def receive() -> None:
        async with arrived:
            async for line in process.lines(MESSAGE_LIMIT):
                for message in read_messages(line, listener.skipped):
                    await arrived.send(SessionMessage(message))
        listener.lost()

    async def send() -> None:
        async for item in waiting:
            message = item.message
            if isinstance(message, JSONRPCRequest) and message.method == "server/discover" and not patient:
                group.start_soon(give_up, message.id)
            await process.write(message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def give_up(probe: RequestId) -> None:
        await anyio.sleep(PROBE)
        if mender.waiting_for("server/discover") == probe:
            mender.given_up = probe
            error = ErrorData(code=METHOD_NOT_FOUND, message=f"no answer within {PROBE} s")
            await arrived.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=probe, error=error)))

    async with anyio.create_task_group() as group, incoming, outgoing, waiting:
        group.start_soon(_unless_closed, receive)
        group.start_soon(_unless_closed, send)
        yield incoming, outgoing
        group.cancel_scope.cancel()


async def _unless_closed(run: Callable[[], Any]) -> None:
    """Run one direction; that the other side has gone ends it quietly, and shows at the end of the output."""
    try:
        await run()
    except (ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


def read_messages(
    line: bytes | OverlongLine, skipped: Callable[[str], None], answering: RequestId | None = None
) -> Sequence[JSONRPCMessage]:
    """The messages of a line, and for a response that cannot be read an error; what is neither is told to `skipped`."""
    if isinstance(line, OverlongLine):
        answer = answer_for(line)
        skipped(f"a line of {line.size} bytes" + ("" if answer else ", of which it is unknown what it answers"))
        return [answer] if answer else []
    if not line.strip():
        return []
    try:
        return parse_line(line, answering)
    except ValueError as error:
        skipped(f"{error}: {line[:200].decode('utf-8', 'replace')}")
        answer = answer_for_garbled(line, str(error))
        return [answer] if answer else []
