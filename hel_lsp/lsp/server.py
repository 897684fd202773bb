"""The language server: what `initialize` says, the settings, and the way from a command to the agent.

Answering `initialize` needs nothing of the agent, so the rooms behind the commands are imported with the first one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types

import hel_lsp
from hel_lsp import settings as configuration
from hel_lsp.errors import EditorError
from hel_lsp.lsp.approver import EditorApprover
from hel_lsp.lsp.client import ClientFacts
from hel_lsp.lsp.code_actions import code_actions
from hel_lsp.lsp.edits import EditorWorkspace
from hel_lsp.lsp.events import EditorEvents
from hel_lsp.lsp.guard import GuardedServer
from hel_lsp.lsp.uris import uri_to_path
from hel_lsp.ports import Providers
from hel_lsp.state import state_folder

if TYPE_CHECKING:
    from hel_lsp.lsp.commands import Commands

logger = logging.getLogger(__name__)

COMMANDS = (
    "hel.ask",
    "hel.wait",
    "hel.cancel",
    "hel.newSession",
    "hel.sessions",
    "hel.resume",
    "hel.compact",
    "hel.setAccess",
    "hel.pending",
    "hel.answer",
    "hel.tools",
    "hel.reloadMcp",
    "hel.undo",
    "hel.openLog",
)

SETTINGS_TIME = 5.0
"""Seconds that a client gets to answer `workspace/configuration`."""

SHOW_TIME = 10.0


class HelServer(GuardedServer):
    """One connection. `providers` hands over the model and the MCP servers when a turn needs them."""

    def __init__(self, providers: Providers) -> None:
        super().__init__("hel-lsp", hel_lsp.__version__)
        self._providers = providers
        self._layers: list[object] = [None, None]
        self._settings = configuration.Settings()
        self._problems: list[str] = []
        self._reported: set[str] = set()
        self._facts = ClientFacts()
        self._folders: list[Path] = []
        self._commands: Commands | None = None
        self._background: set[asyncio.Task[None]] = set()
        for name in COMMANDS:
            self.commands[name] = partial(self._run_command, name)
        # pygls notes things on a handler, which a bound method does not take.
        self.feature(types.INITIALIZE)(partial(self._initialize))
        self.feature(types.INITIALIZED)(partial(self._initialized))
        self.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(partial(self._did_change_configuration))
        self.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(partial(self._did_change_folders))
        self.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)(partial(self._progress_cancelled))
        kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.Empty, types.CodeActionKind.QuickFix])
        self.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)(partial(self._code_action))

    # -------------------------------------------------------------- the connection

    def _initialize(self, params: types.InitializeParams) -> None:
        self._facts = ClientFacts.read(params)
        folders = params.workspace_folders or []
        uris = [folder.uri for folder in folders] or ([params.root_uri] if params.root_uri else [])
        self._folders = list(dict.fromkeys(path for uri in uris if (path := _folder(uri)) is not None))
        self._layers[0] = params.initialization_options
        self._apply_settings(report=False)

    async def _initialized(self, params: types.InitializedParams) -> None:
        self._report_problems()
        await self._pull_settings()

    def _did_change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        gone = {_folder(folder.uri) for folder in params.event.removed}
        added = [path for folder in params.event.added if (path := _folder(folder.uri)) is not None]
        self._folders[:] = dict.fromkeys([folder for folder in self._folders if folder not in gone] + added)

    async def on_close(self) -> None:
        if self._commands is not None:
            await self._commands.agent.aclose()

    # -------------------------------------------------------------- settings

    async def _did_change_configuration(self, params: types.DidChangeConfigurationParams) -> None:
        pushed: object = params.settings
        if isinstance(pushed, Mapping) and cast("Mapping[str, object]", pushed).get("hel") is not None:
            self._layers[1] = cast("Mapping[str, object]", pushed)["hel"]
            self._apply_settings()
        else:
            await self._pull_settings()

    async def _pull_settings(self) -> None:
        if not self._facts.configures:
            return
        params = types.ConfigurationParams([types.ConfigurationItem(section="hel")])
        try:
            values: object = await self.request(types.WORKSPACE_CONFIGURATION, params, SETTINGS_TIME)
        except EditorError as error:
            logger.warning("the client did not say its settings: %s", error.message)
            return
        self._layers[1] = cast("list[object]", values)[0] if isinstance(values, list) and values else None
        self._apply_settings()

    def _apply_settings(self, *, report: bool = True) -> None:
        self._settings, problems = configuration.parse(self._layers)
        self._problems = problems
        if self._commands is not None:
            self._commands.agent.settings = self._settings
        if report:
            self._report_problems()

    def _report_problems(self) -> None:
        """Each problem once for as long as the connection lives."""
        fresh = [problem for problem in self._problems if problem not in self._reported]
        self._reported.update(fresh)
        for problem in fresh:
            message = types.ShowMessageParams(types.MessageType.Warning, f"hel: {problem}")
            self.notify(types.WINDOW_SHOW_MESSAGE, message)

    # -------------------------------------------------------------- commands

    async def _run_command(self, name: str, argument: dict[str, Any] | None) -> Any:
        from hel_lsp.lsp.commands import Arguments  # brings the agent and pydantic: not before there is work

        handler = self._rooms().table()[name]
        return await handler(Arguments(argument or {}, self.work_done_token))

    def _rooms(self) -> Commands:
        """What is behind the commands, built when the first one comes. Raises ConfigError."""
        if self._commands is None:
            from hel_lsp.agent.agent import Agent  # as above
            from hel_lsp.lsp.commands import Commands
            from hel_lsp.lsp.editor_tools import EditorTools

            folder = state_folder()
            workspace = EditorWorkspace(self, self.documents, self._facts, self._folders, closed=[folder])
            events = EditorEvents(self, folder, self._spawn, lambda: self._settings, self._facts)
            approver = EditorApprover(self, folder, self._facts, events.waiting, workspace.uri)
            extend = partial(EditorTools, self, self.documents, self._facts.editor_tools)
            agent = Agent(workspace, approver, events, self._providers, self._settings, folder, extend)
            self._commands = Commands(agent, workspace, approver, events, self._show)
        return self._commands

    async def _show(self, uri: str) -> bool:
        """Open a document in the editor; False when it has no way to, or did not."""
        if not self._facts.shows_documents:
            return False
        params = types.ShowDocumentParams(uri=uri, take_focus=True)
        try:
            result: object = await self.request(types.WINDOW_SHOW_DOCUMENT, params, SHOW_TIME)
        except EditorError as error:
            logger.info("the editor did not show %s: %s", uri, error.message)
            return False
        return isinstance(result, Mapping) and cast("Mapping[str, object]", result).get("success") is True

    async def _progress_cancelled(self, params: types.WorkDoneProgressCancelParams) -> None:
        if self._commands is None:
            return
        name = self._commands.events.turn_of(params.token)
        if name is not None:
            await self._commands.agent.cancel([self._commands.agent.session(name)])

    def _code_action(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        document = self.documents.find(params.text_document.uri)
        return code_actions(params, document.text if document is not None else "")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _folder(uri: str) -> Path | None:
    path = uri_to_path(uri)
    return Path(path).resolve() if path is not None else None
