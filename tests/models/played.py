"""An HTTP server on loopback that plays prepared bytes and ends each reply as told."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from hel_lsp.messages import UserMessage
from hel_lsp.ports import Model, ModelReply, ModelRequest, Retrying, StreamEvent, TextDelta

HELLO = ModelRequest([UserMessage("hello")], [])


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"delta": delta, "finish_reason": finish}]
    return event(json.dumps({"choices": choices, **more}, separators=(",", ":")))


def event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def call(index: int | None = None, id: str | None = None, name: str | None = None, args: Any = None) -> dict[str, Any]:
    """One fragment of a tool call as a delta; what is None is not in it."""
    function = {key: value for key, value in {"name": name, "arguments": args}.items() if value is not None}
    fragment = {"index": index, "id": id, "function": function}
    return {"tool_calls": [{key: value for key, value in fragment.items() if value is not None}]}


DONE = event("[DONE]")
SILENT = 0
"""In place of a status: the request is read and nothing is said."""


@dataclass
class Played:
    """`pieces` is the body, a chunk each. `end`: whole, cut (connection reset), open (nothing more comes)."""

    pieces: tuple[bytes, ...] = ()
    end: Literal["whole", "cut", "open"] = "whole"
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})


def played(*pieces: bytes, end: Literal["whole", "cut", "open"] = "whole") -> Played:
    return Played(pieces, end)


def refused(status: int, body: Any, **headers: str) -> Played:
    text = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Played((text.encode(),), status=status, headers={"Content-Type": "application/json", **named})


class PlayedServer:
    """Serves `replies` in order; hangs up without an answer where the reply is None."""

    def __init__(self) -> None:
        self.replies: list[Played | None] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.connections = 0
        self.arrived: list[float] = []
        self.written: list[float] = []
        self.hung_up = asyncio.Event()
        self.stalled = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=tls)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._answered(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.arrived.append(time.monotonic())
        self.paths.append(head.split(" ", 2)[1])
        lines = [line.partition(":") for line in head.split("\r\n")[1:] if line]
        headers = {name.lower(): value.strip() for name, _, value in lines}
        self.headers.append(headers)
        self.bodies.append(await reader.readexactly(int(headers.get("content-length", "0"))))
        assert self.replies, "one more request than there are replies"
        reply = self.replies.pop(0)
        if reply is None:
            writer.transport.abort()
            return False
        if reply.status == SILENT:
            self.stalled.set()
            await reader.readexactly(1)
        given = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
        writer.write(f"HTTP/1.1 {reply.status} Played\r\n{given}Transfer-Encoding: chunked\r\n\r\n".encode())
        for piece in reply.pieces:
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        if reply.end == "open":
            self.stalled.set()
            if not await reader.read(1):
                raise ConnectionResetError
        if reply.end == "cut":
            # An orderly end of the connection in the middle of the body: what was written arrives first.
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        self.written.append(time.monotonic())
        return True


@dataclass
class Client:
    """The model at the server, with a clock that does not pass: `waits` is what it would have slept."""

    server: PlayedServer
    waits: list[float]
    make: Callable[..., Model]
    model: Model

    def plays(self, *replies: Played | None) -> None:
        self.server.replies += replies

    async def ask(self, *replies: Played | None, request: ModelRequest = HELLO) -> Answer:
        self.plays(*replies)
        return Answer([item async for item in self.model.stream(request)])


@dataclass
class Answer:
    events: list[StreamEvent]

    @property
    def reply(self) -> ModelReply:
        last = self.events[-1]
        assert isinstance(last, ModelReply)
        return last

    @property
    def shown(self) -> str:
        return "".join(item.text for item in self.events if isinstance(item, TextDelta))

    @property
    def retries(self) -> list[Retrying]:
        return [item for item in self.events if isinstance(item, Retrying)]

    @property
    def calls(self) -> list[tuple[str, str]]:
        return [(item.name, item.arguments) for item in self.reply.tool_calls]
