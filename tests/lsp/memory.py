"""The editor's end of a connection in memory, to a server of the project's own or a plain one of pygls.

Tests that run for `hel` and for `pygls` show the fault in plain pygls too: when upstream mends one, its `pygls` case
fails, and what `guard.py` does about it can go.
"""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pygls.io_ import run_async
from pygls.lsp.server import LanguageServer

from hel_lsp.lsp.guard import GuardedServer
from hel_lsp.lsp.wire import read_messages

both = pytest.mark.parametrize("kind", ["hel", "pygls"])

Message = dict[str, Any]


class Wire:
    """The editor's end of a connection in memory: what the server wrote, and a way to write to it."""

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.received: list[Message] = []
        self._news = asyncio.Event()
        self._reader = asyncio.StreamReader()
        self._loop: asyncio.Task[None] | None = None
        if isinstance(server, GuardedServer):
            server.protocol.attach(self, on_exit=lambda code: None)
        else:
            server.protocol.set_writer(self)
            loop = run_async(threading.Event(), self._reader, server.protocol, None, server.report_server_error)
            self._loop = asyncio.create_task(loop)

    def write(self, data: bytes) -> None:
        self.received += [json.loads(body) for body in read_messages(io.BytesIO(data))]
        self._news.set()

    async def close(self) -> None:
        if self._loop is not None:
            self._reader.feed_eof()
            await self._loop

    def send(self, message: Any) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        if isinstance(self.server, GuardedServer):
            self.server.protocol.receive(body)
        else:
            self._reader.feed_data(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def request(self, number: int | str, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def reply(self, number: int | str, **fields: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": number} | fields)

    async def wait(self, predicate: Callable[[Message], bool]) -> Message:
        async with asyncio.timeout(5):
            while True:
                for message in self.received:
                    if predicate(message):
                        return message
                self._news.clear()
                await self._news.wait()

    async def answer(self, number: int | str) -> Message:
        return await self.wait(lambda message: message.get("id") == number and "method" not in message)

    async def asked(self, method: str) -> Message:
        return await self.wait(lambda message: message.get("method") == method)

    async def everything_handled(self) -> None:
        """Whatever was sent before has been handled by the server; a reply that is not there by now never comes."""
        for barrier in ("barrier 1", "barrier 2"):
            self.request(barrier, "test/barrier")
            await self.answer(barrier)
            await asyncio.sleep(0)

    def answers(self, number: int | str | None) -> list[Message]:
        return [message for message in self.received if message.get("id") == number and "method" not in message]

    def popups(self) -> list[Message]:
        return [message for message in self.received if message.get("method") == "window/showMessage"]


def make_server(kind: str) -> LanguageServer:
    return GuardedServer("test", "1") if kind == "hel" else LanguageServer("test", "1")


async def connect(server: LanguageServer, **initialize: Any) -> Wire:
    wire = Wire(server)
    wire.request("init", "initialize", {"processId": None, "rootUri": None, "capabilities": {}} | initialize)
    await wire.answer("init")
    wire.notify("initialized", {})
    return wire


def ask(wire: Wire, number: int, argument: Any = None) -> None:
    wire.request(number, "workspace/executeCommand", {"command": "ask", "arguments": [argument]})


def add_command(server: LanguageServer, handler: Callable[..., Any]) -> None:
    """Register `handler` for the command that `ask` sends."""
    if isinstance(server, GuardedServer):
        server.commands["ask"] = handler
    else:
        server.command("ask")(handler)
