"""One connection to an MCP server, over the official SDK's client.

Imports the SDK, which takes about a second and 64 MB: so this module is imported when a server is about to start.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import httpx2
from mcp import Client, MCPError, UrlElicitationRequiredError
from mcp.client import ClientRequestContext, IncomingMessage
from mcp.client.auth import OAuthFlowError
from mcp.client.subscriptions import SubscriptionLost
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    ListRootsResult,
    ListToolsResult,
    Root,
    ToolListChangedNotification,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl

from hel_lsp import __version__
from hel_lsp.errors import ServerError, ServerLost
from hel_lsp.mcp.elicitation import answer
from hel_lsp.mcp.failures import AnsweredLate, NeverAnswered, SessionLost
from hel_lsp.mcp.surroundings import Listener, Surroundings
from hel_lsp.mcp.text import harmless
from hel_lsp.mcp.transport import Transport, mended
from hel_lsp.mcp.wire import ANSWERED, RAW, UNREADABLE, WITH_HEADERS, Mender

PAGES = 1000
"""Pages of one list that are asked for."""


_NO_SESSION = "Session terminated"  # what the SDK makes of the 404 that says so

_PAUSES = (1.0, 60.0)
"""Seconds, at the least and at the most, before a stream of changes is opened again."""


@dataclass(slots=True)
class ListedTools:
    """All pages of a list as the server wrote them; `ttl` is in seconds, None where the server set none.

    `refused` are names of tools that ask for headers which the protocol forbids.
    """

    tools: list[object] = field(default_factory=list[object])
    refused: set[str] = field(default_factory=set[str])
    ttl: float | None = None
    diagnostics: list[str] = field(default_factory=list[str])


class Connection:
    """A server that has been greeted. Calls may come from any task; each raises ServerError or ServerLost."""

    def __init__(self, client: Client, mender: Mender, send_away: Callable[[MCPError], Awaitable[str]]) -> None:
        self._client = client
        self._mender = mender
        self._send_away = send_away

    @property
    def protocol_version(self) -> str:
        return self._client.protocol_version

    @property
    def modern(self) -> bool:
        """Whether it speaks 2026-07-28 or newer."""
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def instructions(self) -> str:
        return self._client.instructions or ""

    async def list_tools(self) -> ListedTools:
        """Every page; where a later one fails, what came before it."""
        listed = ListedTools()
        cursor: str | None = None
        seen: set[str | None] = set()
        while cursor not in seen and len(seen) < PAGES:
            seen.add(cursor)
            try:
                page = await self._client.list_tools(cursor=cursor)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND and cursor is None:
                    return listed  # it has no tools
                if cursor is None or _closed(error):
                    raise _server_error(error) from error
                listed.diagnostics.append(f"page {len(seen)} of the list of tools failed: {harmless(error.message)}")
                return listed
            self._add(listed, page)
            cursor = page.next_cursor
            if cursor is None:
                return listed
        reason = "a page was to be followed by itself" if cursor in seen else f"it has more than {PAGES} pages"
        listed.diagnostics.append(f"the list of tools was cut off: {reason}")
        return listed

    def _add(self, listed: ListedTools, page: ListToolsResult) -> None:
        meta = page.meta or {}
        raw = self._mender.take(meta[RAW])
        tools: object = raw.get("tools")
        if isinstance(tools, list):
            listed.tools += cast("list[object]", tools)
        else:
            listed.diagnostics.append("a page of the list of tools has no tools")
        listed.refused |= set(cast("list[str]", meta[WITH_HEADERS])) - {tool.name for tool in page.tools}
        ttl = raw.get("ttlMs")
        if isinstance(ttl, int | float) and not isinstance(ttl, bool):
            seconds = max(ttl / 1000, 0.0)
            listed.ttl = seconds if listed.ttl is None else min(listed.ttl, seconds)

    async def watch(self, changed: Callable[[], None]) -> None:
        """Have `changed` called when the server says so on a stream of its own, which is opened again when it ends.

        Returns where there is no such stream: the older protocol sends a notification, which the listener hears.
        """
        tools = self._client.server_capabilities.tools
        if not self.modern or tools is None or not tools.list_changed:
            return
        pause = _PAUSES[0]
        reopened = False
        while True:
            opened = anyio.current_time()
            try:
                async with self._client.listen(tools_list_changed=True) as stream:
                    if not stream.honored.tools_list_changed:
                        return
                    if reopened:
                        changed()  # what happened meanwhile is not told again
                    async for _ in stream:
                        changed()
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND or _closed(error):
                    return
            except SubscriptionLost:
                pass
            changed()  # nothing is told from here on
            reopened = True
            pause = _PAUSES[0] if anyio.current_time() - opened > _PAUSES[1] else min(pause * 2, _PAUSES[1])
            await anyio.sleep(pause)

    async def call(self, tool: str, arguments: Mapping[str, Any], advanced: Callable[[], None]) -> Mapping[str, Any]:
        """The result as the server sent it; `advanced` is called whenever the server reports progress."""

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            advanced()

        try:
            result = await self._client.call_tool(tool, dict(arguments), progress_callback=progress)
        except MCPError as error:
            if error.code == URL_ELICITATION_REQUIRED:
                raise ServerError(await self._send_away(error)) from error
            raise _server_error(error) from error
        except (ValueError, RuntimeError) as error:
            raise ServerError(f"The server's answer cannot be used: {error}") from error
        return self._mender.take((result.meta or {}).get(RAW))


def _closed(error: MCPError) -> bool:
    return error.code == CONNECTION_CLOSED and error.data != ANSWERED


def _server_error(error: MCPError) -> ServerError:
    if _closed(error):
        return ServerLost(error.message)
    if error.code == INVALID_REQUEST and error.message.startswith(_NO_SESSION):
        return SessionLost(error.message)
    if error.data == UNREADABLE:
        return ServerError(f"The server answered, so it may have done what it was asked, but {harmless(error.message)}")
    return ServerError(f"The server answered with the error {error.code}: {harmless(error.message)}")


@asynccontextmanager
async def connected(
    name: str,
    transport: Transport,
    *,
    legacy: bool,
    surroundings: Surroundings,
    listener: Listener,
) -> AsyncGenerator[Connection]:
    """Greet the server `name`; with `legacy` in the way from before 2026-07-28 alone.

    Enter and leave in the same task. Raises ServerError, and NeverAnswered where the older greeting is left to try,
    AnsweredLate where the newer one needs more time.
    """
    mender = Mender()
    dialogue = _Dialogue(name, surroundings, listener)
    client = _client(mended(transport(mender), mender), legacy, dialogue)
    greeted = False
    try:
        async with client:
            greeted = True
            yield Connection(client, mender, dialogue.send_away)
    except (MCPError, ExceptionGroup) as error:
        inner = _innermost(error)
        if isinstance(inner, httpx2.HTTPError | OAuthFlowError):
            raise ServerLost(str(inner) or type(inner).__name__) from error
        if not isinstance(inner, MCPError):
            raise inner from error
        if mender.answered_late and not greeted:
            raise AnsweredLate(inner.message) from error
        if inner.code == CONNECTION_CLOSED and not legacy and not mender.replied:
            raise NeverAnswered(inner.message) from error
        raise _server_error(inner) from error


def _innermost(error: Exception) -> Exception:
    """The one error that task groups have wrapped; the group, where there are several."""
    if isinstance(error, ExceptionGroup):
        parts = cast("tuple[Exception, ...]", error.exceptions)
        return _innermost(parts[0]) if len(parts) == 1 else cast("Exception", error)
    return error


def _client(transport: AbstractAsyncContextManager[Any], legacy: bool, dialogue: _Dialogue) -> Client:
    return Client(
        transport,
        mode="legacy" if legacy else "auto",
        client_info=Implementation(name="hel-lsp", version=__version__),
        list_roots_callback=dialogue.roots,
        elicitation_callback=dialogue.elicit if dialogue.person is not None else None,
        message_handler=dialogue.hear,
        cache=None,  # it caches page by page, without the shortest lifetime of all pages
    )


class _Dialogue:
    """What one server asks and tells of its own accord."""

    def __init__(self, name: str, surroundings: Surroundings, listener: Listener) -> None:
        self._name = name
        self._roots = surroundings.roots
        self._listener = listener
        self.person = surroundings.person

    async def roots(self, context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(root.as_uri()), name=root.name) for root in self._roots()])

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert self.person is not None
        with self._listener.asking():
            return await answer(self._name, params, self.person)

    async def hear(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._listener.list_changed()

    async def send_away(self, error: MCPError) -> str:
        """Show the web pages that a call needs to have been visited first; what the model is told of it."""
        if self.person is None:
            return "The server needs the user to visit a web page first, which cannot be shown here."
        for page in UrlElicitationRequiredError.from_error(error.error).elicitations:
            with self._listener.asking():
                if (await answer(self._name, page, self.person)).action != "accept":
                    return "The server needs the user to visit a web page first, and the user declined."
        return "The server needs the user to visit a web page first. It has been opened: call again when they are done."
