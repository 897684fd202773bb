"""From what servers list to the tools that the model can load: sound ones, under names that every provider accepts.

Whatever is left out leaves a diagnostic that says why.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, cast

from hel_lsp.mcp.parameters import sendable
from hel_lsp.mcp.schema import oversize, provider_parameters
from hel_lsp.mcp.text import harmless
from hel_lsp.messages import Access, ToolDefinition
from hel_lsp.ports import DeferredTool

NAME_LIMIT = 64
"""Characters of a tool's name that providers accept."""

LongNames = Literal["drop", "hash"]

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class SoundTool:
    """A tool as its server lists it, with its faults mended. `schema` is the server's own, but for a missing type."""

    name: str
    description: str
    schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    read_only: bool
    destructive: bool


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool under the name that the model uses, with the one that its server knows it by.

    `parameters` are the server's names of those parameters that the model knows by another.
    """

    tool: DeferredTool
    server: str
    origin: SoundTool
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Listing:
    """What one server offers: its sound tools in its own order, and what was left out."""

    server: str
    tools: Sequence[SoundTool]
    trust_annotations: bool = False


@dataclass(slots=True)
class Catalogue:
    tools: dict[str, OfferedTool] = field(default_factory=dict[str, OfferedTool])
    diagnostics: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def inspect_tool(raw: object) -> SoundTool | str:
    """The tool, or why it cannot be used."""
    fields = _object(raw)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        return "a tool without a name was dropped"
    schema: object = fields.get("inputSchema")
    if not isinstance(schema, dict):
        return f"{harmless(name)}: dropped, it has no inputSchema"
    schema = cast("dict[str, Any]", schema)
    kind: object = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return f"{harmless(name)}: dropped, its inputSchema is not that of an object"
    if fault := oversize(schema):
        return f"{harmless(name)}: dropped, its inputSchema {fault}"
    description = fields.get("description")
    output: object = fields.get("outputSchema")
    annotations = _object(fields.get("annotations"))
    return SoundTool(
        name=name,
        description=harmless(description) if isinstance(description, str) else "",
        schema={**schema, "type": "object"},
        output_schema=cast("dict[str, Any]", output) if isinstance(output, dict) else None,
        read_only=annotations.get("readOnlyHint") is True,
        destructive=annotations.get("destructiveHint") is True,
    )


def inspect_list(
    listed: Iterable[object], include: Sequence[str], exclude: Sequence[str]
) -> tuple[list[SoundTool], list[str]]:
    """The sound tools that the file's filter lets through, each name once, and what was dropped as faulty."""
    tools: dict[str, SoundTool] = {}
    diagnostics: list[str] = []
    for raw in listed:
        tool = inspect_tool(raw)
        if isinstance(tool, str):
            diagnostics.append(tool)
        elif tool.name in tools:
            diagnostics.append(f"{harmless(tool.name)}: listed more than once, the first one stays")
        elif _matches(tool.name, include) and not _matches(tool.name, exclude):
            tools[tool.name] = tool
    return list(tools.values()), diagnostics


def build_catalogue(listings: Iterable[Listing], long_names: LongNames) -> Catalogue:
    """Every tool under a name of its own, in the order of the servers and of their lists."""
    catalogue = Catalogue()
    claims: dict[str, int] = {}
    named = [
        (listing, tool, f"mcp__{listing.server}__{_FOREIGN.sub('_', tool.name)}")
        for listing in listings
        for tool in listing.tools
    ]
    for _, _, name in named:
        claims[name] = claims.get(name, 0) + 1
    for listing, tool, name in named:
        if fault := _fault(name, claims[name]):
            if long_names == "drop":
                catalogue.diagnostics.setdefault(listing.server, []).append(f"{harmless(tool.name)}: dropped, {fault}")
                continue
            name = _hashed(name, listing.server, tool.name)
        offered = catalogue.tools[name] = _offered(name, listing, tool)
        if offered.parameters:
            names = ", ".join(f"{harmless(own)} as {known}" for known, own in offered.parameters.items())
            catalogue.diagnostics.setdefault(listing.server, []).append(
                f"{harmless(tool.name)}: the model knows its {names}, for not every provider takes the name"
            )
    return catalogue


def _fault(name: str, claims: int) -> str:
    if len(name) > NAME_LIMIT:
        return f"its name would have {len(name)} characters, {NAME_LIMIT} are possible"
    return f"{claims} tools would be called {name}" if claims > 1 else ""


def _hashed(name: str, server: str, tool: str) -> str:
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:10]
    return f"{name[: NAME_LIMIT - 11]}_{digest}"


def _offered(name: str, listing: Listing, tool: SoundTool) -> OfferedTool:
    parameters, names = sendable(provider_parameters(tool.schema))
    definition = ToolDefinition(name, tool.description, parameters)
    access: Access = "read" if listing.trust_annotations and tool.read_only else "execute"
    deferred = DeferredTool(name, listing.server, definition, access, tool.destructive)
    return OfferedTool(deferred, listing.server, tool, names)


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
