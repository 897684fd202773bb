"""An MCP server over Streamable HTTP on loopback, in plain asyncio, that behaves as a test tells it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

Reply = tuple[int, dict[str, str], bytes]
Page = Callable[[str, str, dict[str, str], bytes], Reply]


@dataclass
class Post:
    headers: dict[str, str]
    message: dict[str, Any]


@dataclass
class HttpServer:
    """`tools` is what is listed, or what `listed` says for each request for a page of the list.

    `called` answers a call and may hold it; `pages` answer other paths. `replies` answers a message with whatever it
    likes, and with None in the ordinary way.
    """

    era: str = "new"
    tools: list[Any] = field(default_factory=lambda: [{"name": "echo", "inputSchema": {"type": "object"}}])
    listed: Callable[[Post], dict[str, Any]] | None = None
    session: str = ""
    token: str = ""
    streams: bool = False
    called: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] | None = None
    replies: Callable[[dict[str, Any]], Reply | None] | None = None
    pages: dict[str, Page] = field(default_factory=dict)
    posts: list[Post] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    forget: bool = False
    _server: asyncio.Server | None = None
    _connections: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def origin(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def methods(self) -> list[str]:
        return [post.message["method"] for post in self.posts]

    def of(self, method: str) -> list[Post]:
        return [post for post in self.posts if post.message["method"] == method]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while True:
                await self._one(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        path = target.partition("?")[0]
        if path in self.pages:
            await _reply(writer, *self.pages[path](method, target, headers, body))
        elif path != "/mcp":
            await _reply(writer, 404, {}, b"")
        elif self.token and headers.get("authorization") != f"Bearer {self.token}":
            metadata = f'Bearer resource_metadata="{self.origin}/.well-known/oauth-protected-resource"'
            await _reply(writer, 401, {"WWW-Authenticate": metadata}, b"")
        elif method != "POST":
            await _reply(writer, 405 if method == "GET" else 200, {}, b"")
        else:
            await self._post(reader, writer, Post(headers, json.loads(body)))

    async def _post(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, post: Post) -> None:
        self.posts.append(post)
        message = post.message
        if self.session and message["method"] not in ("initialize", "server/discover"):
            known = post.headers.get("mcp-session-id") == self.session
            if not known or self.forget:
                self.forget = False
                return await _reply(writer, 404, {}, b"")
        if "id" not in message:
            return await _reply(writer, 202, {}, b"")
        if self.replies is not None and (reply := self.replies(message)) is not None:
            return await _reply(writer, *reply)
        if message["method"] == "tools/call" and self.called is not None:
            answer = asyncio.ensure_future(self.called(message["params"]))
            gone = asyncio.ensure_future(reader.read(1))
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                answer.cancel()
                self.hung_up.set()
                raise ConnectionResetError("the client hung up")
            gone.cancel()
            await asyncio.wait({gone})
            outcome = {"result": {**_complete(self.era), **answer.result()}}
        else:
            outcome = self._answer(post)
        headers = {"Mcp-Session-Id": self.session} if self.session and message["method"] == "initialize" else {}
        data = json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode()
        if self.streams:
            await _reply(writer, 200, {"Content-Type": "text/event-stream", **headers}, b"data: " + data + b"\n\n")
        else:
            await _reply(writer, 200, {"Content-Type": "application/json", **headers}, data)

    def _answer(self, post: Post) -> dict[str, Any]:
        message = post.message
        method, params = message["method"], message.get("params", {})
        if method == "server/discover" and self.era == "new":
            about = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            return {"result": {**about, **_complete(self.era)}}
        if method == "initialize" and self.era == "old":
            info = {"name": "http", "version": "1"}
            version = params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        if method == "tools/list":
            page = {"tools": self.tools} if self.listed is None else self.listed(post)
            return {"result": {**_complete(self.era), **page}}
        if method == "tools/call":
            text = json.dumps(params.get("arguments"))
            return {"result": {**_complete(self.era), "content": [{"type": "text", "text": text}]}}
        return {"error": {"code": -32601, "message": "Method not found"}}


def with_sign_in(server: HttpServer, token: str = "t0k3n") -> list[dict[str, list[str]]]:
    """Have the server ask for the token that a sign-in gives; what the token's endpoint was asked."""
    asked: list[dict[str, list[str]]] = []
    server.token = token

    def page(value: dict[str, Any]) -> Any:
        def answer(method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
            return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()

        return answer

    def register(method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        client = {**json.loads(body), "client_id": "cl1", "token_endpoint_auth_method": "none"}
        return 201, {"Content-Type": "application/json"}, json.dumps(client).encode()

    def issue(method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        asked.append(parse_qs(body.decode()))
        return 200, {"Content-Type": "application/json"}, json.dumps(issued).encode()

    origin, issued = server.origin, {"access_token": token, "token_type": "Bearer"}
    server.pages = {
        "/.well-known/oauth-protected-resource": page({"resource": server.url, "authorization_servers": [origin]}),
        "/.well-known/oauth-authorization-server": page(
            {
                "issuer": origin,
                "authorization_endpoint": f"{origin}/authorize",
                "token_endpoint": f"{origin}/token",
                "registration_endpoint": f"{origin}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
        ),
        "/register": register,
        "/token": issue,
    }
    return asked


def _complete(era: str) -> dict[str, Any]:
    return {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"} if era == "new" else {}


async def _reply(writer: asyncio.StreamWriter, status: int, headers: dict[str, str], body: bytes) -> None:
    extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {status} Reply\r\n{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
