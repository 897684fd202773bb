"""Tools that the editor itself offers: deferred like those of MCP servers, and listed with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from hel_lsp.errors import EditorError, InvalidArguments
from hel_lsp.lsp.client import Editor
from hel_lsp.lsp.documents import Documents
from hel_lsp.messages import ToolDefinition, ToolResult
from hel_lsp.ports import DeferredTool, DeferredTools, ServerStatus, TrustRequest, Workspace

SAVE_TIME = 30.0
"""Seconds that the editor gets to save: it may ask its user first."""

SAVE = DeferredTool(
    "editor__save",
    None,
    ToolDefinition(
        "editor__save",
        "Save open files, so that commands see their unsaved text",
        {
            "type": "object",
            "properties": {"paths": {"type": "array", "items": {"type": "string"}}},
            "required": ["paths"],
        },
    ),
    access="edit",
)


class EditorTools:
    """The DeferredTools of `servers`, and before them those named in `offered` that are known here."""

    def __init__(
        self,
        editor: Editor,
        documents: Documents,
        offered: Sequence[str],
        servers: DeferredTools,
        workspace: Workspace,
    ) -> None:
        self._editor = editor
        self._documents = documents
        self._workspace = workspace
        self._servers = servers
        self._own = {SAVE.name: SAVE} if "save" in offered else {}

    def tools(self) -> Mapping[str, DeferredTool]:
        return {**self._own, **self._servers.tools()}

    def search(self, query: str, limit: int) -> Sequence[str]:
        words = query.lower().split()
        own = [name for name, tool in self._own.items() if any(w in tool.definition.description.lower() for w in words)]
        return [*self._servers.search(query, limit), *own][:limit]

    def validate(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if name not in self._own:
            return self._servers.validate(name, arguments)
        paths = arguments.get("paths")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in cast("list[object]", paths)):
            raise InvalidArguments(f"{name} needs `paths`, an array of strings.")
        return {"paths": [str(self._workspace.resolve(path)) for path in cast("list[str]", paths)]}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        if name not in self._own:
            return await self._servers.call(name, arguments)
        wanted = [Path(path) for path in arguments["paths"]]
        opened = [path for path in wanted if self._documents.find(path) is not None]
        uris = [self._workspace.uri(path) for path in opened]
        try:
            reply: object = await self._editor.request("hel/save", {"uris": uris}, SAVE_TIME)
        except EditorError as error:
            return ToolResult(f"Nothing is known to be saved: {error.message}", "failed")
        said = cast("Mapping[str, object]", reply).get("saved") if isinstance(reply, Mapping) else None
        saved = {str(uri) for uri in cast("list[object]", said)} if isinstance(said, list) else set[str]()
        lines = [f"{self._workspace.display(path)}: {_outcome(path, opened, uris, saved)}" for path in wanted]
        return ToolResult("\n".join(lines), "completed" if saved.issuperset(uris) else "failed")

    async def start(self) -> None:
        await self._servers.start()

    async def refresh(self) -> None:
        await self._servers.refresh()

    async def indexed(self) -> None:
        await self._servers.indexed()

    async def settle(self) -> None:
        await self._servers.settle()

    async def reload(self, name: str | None = None) -> None:
        await self._servers.reload(name)

    async def aclose(self) -> None:
        await self._servers.aclose()

    def always_loaded(self) -> Sequence[str]:
        return self._servers.always_loaded()

    def pending(self) -> Sequence[str]:
        return self._servers.pending()

    def instructions(self) -> Mapping[str, str]:
        return self._servers.instructions()

    async def look(self, knows: Callable[[TrustRequest], bool]) -> None:
        await self._servers.look(knows)

    def servers(self) -> Sequence[ServerStatus]:
        return self._servers.servers()


def _outcome(path: Path, opened: Sequence[Path], uris: Sequence[str], saved: set[str]) -> str:
    if path not in opened:
        return "not open in the editor, so there is nothing to save"
    return "saved" if uris[opened.index(path)] in saved else "not saved"
