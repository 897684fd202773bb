"""What the editor can do: read once from `initialize`, asked by everything that sends it something."""

from __future__ import annotations

import os
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
            normalizes_line_ends=bool(edits and edits.normalizes_line_endings) or name == "Neovim" or _is_zed(name),
            shows_documents=bool(window and window.show_document and window.show_document.support),
            shows_progress=bool(window and window.work_done_progress),
            configures=bool(workspace and workspace.configuration),
            events=hel.get("events") is True,
            diff=hel.get("diff") is True,
            editor_tools=tuple(str(tool) for tool in cast("list[object]", tools)) if isinstance(tools, list) else (),
        )

    @property
    def holds_lf_only(self) -> bool:
        """True where a buffer has `\\n` alone whatever the file has, and the `\\r` comes back when it is saved."""
        return self._is_emacs or _is_zed(self.name)

    @property
    def ends_lines_at_lf(self) -> bool:
        """True where a lone `\\r` is known to end no line in a buffer."""
        return self._is_emacs or self.name.lower() in ("neovim", "helix")

    def keeps_line_ends(self, text: str) -> bool:
        """Whether a file with this text is known to be loaded with these lines and saved with these line ends.

        Most clients end lines at a lone `\\r` too, and make all line ends of a file one when they load it.
        """
        pairs = text.count("\r\n")
        counts = {"\r\n": pairs, "\n": text.count("\n") - pairs, "\r": text.count("\r") - pairs}
        ends = {end for end, count in counts.items() if count}
        if self.ends_lines_at_lf:
            # Where there is nothing else, Emacs takes `\r` for the line end.
            return not (self._is_emacs and ends == {"\r"})
        if _is_zed(self.name):
            return ends <= {_zed_line_end(text)}
        # Eglot 1.9 gives no name, and keeps both.
        keeps_both = not self.name and not self.normalizes_line_ends
        return "\r" not in ends and (keeps_both or len(ends) < 2)

    @property
    def _is_emacs(self) -> bool:
        name = self.name.lower()
        return "emacs" in name or "eglot" in name or name == "lsp-mode"

    @property
    def owns_final_newline(self) -> bool:
        """True where the newline at the end of a file is no part of its text."""
        return self.name == "Neovim"


def _is_zed(name: str) -> bool:
    """Also as "Zed Preview", "Zed Nightly" and "Zed Dev"."""
    return name == "Zed" or name.startswith("Zed ")


def _zed_line_end(text: str) -> str:
    """What Zed saves a file with: the first line end in the first 1,000 bytes, or that of the system."""
    head, end, _ = text[:1000].encode()[:1000].partition(b"\n")
    if not end:
        return os.linesep
    return "\r\n" if head.endswith(b"\r") else "\n"


def _hel(experimental: object) -> Mapping[str, Any]:
    """`capabilities.experimental.hel`, however the client's library turned it into objects."""
    hel = cast("Mapping[str, Any]", experimental).get("hel") if isinstance(experimental, Mapping) else None
    return cast("Mapping[str, Any]", hel) if isinstance(hel, Mapping) else {}
