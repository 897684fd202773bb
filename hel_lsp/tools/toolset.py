"""The tools of one session: the built-ins, then the loaders, then what has been loaded."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from hel_lsp.errors import UnknownTool
from hel_lsp.messages import Access, ToolCall, ToolDefinition
from hel_lsp.ports import Prepared, Tool
from hel_lsp.tools.arguments import parse_arguments
from hel_lsp.tools.deferred import Deferred


class Toolset:
    """Finds and prepares calls. `deferred` is None as long as the workspace has no MCP servers; it may join later.

    `further` are tools that are not in every session; they come after the loader of MCP tools.
    """

    def __init__(self, builtin: Sequence[Tool], deferred: Deferred | None, further: Sequence[Tool] = ()) -> None:
        self.builtin = tuple(builtin)
        self.deferred = deferred
        self._further = tuple(further)

    @property
    def _own(self) -> dict[str, Tool]:
        loader = (self.deferred.loader,) if self.deferred is not None else ()
        return {tool.definition.name: tool for tool in (*self.builtin, *loader, *self._further)}

    def definitions(self) -> list[ToolDefinition]:
        """What the next request offers: built-ins, the loaders, then loaded tools in the order of loading."""
        own = [tool.definition for tool in self._own.values()]
        return own + (self.deferred.definitions() if self.deferred else [])

    def access(self, name: str) -> Access:
        """The access of the tool `name`; `execute` where it is not known."""
        tool = self._own.get(name)
        if tool is not None:
            return tool.access
        return self.deferred.access(name) if self.deferred is not None else "execute"

    async def prepare(self, call: ToolCall, offered: Collection[str]) -> Prepared:
        """Check `call` and say what it would do; `offered` are the names that its request held.

        Raises UnknownTool, InvalidArguments, or what the tool itself finds wrong.
        """
        tool = self._own.get(call.name)
        if tool is not None:
            return await tool.prepare(parse_arguments(call, tool.definition.parameters))
        if self.deferred is not None and self.deferred.knows(call.name):
            return await self.deferred.prepare(call, offered)
        raise UnknownTool(self._unknown(call.name))

    def _unknown(self, name: str) -> str:
        known = [*self._own, *(self.deferred.close(name) if self.deferred else ())]
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        if self.deferred is not None and (connecting := self.deferred.pending()):
            hint += f" Still connecting: {', '.join(connecting)}; load_mcp_tool waits for them."
        return f"There is no tool named {name}.{hint}"
