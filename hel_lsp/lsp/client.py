"""What the editor can do: read once from `initialize`, asked by everything that sends it something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from lsprotocol import types


class Editor(Protocol):
    """The connection, as the rooms around it use it."""

    async def request(self, method: str, params: Any, timeout: float | None) -> Any:
        """Ask the editor, and get its result as plain JSON.

        Raises EditorError for an error, a reply that does not parse, and none in `timeout` seconds.
        """
        ...

    def notify(self, method: str, params: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """Capabilities, and what is known of a client that it does not declare."""

    name: str = ""
    applies_edits: bool = False
    document_changes: bool = False
    creates_files: bool = False
    normalizes_line_ends: bool = False
    shows_documents: bool = False
    shows_progress: bool = False
    configures: bool = False
    events: bool = False
    diff: bool = False
    editor_tools: tuple[str, ...] = ()

    @classmethod
    def read(cls, params: types.InitializeParams) -> ClientFacts:
        workspace, window = params.capabilities.workspace, params.capabilities.window
        edits = workspace.workspace_edit if workspace else None
        name = params.client_info.name if params.client_info else ""
        hel = _hel(params.capabilities.experimental)
        tools = hel.get("editorTools")
        operations = (edits.resource_operations or []) if edits else []
        return cls(
            name=name,
            applies_edits=bool(workspace and workspace.apply_edit),
            # Neovim takes them and does not say so.
            document_changes=bool(edits and edits.document_changes) or name == "Neovim",
            creates_files=types.ResourceOperationKind.Create in operations,
            # Neovim and Zed do so unsaid.
            normalizes_line_ends=bool(edits and edits.normalizes_line_endings) or name in ("Neovim", "Zed"),
            shows_documents=bool(window and window.show_document and window.show_document.support),
            shows_progress=bool(window and window.work_done_progress),
            configures=bool(workspace and workspace.configuration),
            events=hel.get("events") is True,
            diff=hel.get("diff") is True,
            editor_tools=tuple(str(tool) for tool in cast("list[object]", tools)) if isinstance(tools, list) else (),
        )

    @property
    def holds_lf_only(self) -> bool:
        """True where a buffer has `\\n` alone whatever the file has, so that `\\r\\n` would be saved as `\\r\\r\\n`."""
        name = self.name.lower()
        return name == "kate" or "emacs" in name or "eglot" in name or name == "lsp-mode"

    @property
    def ends_lines_at_lf(self) -> bool:
        """True where a lone `\\r` is known to end no line."""
        return self.holds_lf_only or self.name.lower() in ("neovim", "helix", "zed")

    @property
    def owns_final_newline(self) -> bool:
        """True where the newline at the end of a file is no part of its text."""
        return self.name == "Neovim"


def _hel(experimental: object) -> Mapping[str, Any]:
    """`capabilities.experimental.hel`, however the client's library turned it into objects."""
    hel = cast("Mapping[str, Any]", experimental).get("hel") if isinstance(experimental, Mapping) else None
    return cast("Mapping[str, Any]", hel) if isinstance(hel, Mapping) else {}
