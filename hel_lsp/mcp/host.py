"""The MCP servers of one workspace folder: read from its files, trusted, started together, offered, ended together.

Cheap to import: the SDK, pydantic and jsonschema are imported when a server list is there, not before.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hel_lsp.errors import ConfigError, ServerError
from hel_lsp.mcp.catalogue import Catalogue, Listing, OfferedTool, build_catalogue
from hel_lsp.mcp.search import ToolIndex
from hel_lsp.mcp.server import Limits, McpServer
from hel_lsp.mcp.surroundings import Surroundings
from hel_lsp.mcp.validation import SchemaCheck
from hel_lsp.messages import ToolResult
from hel_lsp.ports import DeferredTool, Person, RunLog, ServerStatus, Trust, TrustRequest
from hel_lsp.settings import McpSettings

if TYPE_CHECKING:
    from hel_lsp.mcp.config import DeclaredServer, ServerFile

FILES = ((".hel/mcp.json", "servers"), (".mcp.json", "mcpServers"))
"""Where server lists are, and under which key; a server in both is that of the first."""


_LARGE = 500  # tools from which on indexing them takes longer than a search should


@dataclass(slots=True)
class _Entry:
    """A server of a file, and what runs of it."""

    declared: DeclaredServer
    trusted: bool
    diagnostics: list[str] = field(default_factory=list[str])
    server: McpServer | None = None


class McpHost:
    """Implements `ports.DeferredTools`.

    `settings` are looked at whenever they matter. `trust` is asked once for each file, before anything in it is
    started. `notify` is told, for the user, of files that cannot be used and of servers that did not start. `refused`
    names environment variables that no server may be given: the model's keys. `person` answers what servers ask for in
    the middle of a call; without one they are told that nothing can be asked.
    """

    def __init__(
        self,
        folder: Path,
        settings: Callable[[], McpSettings],
        trust: Trust,
        log: RunLog,
        *,
        notify: Callable[[str], None],
        roots: Callable[[], Sequence[Path]] | None = None,
        refused: Collection[str] = (),
        person: Person | None = None,
    ) -> None:
        self._folder = folder
        self._current_settings = settings
        self._trust = trust
        self._log = log
        self._notify = notify
        self._refused = refused
        self._surroundings = Surroundings(roots or (lambda: [folder]), self._changed, person)
        self._reading = asyncio.Lock()
        self._read: set[str] = set()
        self._told: set[str] = set()
        self._entries: dict[str, _Entry] = {}
        self._looked_at: dict[str, _Entry] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._catalogue: Catalogue | None = None
        self._tools: dict[str, DeferredTool] = {}
        self._checks: dict[str, SchemaCheck] = {}
        self._index: ToolIndex | None = None
        self._indexing: asyncio.Task[None] | None = None
        self._told_down: dict[str, str] = {}

    @property
    def _settings(self) -> McpSettings:
        return self._current_settings()

    # ---------------------------------------------------------------- start and end

    async def start(self) -> None:
        """Read the files, ask for trust, start what is trusted; returns when all are ready or after `start_wait`.

        Waits for the answer to the question of trust as long as it takes; when it is cancelled there, the next start
        asks again. Once the files have been read, a start only waits.
        """
        if not self._settings.enabled:
            return
        if not self._is_read():  # else a question of trust that a reload asks would hold up every turn
            await self._read_files()
        waits = [asyncio.ensure_future(server.settled.wait()) for server in self._servers()]
        if waits:
            _, late = await asyncio.wait(waits, timeout=self._settings.start_wait)
            for wait in late:
                wait.cancel()
        self._index_ahead()
        self._tell_of_failures()

    async def _read_files(self) -> None:
        async with self._reading:
            for file in FILES:
                if file[0] not in self._read:
                    _merge(self._entries, await self._read_file(*file))
                    self._read.add(file[0])
                    self._start_new()

    def _tell_of_failures(self) -> None:
        """Have the user hear once of each server that did not start."""
        for server in self._servers():
            if server.status != "failed":
                self._told_down.pop(server.name, None)
            elif self._told_down.get(server.name) != server.failure:
                self._told_down[server.name] = server.failure
                self._notify(
                    f"MCP server {server.name}: {server.failure}. `hel.tools` says more, `hel.reloadMcp` retries."
                )

    async def look(self, knows: Callable[[TrustRequest], bool]) -> None:
        """Have `servers` tell what the files declare that have not been read for a start: nothing is asked or started.

        It waits for no other's question of trust either.
        """
        looked_at: dict[str, _Entry] = {}
        for file in FILES if not self._is_read() else ():
            declared = await self._declared(*file)
            if declared is not None:
                _merge(looked_at, _entries(declared, not declared.lines or knows(_request(declared))))
        if not self._settings.enabled:
            for entry in looked_at.values():
                off = "the setting mcp.enabled is false"
                entry.declared = replace(entry.declared, entry=None, status="disabled", problem=off)
        self._looked_at = looked_at

    def _is_read(self) -> bool:
        return len(self._read) == len(FILES)

    async def settle(self) -> None:
        """Wait until every server is ready or has failed."""
        for server in self._servers():
            await server.settled.wait()

    async def refresh(self) -> None:
        """Ask again for lists of tools that are stale, all at the same time; waits `start_wait` at the longest."""
        renewals = {asyncio.create_task(server.refresh()) for server in self._servers()}
        if renewals:
            _, late = await asyncio.wait(renewals, timeout=self._settings.start_wait)
            for renewal in late:
                self._keep(renewal)
        self._index_ahead()
        self._tell_of_failures()

    async def reload(self, name: str | None = None) -> None:
        """Read the files again, ask for trust where they changed, end what is gone, start what is new or changed.

        What had failed is started again; with `name`, that server in any case.
        """
        if not self._settings.enabled:
            return
        self._told.clear()
        async with self._reading:
            fresh: dict[str, _Entry] = {}
            for file in FILES:
                _merge(fresh, await self._read_file(*file))
            for other, entry in fresh.items():
                old = self._entries.get(other)
                if other != name and old and old.server and _same(old, entry) and old.server.status != "failed":
                    entry.server = old.server
            kept = [entry.server for entry in fresh.values()]
            await asyncio.gather(*(server.stop() for server in self._servers() if server not in kept))
            self._entries = fresh
            self._read.update(file[0] for file in FILES)
            self._changed()
            self._start_new()
        await self.start()

    async def aclose(self) -> None:
        """End every server and what it started, all at the same time; takes up to five seconds."""
        await asyncio.gather(*(server.stop() for server in self._servers()))

    async def _read_file(self, relative: str, key: str) -> dict[str, _Entry]:
        file = await self._declared(relative, key)
        if file is None:
            return {}
        trusted = not file.lines or await self._trust(_request(file))
        self._log.write("mcp_file", file=str(file.path), sha256=file.sha256, trusted=trusted)
        return _entries(file, trusted)

    async def _declared(self, relative: str, key: str) -> ServerFile | None:
        """What the file says; None without one, and for one that cannot be used, which is told once."""
        path = self._folder / relative
        if not path.exists():
            return None
        # pydantic comes with it: off the loop, for it takes a tenth of a second
        config = await asyncio.to_thread(importlib.import_module, "hel_lsp.mcp.config")
        try:
            return config.read_servers(path, key, os.environ, self._refused)
        except ConfigError as error:
            if error.message not in self._told:
                self._told.add(error.message)
                self._log.write("mcp_file", file=str(path), error=error.message)
                self._notify(error.message)
            return None

    def _start_new(self) -> None:
        limits = Limits(self._settings.start_timeout, self._settings.call_timeout)
        for name, entry in self._entries.items():
            if entry.server is None and entry.trusted and (declared := entry.declared.entry) is not None:
                entry.server = McpServer(name, declared, self._folder, self._surroundings, limits, self._log)
                entry.server.start()

    def _servers(self) -> list[McpServer]:
        return [entry.server for entry in self._entries.values() if entry.server is not None]

    # ---------------------------------------------------------------- what is there

    def tools(self) -> Mapping[str, DeferredTool]:
        self._built()
        return self._tools

    def always_loaded(self) -> Sequence[str]:
        return [name for name, offered in self._built().tools.items() if self._wants_always(offered)]

    def instructions(self) -> Mapping[str, str]:
        return {server.name: server.instructions for server in self._servers()}

    def pending(self) -> Sequence[str]:
        return [server.name for server in self._servers() if server.status == "starting"]

    def search(self, query: str, limit: int) -> Sequence[str]:
        self._index_ahead()
        if self._indexing is not None and not self._indexing.done():
            return []
        if self._index is None:
            self._index = ToolIndex(self.tools().values())
        return self._index.search(query, limit)

    async def indexed(self) -> None:
        self._index_ahead()
        while (indexing := self._indexing) is not None and not indexing.done():
            await asyncio.wait({indexing})

    def _index_ahead(self) -> None:
        """Have a large catalogue indexed in a thread, before the first search needs it."""
        if self._index is None and len(self.tools()) >= _LARGE:
            self._index = ToolIndex(self.tools().values())
            self._indexing = asyncio.create_task(asyncio.to_thread(self._index.build))
            self._keep(self._indexing)

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Hold on to a task that nobody waits for: the loop alone would let it be collected."""
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def servers(self) -> Sequence[ServerStatus]:
        """Every server of the files, with what was left out of it and why; also of those that were only looked at."""
        catalogue = self._built()
        entries = self._entries if self._is_read() else self._looked_at | self._entries
        tools: dict[str, list[DeferredTool]] = {}
        for offered in catalogue.tools.values():
            tools.setdefault(offered.server, []).append(offered.tool)
        return [
            _state(name, entry, tools.get(name, []), catalogue.diagnostics.get(name, []))
            for name, entry in entries.items()
        ]

    def _built(self) -> Catalogue:
        if self._catalogue is None:
            listings = [
                Listing(server.name, server.tools, self._trusts_annotations(server)) for server in self._servers()
            ]
            self._catalogue = build_catalogue(listings, self._settings.long_names)
            self._tools = {name: offered.tool for name, offered in self._catalogue.tools.items()}
        return self._catalogue

    def _changed(self) -> None:
        self._catalogue = None
        self._index = self._indexing = None
        self._checks.clear()

    def _trusts_annotations(self, server: McpServer) -> bool:
        own = server.entry.trust_annotations
        return self._settings.trust_annotations if own is None else own

    def _wants_always(self, offered: OfferedTool) -> bool:
        server = self._entries[offered.server].server
        wanted = server.entry.always_load if server else False
        return wanted if isinstance(wanted, bool) else offered.origin.name in wanted

    # ---------------------------------------------------------------- calls

    def validate(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments to send; raises InvalidArguments. Those of a tool that is gone are passed as they are."""
        offered = self._built().tools.get(name)
        if offered is None:
            return arguments
        arguments = {offered.parameters.get(given, given): value for given, value in arguments.items()}
        check = self._checks.get(name)
        if check is None:
            check = self._checks[name] = SchemaCheck(offered.origin.schema)
        return check.arguments(name, arguments)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """What the server answers; every failure is a result that says what is known."""
        offered = self._built().tools.get(name)
        if offered is None or (server := self._entries[offered.server].server) is None:
            return ToolResult(f"{name} is gone: its server does not offer it any more.", "failed")
        try:
            return await server.call(offered.origin, arguments)
        except ServerError as error:
            return ToolResult(error.message, "failed")


def _request(file: ServerFile) -> TrustRequest:
    return TrustRequest(file.path, file.sha256, file.lines)


def _entries(file: ServerFile, trusted: bool) -> dict[str, _Entry]:
    return {declared.name: _Entry(declared, trusted) for declared in file.servers}


def _merge(entries: dict[str, _Entry], more: Mapping[str, _Entry]) -> None:
    for name, entry in more.items():
        if name in entries:
            entries[name].diagnostics.append(f"declared in {FILES[1][0]} as well, where it is ignored")
        else:
            entries[name] = entry


def _same(old: _Entry, new: _Entry) -> bool:
    return new.trusted and old.declared.entry == new.declared.entry


def _state(name: str, entry: _Entry, tools: Sequence[DeferredTool], dropped: Sequence[str]) -> ServerStatus:
    diagnostics = [*entry.diagnostics, *entry.declared.diagnostics]
    if entry.declared.entry is None:
        return ServerStatus(name, entry.declared.status, None, (), [*diagnostics, entry.declared.problem])
    if entry.server is None:
        return ServerStatus(name, "stopped" if entry.trusted else "untrusted", None, (), diagnostics)
    server = entry.server
    diagnostics += [*server.journal.diagnostics, *dropped]
    return ServerStatus(name, server.status, server.protocol_version, tools, diagnostics)
