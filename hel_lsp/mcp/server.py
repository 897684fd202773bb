"""One MCP server: its process and connection live in an owner task, which alone enters and leaves them; others call.

Imports neither the SDK nor pydantic: the process starts while a thread imports them.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio

from hel_lsp.errors import HelError, ServerError, ServerLost
from hel_lsp.mcp.catalogue import SoundTool, inspect_list
from hel_lsp.mcp.failures import AnsweredLate, NeverAnswered, SessionLost
from hel_lsp.mcp.journal import Journal
from hel_lsp.mcp.process import ServerProcess, running
from hel_lsp.mcp.results import to_result
from hel_lsp.mcp.surroundings import Listener, Surroundings
from hel_lsp.mcp.text import harmless
from hel_lsp.messages import ToolResult
from hel_lsp.platforms import find_command, safe_environment
from hel_lsp.ports import RunLog

if TYPE_CHECKING:
    from hel_lsp.mcp.config import ServerEntry
    from hel_lsp.mcp.connection import Connection, ListedTools
    from hel_lsp.mcp.transport import Transport

Status = Literal["starting", "ready", "failed", "stopped"]

BACK_OFF = (0.0, 1.0, 4.0)
"""Seconds before each restart of a server that keeps ending; after the last it stays down."""

EXTENSION = 10
"""How many times its time-out a call may take while the server reports progress."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, where the server's own entry says nothing else."""

    start: float
    call: float


class _Clock:
    """The time of one call, which may take `limit` from any progress on. It stands still while a person is asked."""

    def __init__(self, limit: float) -> None:
        self.scope = anyio.CancelScope()
        self._limit = limit
        self._latest = anyio.current_time() + limit * EXTENSION
        self._stopped: float | None = anyio.current_time()

    def stop(self) -> None:
        self._stopped = anyio.current_time()
        self.scope.deadline = math.inf

    def go_on(self) -> None:
        if self._stopped is not None:
            self._latest += anyio.current_time() - self._stopped
            self._stopped = None
        self.restart()

    def restart(self) -> None:
        if self._stopped is None:
            self.scope.deadline = min(anyio.current_time() + self._limit, self._latest)


class McpServer:
    """A declared server. `tools` is what it listed last and stays when it ends: the next call starts it again."""

    def __init__(
        self,
        name: str,
        entry: ServerEntry,
        folder: Path,
        surroundings: Surroundings,
        limits: Limits,
        log: RunLog,
    ) -> None:
        self.name = name
        self.entry = entry
        self.status: Status = "stopped"
        self.protocol_version: str | None = None
        self.instructions = ""
        self.tools: list[SoundTool] = []
        self.journal = Journal(name, [*entry.env.items(), *entry.headers.items()], log)
        self.settled = asyncio.Event()
        self._down = asyncio.Event()
        self._folder = folder / (entry.cwd or ".")
        self._surroundings = surroundings
        self._limits = Limits(entry.start_timeout or limits.start, entry.timeout or limits.call)
        self._legacy = False
        self._patient = False
        self._connection: Connection | None = None
        self._owner: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()
        self._scope = anyio.CancelScope()
        self._stale_from = math.inf
        self._running: set[_Clock] = set()
        self._questions = 0
        self._failures = 0
        self.failure = ""
        """Why it is down, where it is."""

    # ---------------------------------------------------------------- its life

    def start(self) -> None:
        """Begin to start; `settled` is set when it is ready or has failed."""
        if self._owner is not None and not self._owner.done():
            return
        self.settled.clear()
        self._down.clear()
        self._ending.clear()
        self.journal.begin()
        self._set_status("starting")
        self._owner = asyncio.create_task(self._own(), name=f"MCP server {self.name}")

    async def stop(self) -> None:
        """End it and all it started; takes up to five seconds."""
        if self._owner is None:
            return
        self._ending.set()
        if self.status == "starting":
            self._scope.cancel()
        await asyncio.wait({self._owner})
        self._set_status("stopped")

    async def _own(self) -> None:
        try:
            await self._live()
        except (HelError, OSError, ExceptionGroup) as error:
            self._fail(_in_words(error))
        except Exception as error:  # the edge of this task: a fault of the SDK or of ours costs this server alone
            logger.exception("MCP server %s", self.name)
            self._fail(_in_words(error))
        finally:
            self._connection = None
            self.settled.set()
            self._down.set()

    async def _live(self) -> None:
        """From its start to its end. Raises what keeps it from becoming ready."""
        if self._ending.is_set():
            return
        with anyio.CancelScope(deadline=anyio.current_time() + self._limits.start) as self._scope:
            if self._legacy:
                return await self._run()
            try:
                return await self._run()
            except AnsweredLate:
                self._patient = True
            except NeverAnswered:
                self.journal.note(
                    "ended when it was asked server/discover, so it was started again in the older protocol"
                )
                self._legacy = True
            return await self._run()
        if not self._ending.is_set():
            raise ServerError(f"not ready within {self._limits.start:g} s")

    async def _run(self) -> None:
        lost = asyncio.Event()
        listener = Listener(self.journal.skipped, self._list_changed, lost.set, self._asking, self.journal.hide)
        if self.entry.url is not None:
            http = await _imported("http")
            await self._connect(http.over_http(self.name, self.entry, self._surroundings, listener), listener, lost)
            return
        environment = {**safe_environment(), **self.entry.env}
        command = find_command(self.entry.command or "", environment, self._folder)
        if command is None:
            raise ServerError(f"the command {self.entry.command} was not found")
        async with running([command, *self.entry.args], environment, self._folder, self.journal.heard) as process:
            transport = await _imported("transport")
            try:
                await self._connect(partial(transport.stdio, process, listener, self._patient), listener, lost)
            except (AnsweredLate, NeverAnswered):
                raise
            except ServerLost as error:
                raise ServerLost(await _end_of(process)) from error
            if not self._ending.is_set():
                self._fail(await _end_of(process))

    async def _connect(self, transport: Transport, listener: Listener, lost: asyncio.Event) -> None:
        sdk = await _imported("connection")
        async with sdk.connected(
            self.name, transport, legacy=self._legacy, surroundings=self._surroundings, listener=listener
        ) as connection:
            await self._serve(connection, lost)

    async def _serve(self, connection: Connection, lost: asyncio.Event) -> None:
        """Make the connection usable, until the server is to end or has ended."""
        self._stale_from = math.inf
        self._take(await connection.list_tools())
        self._scope.deadline = math.inf
        self._connection = connection
        self.protocol_version = connection.protocol_version
        self.instructions = harmless(connection.instructions)
        self._legacy = not connection.modern
        self._set_status("ready")
        self.settled.set()
        waits = [asyncio.create_task(event.wait()) for event in (self._ending, lost)]
        watching = asyncio.create_task(connection.watch(self._list_changed))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._connection = None
            for task in (*waits, watching):
                task.cancel()
            await asyncio.wait({watching})

    def _take(self, listed: ListedTools) -> None:
        tools, faults = inspect_list(listed.tools, self.entry.tools.include, self.entry.tools.exclude)
        self.tools = [tool for tool in tools if tool.name not in listed.refused]
        for fault in (*listed.diagnostics, *faults):
            self.journal.note(fault)
        for tool in tools:
            if tool.name in listed.refused:
                self.journal.note(
                    f"{harmless(tool.name)}: dropped, it asks for headers that the protocol does not allow"
                )
        if listed.ttl is not None:
            self._stale_from = min(self._stale_from, anyio.current_time() + listed.ttl)

    async def refresh(self) -> None:
        """Ask for the list of tools again where it is stale; what was known stays where that fails."""
        connection = self._connection
        if connection is None or anyio.current_time() < self._stale_from:
            return
        self._stale_from = math.inf  # a change that is told from now on counts again
        try:
            with anyio.fail_after(self._limits.start):
                listed = await connection.list_tools()
        except (ServerError, TimeoutError) as error:
            self.journal.note(f"the list of tools could not be renewed: {_in_words(error)}")
            return
        self.journal.diagnostics = []
        self._take(listed)
        self._surroundings.changed()

    def _fail(self, reason: str) -> None:
        self._failures += 1
        self.failure = self.journal.failed(reason)
        self._set_status("failed")
        self._down.set()

    # ---------------------------------------------------------------- calls

    async def call(self, tool: SoundTool, arguments: Mapping[str, Any]) -> ToolResult:
        """Call it, having started the server again where it has ended. Raises ServerError."""
        try:
            return await self._call(await self._connected(), tool, arguments)
        except SessionLost:
            await self._renew()
            return await self._call(await self._connected(), tool, arguments)

    async def _renew(self) -> None:
        """Connect afresh, where nobody else is about to."""
        if self._connection is not None:
            await self.stop()
            self.start()

    async def _call(self, connection: Connection, tool: SoundTool, arguments: Mapping[str, Any]) -> ToolResult:
        with self._timed() as clock:
            try:
                raw = await connection.call(tool.name, arguments, clock.restart)
            except SessionLost:
                raise
            except ServerLost as error:
                await self._down.wait()
                raise ServerLost(
                    f"The MCP server {self.name} {self.failure or 'was stopped'} during the call."
                ) from error
            self._failures = 0
            return to_result(raw, tool.output_schema)
        raise ServerError(
            f"No answer from the MCP server {self.name} within {self._limits.call:g} s. "
            "It was told to stop, but whether it did is unknown."
        )

    @contextmanager
    def _timed(self) -> Generator[_Clock]:
        clock = _Clock(self._limits.call)
        self._running.add(clock)
        if not self._questions:
            clock.go_on()
        try:
            with clock.scope:
                yield clock
        finally:
            self._running.discard(clock)

    @contextmanager
    def _asking(self) -> Generator[None]:
        """While a person is asked, neither the start nor a call runs out of time."""
        if not self._questions:
            self._scope.deadline = math.inf
            for clock in self._running:
                clock.stop()
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                if self.status == "starting":
                    self._scope.deadline = anyio.current_time() + self._limits.start
                for clock in self._running:
                    clock.go_on()

    async def _connected(self) -> Connection:
        if self.settled.is_set() and self._connection is None:
            await self._down.wait()
        if self._owner is not None and self.status == "failed":
            await asyncio.wait({self._owner})
            if self._failures > len(BACK_OFF):
                raise ServerError(
                    f"The MCP server {self.name} is down: it has failed {self._failures} times in a row, the last "
                    f"time because it {self.failure}. It is not started again until the user reloads it."
                )
            await asyncio.sleep(BACK_OFF[self._failures - 1])
            self.start()
        await self.settled.wait()
        if self._connection is None:
            raise ServerError(f"The MCP server {self.name} is not there: {self.failure or self.status}.")
        return self._connection

    # ---------------------------------------------------------------- what is told of it

    def _set_status(self, status: Status) -> None:
        self.status = status
        self.journal.status(status, self.protocol_version)
        self._surroundings.changed()

    def _list_changed(self) -> None:
        self._stale_from = -math.inf


async def _imported(module: str) -> Any:
    """A module of this package that brings the SDK, imported in a thread: it takes about a second."""
    return await asyncio.to_thread(importlib.import_module, f"hel_lsp.mcp.{module}")


async def _end_of(process: ServerProcess) -> str:
    """How it ended; the end of its output comes a moment before that of the process."""
    with anyio.move_on_after(1):
        await process.exited.wait()
    return process.exit_text


def _in_words(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_in_words(part) for part in error.exceptions)  # pyright: ignore
    return str(error) or type(error).__name__
