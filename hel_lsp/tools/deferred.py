"""Deferred loading: the model sees names and first lines, and asks for the definitions that it wants.

A session keeps the record of what it loaded. Nothing here reaches a server: loading is looking into the catalogue,
and a call to a tool whose definition the model has not been sent is answered here.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from hel_lsp.errors import InvalidArguments, NotLoaded, UnknownTool
from hel_lsp.messages import Access, ToolCall, ToolDefinition, ToolResult
from hel_lsp.ports import DeferredTool, DeferredTools, Model, Prepared, Preview
from hel_lsp.tools.arguments import Arguments, check, define, parse_arguments

LINE_LIMIT = 120
"""Characters of a description in the catalogue."""

BEST = 3
"""Tools that a query loads by itself."""

NEWS = 20
"""Changes of the catalogue that one message tells."""

LISTED = 15
"""Further tools that a query names without loading them."""

CONNECTING = 30
"""Servers that are named while they are still connecting."""

DEFINITION = 100_000
"""Bytes of a definition that is sent; it goes along with every request from then on."""

COMPARED = 500
"""Names that are compared with an unknown one; of more, those that share a word with it."""


class Deferred:
    """The loading record of one session, over the `tools` of its workspace's servers.

    `budget` is what the catalogue may have of characters.
    """

    def __init__(self, tools: DeferredTools, *, auto_load: bool, budget: int) -> None:
        self._tools = tools
        self._auto_load = auto_load
        self._budget = budget
        self._told: dict[str, ToolDefinition] | None = None
        self._loaded: dict[str, ToolDefinition] = {}
        self._taken: dict[str, tuple[Model, ToolDefinition]] = {}
        self._refused: dict[str, tuple[ToolDefinition, str]] = {}
        self._noticed: set[str] = set()
        self._notices: list[str] = []
        self.loader = LoadMcpTool(tools, self)

    def definitions(self) -> list[ToolDefinition]:
        """What has been loaded, in that order, and what always is as soon as its server is ready.

        A tool that is gone keeps its place, a changed one is sent anew.
        """
        catalogue = self._tools.tools()
        for name in dict.fromkeys([*self._loaded, *self._tools.always_loaded()]):
            definition = catalogue[name].definition if name in catalogue else self._loaded[name]
            if definition == self._loaded.get(name):
                continue
            if fault := self._fault(definition):
                self._notice(name, fault)
            else:
                self._loaded[name] = definition
        return list(self._loaded.values())

    def untried(self, model: Model) -> list[str]:
        """The loaded tools whose definitions this model has not been sent with success yet."""
        return [name for name, definition in self._loaded.items() if self._taken.get(name) != (model, definition)]

    def sent(self, model: Model, tools: Iterable[ToolDefinition], refused: Mapping[str, str]) -> None:
        """The model has answered a request with `tools`, and none with those in `refused`, for these reasons.

        They are loaded no more until their definitions change: every further request would be refused with them.
        """
        self._taken.update((tool.name, (model, tool)) for tool in tools)
        for name, reason in refused.items():
            self._refused[name] = self._loaded.pop(name), reason
            self._notice(name, reason)

    def notices(self) -> list[str]:
        """What the user has not been told yet of tools that should be loaded and are not."""
        notices, self._notices = self._notices, []
        return notices

    def _notice(self, name: str, fault: str) -> None:
        if name not in self._noticed:
            self._noticed.add(name)
            self._notices.append(f"{name} is not loaded: {fault}")

    def _fault(self, definition: ToolDefinition) -> str:
        """Why the definition is not to be sent; empty where it may be."""
        refused, reason = self._refused.get(definition.name, (None, ""))
        return reason if refused == definition else _oversize(definition)

    def close(self, name: str) -> list[str]:
        """Names in the catalogue that are like `name`, the most like it first."""
        names: Collection[str] = self._tools.tools().keys()
        if len(names) > COMPARED:
            names = self._tools.search(name, COMPARED)
        return difflib.get_close_matches(name, names, n=3, cutoff=0.4)

    def knows(self, name: str) -> bool:
        """Whether the tool is in the catalogue, or was."""
        return name in self._tools.tools() or name in (self._told or ()) or name in self._loaded

    def access(self, name: str) -> Access:
        """What a call would do; one that always asks is none of those that run beside each other."""
        tool = self._tools.tools().get(name)
        return "execute" if tool is None or tool.always_ask else tool.access

    def pending(self) -> Collection[str]:
        return self._tools.pending()

    def loaded(self) -> Collection[str]:
        return self._loaded.keys()

    def load(self, name: str) -> str:
        """Have the definition of a tool in the catalogue sent from the next request on, and say what came of that."""
        if name in self._loaded:
            return "already loaded"
        definition = self._tools.tools()[name].definition
        if fault := self._fault(definition):
            return f"not loaded: {fault}"
        self._loaded[name] = definition
        return "loaded, callable from the next request"

    def catalogue(self) -> str:
        """What there is, as the model is told first; from then on `news` tells what becomes of it."""
        self._told = _definitions(self._tools)
        return catalogue_text(self._tools, self._budget)

    def news(self) -> str:
        """What appeared, vanished or changed since the model was last told; empty when nothing did."""
        before = self._told
        if before is None:
            return self.catalogue()
        now = self._told = _definitions(self._tools)
        lines = [f"new: {catalogue_line(self._tools.tools()[name])}" for name in now if name not in before]
        lines += [f"gone: {name}" for name in before if name not in now]
        lines += [f"changed: {name}" for name in now if name in before and now[name] != before[name]]
        shown = lines[:NEWS]
        more = [f"and {len(lines) - NEWS} more"] if len(lines) > NEWS else []
        return "\n".join(["MCP tools, since the list above:", *shown, *more]) if lines else ""

    async def prepare(self, call: ToolCall, offered: Collection[str]) -> Prepared:
        """Check a call of a deferred tool. Raises UnknownTool, and NotLoaded when its definition was not sent."""
        tool = self._tools.tools().get(call.name)
        if tool is None:
            raise UnknownTool(f"{call.name} is gone: its server does not offer it any more.")
        if call.name not in offered:
            raise self._not_loaded(call.name)
        arguments = self._tools.validate(call.name, parse_arguments(call, tool.definition.parameters))
        source = "the editor" if tool.server is None else f"the MCP server {tool.server}"
        brief = json.dumps(arguments, ensure_ascii=False) if arguments else ""
        return Prepared(
            access=tool.access,
            preview=Preview(
                f"call this tool of {source}",
                brief,
                json.dumps(arguments, ensure_ascii=False, indent=2),
            ),
            run=partial(self._tools.call, call.name, arguments),
            # A grant is for the tool as it was described: when the description changes it lapses.
            scope=f"{call.name}#{_fingerprint(tool.definition)}",
            always_ask=tool.always_ask,
            arguments=arguments,
            path=Path(arguments["path"]) if isinstance(arguments.get("path"), str) else None,
            command=arguments["command"] if isinstance(arguments.get("command"), str) else None,
        )

    def _not_loaded(self, name: str) -> NotLoaded:
        if not self._auto_load:
            return NotLoaded(f"{name} is not loaded, so nothing was called. Load it first with load_mcp_tool.")
        before = set(self._loaded)
        outcome = self.load(name)
        if name not in self._loaded:
            return NotLoaded(f"{name} is {outcome} Nothing was called.")
        return NotLoaded(
            f"{name} had not been loaded, so nothing was called. It has just been loaded: "
            "its definition comes with the next request, call it then.",
            () if name in before else (name,),
        )


def _definitions(tools: DeferredTools) -> dict[str, ToolDefinition]:
    return {name: tool.definition for name, tool in tools.tools().items()}


def _oversize(definition: ToolDefinition) -> str:
    """That the definition is too large to be sent; empty where it is not."""
    text = json.dumps([definition.description, definition.parameters], ensure_ascii=False)
    size = len(text.encode("utf-8", "replace"))
    return f"its definition has {size} bytes, and no more than {DEFINITION} are sent." if size > DEFINITION else ""


def _fingerprint(definition: ToolDefinition) -> str:
    text = json.dumps([definition.description, definition.parameters], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class _Load(Arguments):
    names: list[str] = Field(default_factory=list[str], description="Exact names")
    query: str = Field("", description="English words to search for")


@dataclass(frozen=True, slots=True)
class LoadMcpTool:
    """`load_mcp_tool`: by exact names, or by words."""

    tools: DeferredTools
    record: Deferred

    @property
    def definition(self) -> ToolDefinition:
        return _LOADER

    @property
    def access(self) -> Access:
        return "read"

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        wanted = check(_Load, "load_mcp_tool", arguments)
        if not wanted.names and not wanted.query.strip():
            raise InvalidArguments("load_mcp_tool needs names or a query.")
        return Prepared("read", Preview("load tool definitions"), partial(self._run, wanted), "load_mcp_tool")

    async def _run(self, wanted: _Load) -> ToolResult:
        await self.tools.refresh()
        if self.tools.pending() and not all(name in self.tools.tools() for name in wanted.names or [""]):
            await self.tools.settle()
        if wanted.query.strip():
            await self.tools.indexed()
        before = set(self.record.loaded())
        lines = [self._by_name(name) for name in dict.fromkeys(wanted.names)]
        if wanted.query.strip():
            lines += self._by_query(wanted.query)
        return ToolResult("\n".join(lines), loaded=tuple(name for name in self.record.loaded() if name not in before))

    def _by_name(self, name: str) -> str:
        if name not in self.tools.tools():
            close = self.record.close(name)
            return f"{name}: unknown" + (f"; the closest are {', '.join(close)}" if close else "")
        return f"{name}: {self.record.load(name)}"

    def _by_query(self, query: str) -> list[str]:
        ranked = list(self.tools.search(query, BEST + LISTED))
        if not ranked:
            return [f"No tool matches {query!r}. Try other English words."]
        lines = [self._by_name(name) for name in ranked[:BEST]]
        if ranked[BEST:]:
            catalogue = self.tools.tools()
            lines.append("Others, to be loaded by name:")
            lines += [catalogue_line(catalogue[name]) for name in ranked[BEST:]]
        return lines


_LOADER = define("load_mcp_tool", "Load MCP tools so that they can be called from the next request on", _Load)


def catalogue_line(tool: DeferredTool) -> str:
    """`name: first line of the description`, without control characters, at most LINE_LIMIT of them."""
    first = next((line.strip() for line in tool.definition.description.splitlines() if line.strip()), "")
    clean = "".join(character for character in first if character.isprintable())
    return f"{tool.name}: {clean[:LINE_LIMIT]}"


def catalogue_text(tools: DeferredTools, budget: int) -> str:
    """What the system prompt says of MCP: every tool by name, or the servers where that exceeds `budget` characters.

    Empty when there is nothing to load and nothing still connecting.
    """
    catalogue = tools.tools()
    parts: list[str] = []
    lines = [catalogue_line(tool) for tool in catalogue.values()]
    if lines and sum(len(line) + 1 for line in lines) <= budget:
        parts += ["MCP tools (load with load_mcp_tool before calling):", *lines]
    elif lines:
        parts += [f"{len(lines)} MCP tools. Find and load them with load_mcp_tool and a query. Servers:"]
        parts += _summary(catalogue, tools.instructions(), budget)
    if pending := list(tools.pending()):
        more = f" and {len(pending) - CONNECTING} more" if len(pending) > CONNECTING else ""
        parts.append(f"Still connecting: {', '.join(pending[:CONNECTING])}{more} (load_mcp_tool waits for them).")
    return "\n".join(parts)


def _summary(catalogue: Mapping[str, DeferredTool], instructions: Mapping[str, str], budget: int) -> list[str]:
    """One line a server; names alone, then a count, where even that is more than the budget."""
    counts: dict[str | None, int] = {}
    for tool in catalogue.values():
        counts[tool.server] = counts.get(tool.server, 0) + 1
    full = [_server_line(server, count, instructions.get(server or "", "")) for server, count in counts.items()]
    if sum(len(line) + 1 for line in full) <= budget:
        return full
    names: list[str] = []
    room = budget - 40
    for server in counts:
        name = _source(server)
        room -= len(name) + 2
        if room < 0:
            break
        names.append(name)
    left = len(counts) - len(names)
    return [", ".join(names) + (f" and {left} more servers" if left else "")]


def _source(server: str | None) -> str:
    """What offers a tool, in a summary; no server has a name with a space."""
    return "the editor" if server is None else server


def _server_line(server: str | None, count: int, instructions: str) -> str:
    first = instructions.strip().split("\n", 1)[0]
    clean = "".join(character for character in first if character.isprintable())[:LINE_LIMIT]
    return f"{_source(server)} ({count} tools){': ' + clean if clean else ''}"
