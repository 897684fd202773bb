"""A small editor: a language client with one buffer, which applies edits and puts questions to its user."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

import hel_lsp
from hel_lsp.local.approver import chosen, read_line, shown
from hel_lsp.platforms import spawn_options
from hel_lsp.tools.lines import position_to_offset

Ask = Callable[[str, Sequence[str]], Awaitable[str | None]]
Hear = Callable[[Mapping[str, Any]], None]


class _Client(LanguageClient):
    """Passes on what the server wrote to stderr: what a fault's message calls its log."""

    async def server_exit(self, server: asyncio.subprocess.Process) -> None:
        if server.stderr is not None:
            sys.stderr.write((await server.stderr.read()).decode(errors="replace"))


class DemoEditor:
    """Runs the real server as a child process. `ask` answers questions, `hear` gets every `hel/event`."""

    def __init__(self, ask: Ask, hear: Hear) -> None:
        self.text = ""
        self._uri = ""
        self._version = 0
        self._ask = ask
        self._answer: asyncio.Future[str | None] | None = None
        self._hear = hear
        self._client = _Client("hel-lsp-demo", hel_lsp.__version__)
        # pygls notes things on a handler, which a bound method does not take.
        self._client.feature(types.WORKSPACE_APPLY_EDIT)(partial(self._apply_edit))
        self._client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)(partial(self._question))
        self._client.feature(types.WINDOW_SHOW_MESSAGE)(partial(self._message))
        self._client.feature("hel/event")(partial(self._event))

    async def start(
        self, folder: Path, environment: Mapping[str, str], settings: Mapping[str, Any] | None = None
    ) -> None:
        """Start the server on `folder` with `settings`, and `environment` on top of this process's own."""
        await self._client.start_io(  # pyright: ignore[reportUnknownMemberType] # pygls leaves its types open
            *(sys.executable, "-m", "hel_lsp"),
            env={**os.environ, **environment},
            **spawn_options(),  # in a group of its own: Ctrl-C is for this process, which then shuts the server down
        )
        await self._client.initialize_async(
            types.InitializeParams(
                process_id=os.getpid(),
                client_info=types.ClientInfo("hel-lsp-demo", hel_lsp.__version__),
                workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name)],
                initialization_options=settings,
                capabilities=types.ClientCapabilities(
                    workspace=types.WorkspaceClientCapabilities(
                        apply_edit=True,
                        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
                    ),
                    experimental={"hel": {"events": True}},
                ),
            )
        )
        self._client.initialized(types.InitializedParams())

    def open(self, path: Path) -> None:
        """Show a file in the one buffer."""
        self.text = path.read_text(encoding="utf-8")
        self._uri, self._version = path.as_uri(), 1
        item = types.TextDocumentItem(self._uri, "ini", self._version, self.text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    async def command(self, name: str, argument: Mapping[str, Any]) -> Any:
        params = types.ExecuteCommandParams(command=name, arguments=[dict(argument)])
        return _plain(await self._client.workspace_execute_command_async(params))

    async def stop(self) -> None:
        """Shut the server down and wait until its process has ended."""
        if self._answer is not None:
            self._answer.cancel()  # pygls fails at the end of the server where a request of it is still open
        await self._client.shutdown_async(None)
        self._client.exit(None)
        await self._client.stop()

    def _apply_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        for change in params.edit.document_changes or []:
            if not isinstance(change, types.TextDocumentEdit) or change.text_document.uri != self._uri:
                return types.ApplyWorkspaceEditResult(applied=False, failure_reason="there is one buffer only")
            for edit in change.edits:
                start, end = (
                    position_to_offset(self.text, where.line, where.character, "utf-16")
                    for where in (edit.range.start, edit.range.end)
                )
                self.text = self.text[:start] + str(getattr(edit, "new_text", "")) + self.text[end:]
        self._version += 1
        document = types.VersionedTextDocumentIdentifier(version=self._version, uri=self._uri)
        whole = types.TextDocumentContentChangeWholeDocument(self.text)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))
        return types.ApplyWorkspaceEditResult(applied=True)

    async def _question(self, params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        self._answer = asyncio.ensure_future(
            self._ask(params.message, [action.title for action in params.actions or []])
        )
        try:
            title = await self._answer
        except asyncio.CancelledError:
            title = None
        return types.MessageActionItem(title) if title is not None else None

    def _message(self, params: types.ShowMessageParams) -> None:
        self._hear({"kind": "notice", "message": params.message})

    def _event(self, params: Any) -> None:
        self._hear(_plain(params))


def _plain(value: Any) -> Any:
    """An untyped notification as JSON: pygls makes named tuples of it."""
    if hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType] # as above
    return value


async def answer_in_terminal(message: str, actions: Sequence[str]) -> str | None:
    """Put a question to the person at the terminal until one of its numbers is the answer; Ctrl-D is none."""
    print(shown(message, actions))
    while True:
        print("  > ", end="", flush=True)
        answer = await read_line(sys.stdin)
        if not answer:
            print()
            return None
        if (action := chosen(answer, actions)) is not None:
            return action
        print(f"  Type a number from 1 to {len(actions)}.")
