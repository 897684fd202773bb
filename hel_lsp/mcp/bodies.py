"""What servers send over HTTP, made into events of which the SDK's transport loses none.

The SDK checks a body against its own types before anything else has seen it. So an answer is lost whose result is no
object or is nested more than 200 levels deep, one that comes after an event that is no message, and one in a batch; and
an answer without the id of its request, which can be for no other, is waited for until the time has run out. Here each
answer becomes an event with a short stand-in, which `Mender` turns back.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import httpx2
from mcp.types import JSONRPCError, JSONRPCMessage, JSONRPCResponse

from hel_lsp.mcp.transport import MESSAGE_LIMIT, read_messages
from hel_lsp.mcp.wire import Mender, unreadable

_EVENTS = "text/event-stream"
_SHOWN = 200  # bytes of a body that is no message
_UNKNOWN = 0  # stands where an answer has no id: the SDK puts that of the request on whatever answers it


class MendingClient(httpx2.AsyncClient):
    """A client that hands on what a server answers as events; `skipped` is told of what is no message."""

    def __init__(self, mender: Mender, skipped: Callable[[str], None], **options: Any) -> None:
        super().__init__(**options)
        self._mender = mender
        self._skipped = skipped

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = await super().send(request, **options)
        if response.is_success and (request.method == "POST" or (request.method == "GET" and _is_stream(response))):
            # A response of its own decodes what came compressed: the SDK is given what has been read from it.
            body = httpx2.Response(200, headers=response.headers, stream=response.stream, request=request)
            response.stream = _Stream(body, self._events(body, request.method == "POST"))
            response.headers["Content-Type"] = _EVENTS
            for name in ("Content-Encoding", "Content-Length"):
                response.headers.pop(name, None)
        return response

    async def _events(self, body: httpx2.Response, answering: bool) -> AsyncGenerator[bytes]:
        if not _is_stream(body):
            for message in await self._answer(body):
                yield self._event("", message)
            return
        async for event in httpx2.EventSource(body, max_event_size=MESSAGE_LIMIT):
            # What the SDK resumes a stream by is passed on, whatever becomes of the message.
            head = f"id: {event.id}\n" if event.id else ""
            head += f"retry: {event.retry}\n" if event.retry is not None else ""
            data = event.data.encode() if event.event == "message" else b""
            for message in read_messages(data, self._skipped, _UNKNOWN if answering else None) or [None]:
                yield self._event(head, message)

    async def _answer(self, body: httpx2.Response) -> Sequence[JSONRPCMessage]:
        data = bytearray()
        async for chunk in body.aiter_bytes():
            data += chunk
            if len(data) > MESSAGE_LIMIT:
                return [unreadable(_UNKNOWN, f"it has more than {MESSAGE_LIMIT} bytes")]
        messages = read_messages(bytes(data), self._skipped, _UNKNOWN)
        if any(isinstance(message, JSONRPCResponse | JSONRPCError) for message in messages):
            return messages
        kind, text = body.headers.get("Content-Type", "of no type"), data[:_SHOWN].decode("utf-8", "replace")
        return [*messages, unreadable(_UNKNOWN, f"it is no message, but {kind}: {text}" if data else "it is empty")]

    def _event(self, head: str, message: JSONRPCMessage | None) -> bytes:
        data = ""
        if message is not None:
            try:
                data = self._mender.held(message).model_dump_json(by_alias=True, exclude_unset=True)
            except ValueError as error:  # a request or notification nested deeper than the SDK would read
                self._skipped(str(error))
        return f"{head}data: {data}\n\n".encode()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, body: httpx2.Response, events: AsyncGenerator[bytes]) -> None:
        self._body = body
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._events):
            async for event in self._events:
                yield event

    async def aclose(self) -> None:
        await self._body.aclose()


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("Content-Type", "").lower().startswith(_EVENTS)
