"""The agent of one connection: its sessions, its MCP servers, its model. What a command or a script talks to."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hel_lsp import containment, textfile
from hel_lsp.agent.compaction import Compaction, compact, limit
from hel_lsp.agent.loop import Turn
from hel_lsp.agent.made import MadeEdits
from hel_lsp.agent.person import SessionPerson
from hel_lsp.agent.prompt import Focus, system_text, user_text
from hel_lsp.agent.runlog import FollowingLog, JsonLinesLog
from hel_lsp.agent.session import Session
from hel_lsp.agent.skills import LOADER, LoadSkill, Skill, read_skills, skills_text
from hel_lsp.agent.store import SessionStore, StoredSession
from hel_lsp.agent.undo import Undone, undo_turn
from hel_lsp.errors import CommandError, ConfigError, ToolError, TurnRunning
from hel_lsp.messages import AccessLevel, SystemMessage, TurnResult, UserMessage
from hel_lsp.permissions.gate import Gate, Grants
from hel_lsp.permissions.project import Policy, ProjectPolicy
from hel_lsp.permissions.trust import TrustStore, ask_for_trust
from hel_lsp.ports import Approver, DeferredTools, EventSink, Model, Providers, Workspace
from hel_lsp.settings import ModelSettings, Settings, key_variables
from hel_lsp.tools.builtin import builtin_tools
from hel_lsp.tools.deferred import Deferred
from hel_lsp.tools.spill import Spill
from hel_lsp.tools.toolset import Toolset

INSTRUCTIONS_LIMIT = 200_000
"""Characters of AGENTS.md."""

CANCEL_WAIT = 1.0
"""Seconds within which a cancelled turn has ended."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One prompt. `root` is the workspace folder that holds the document it is about, None where it names none.

    `access` holds for this turn alone.
    """

    prompt: str
    root: Path | None
    focus: Focus | None = None
    access: AccessLevel | None = None


class Agent:
    """Owns everything that ends with the connection. `settings` may be replaced at any time.

    `extend` adds the tools that the editor itself offers to those of the MCP servers.
    """

    def __init__(
        self,
        workspace: Workspace,
        approver: Approver,
        sink: EventSink,
        providers: Providers,
        settings: Settings,
        folder: Path,
        extend: Callable[[DeferredTools, Workspace], DeferredTools] = lambda servers, _: servers,
    ) -> None:
        self.settings = settings
        self.access: AccessLevel | None = None
        self.sessions: dict[str, Session] = {}
        self.current: Session | None = None
        self._workspace = workspace
        self._approver = approver
        self._sink = sink
        self._providers = providers
        self._extend = extend
        self._folder = folder
        self.trust = TrustStore(folder)
        self._store = SessionStore(folder / "sessions")
        self._projects: dict[Path, ProjectPolicy] = {}
        self._servers: dict[Path, DeferredTools] = {}
        self._model: tuple[ModelSettings, Model] | None = None
        self._made = MadeEdits()

    # -------------------------------------------------------------- sessions

    def new_session(self, root: Path | None = None) -> Session:
        """A fresh conversation, which becomes the current one. `root` is settled by the first ask where absent."""
        self.current = self._session(f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}", root)
        return self.current

    def _session(self, name: str, root: Path | None) -> Session:
        log = JsonLinesLog(self._folder / "logs" / f"{name}.jsonl", key_variables(self.settings.model))
        spill = Spill(self._folder / "results" / name, self._workspace)
        grants = Grants(self._folder, root)
        roots = [root] if root is not None else []
        workspace = self._workspace.at(roots)
        session = Session(name, roots, workspace, log, spill, grants, self._sink.warn, made=self._made)
        self.sessions[name] = session
        return session

    def stored(self) -> list[StoredSession]:
        """The sessions of this workspace that can be resumed, newest first."""
        return self._store.sessions(self._roots())

    def resume(self, name: str | None) -> Session:
        """Make a session of this workspace, the newest where `name` is None, the current one. Raises CommandError.

        What comes back is the conversation: the system text, the tools that were loaded and what was allowed for the
        session start anew.
        """
        if name is None:
            stored = self.stored()
            if not stored:
                raise CommandError("There is no session to resume in this workspace.")
            name = stored[0].id
        session = self.sessions.get(name) or self._resumed(name)
        if session.running is None:
            session.started = False
        self.current = session
        return session

    def _resumed(self, name: str) -> Session:
        root = self._store.holder(name, self._roots())
        file, conversation = self._store.open(name, root)
        session = self._session(name, root)
        session.file = file
        session.history = conversation.history
        session.loaded_skills = conversation.skills
        session.earlier = conversation.turns
        session.spill.take_up()
        session.log.write("resumed", turns=conversation.turns, notes=conversation.notes)
        for note in conversation.notes:
            self._sink.warn(note)
        return session

    def _roots(self) -> Sequence[Path | None]:
        """The editor's folders; where it has none, those that sessions were asked about, the newest first."""
        used = [session.root for session in reversed(self.sessions.values()) if session.root is not None]
        return self._workspace.roots or used or [None]

    @property
    def root(self) -> Path | None:
        """The folder of a session that was asked about no document."""
        return self._roots()[0]

    def session(self, name: str | None) -> Session:
        """The session called `name`, else the current one. Raises CommandError where there is none."""
        if name is None:
            if self.current is None:
                raise CommandError("There is no session yet: hel.ask starts one.")
            return self.current
        if name not in self.sessions:
            raise CommandError(f"session: there is no session {name!r}.")
        return self.sessions[name]

    # -------------------------------------------------------------- turns

    def ask(self, ask: Ask, name: str | None = None) -> tuple[Session, int]:
        """Start a turn and return at once. Raises CommandError, TurnRunning."""
        session = self.new_session() if name is None and self.current is None else self.session(name)
        if session.running is not None:
            raise TurnRunning(f"Session {session.id} is still at turn {session.count}. Wait for it or cancel it.")
        self.current = session
        root = ask.root or session.root or self.root
        if session.root is None and not session.count:
            session.grants = Grants(self._folder, root)
        instructions = ""
        if root is not None and root not in session.roots:
            instructions = self._further_instructions(root) if session.roots else ""
            session.roots.append(root)
        number = session.count + 1
        if number == 1:
            self._keep(session)
        session.note("turn", turn=number, prompt=ask.prompt)
        session.turns.append(
            asyncio.create_task(self._turn(session, number, ask, root, instructions), name=f"{session.id}/{number}")
        )
        return session, number

    async def wait(self, session: Session, number: int | None) -> TurnResult:
        """The result of a turn, the newest where `number` is None. Raises CommandError."""
        wanted = session.count if number is None else number
        if not session.earlier < wanted <= session.count:
            since = f", {session.earlier} of them before it was resumed" if session.earlier else ""
            raise CommandError(f"turn: session {session.id} has {session.count} turns{since}.")
        # A caller that gives up waiting must not take the turn with it.
        return await asyncio.shield(session.turns[wanted - session.earlier - 1])

    def _keep(self, session: Session) -> None:
        """Start the session's file; a session that cannot have one is told of and goes on without."""
        try:
            session.file = self._store.create(session.id, session.root)
        except ConfigError as error:
            self._sink.warn(f"This session is not kept: {error.message}")

    async def cancel(self, sessions: Sequence[Session]) -> bool:
        """End the running turns of `sessions`; True when there was one."""
        running = [session.running for session in sessions if session.running is not None]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=CANCEL_WAIT)
        return bool(running)

    async def undo(self, session: Session, number: int | None) -> Undone:
        """Revert the edits of a turn, the last one with edits where `number` is None."""
        return await undo_turn(session, session.workspace, number)

    async def compact(self, session: Session) -> Compaction:
        """Compact the conversation now. Raises CommandError, TurnRunning, ModelNotConfigured."""
        if session.running is not None:
            raise TurnRunning(f"Session {session.id} is still at turn {session.count}. Wait for it or cancel it.")
        task = session.compacting = asyncio.create_task(self._compact(session))
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if task.cancelled():
            raise CommandError("The compaction was cancelled; the conversation is as it was.")
        return task.result()

    async def _compact(self, session: Session) -> Compaction:
        model = await self.model()
        await self._prepare(session)
        return await compact(session, model, session.toolset.definitions())

    async def _turn(self, session: Session, number: int, ask: Ask, root: Path | None, instructions: str) -> TurnResult:
        level = ask.access or self.access or self.settings.access
        gate = Gate(session.id, number, level, session.grants, self._approver, session.log, root)
        turn = Turn(session, number, gate, self._sink, self.settings.limits.max_steps, limit(self.settings.model))
        opened = session.workspace.open_documents()
        names = [session.workspace.display(document.path) for document in opened]
        unsaved = [name for name, document in zip(names, opened, strict=True) if document.unsaved]
        prompt = UserMessage(user_text(ask.prompt, ask.focus, names, unsaved) + instructions, ask.prompt)
        session.log.write("turn", turn=number, prompt=ask.prompt, access=level)
        return await turn.run(partial(self._begin, session, gate), prompt)

    async def _begin(self, session: Session, gate: Gate) -> Model:
        """Make the session and the turn's gate ready for a request. Raises ModelNotConfigured, ConfigError."""
        model = await self.model()
        gate.policy = await self._policy(session, gate.root)
        await self._prepare(session)
        return model

    async def _prepare(self, session: Session) -> None:
        """Start the servers, and fix the session's system text and tools where that has not been done."""
        servers = self._servers_of(session.root, session)
        if servers is not None:
            await servers.start()
            await servers.refresh()
        if not session.started:
            self._equip(session, servers)
            session.started = True
            session.counted = None
        elif session.toolset.deferred is None:
            # The system text of a running session stays: what has come since is told with the next message.
            session.toolset.deferred = self._deferred(servers)

    async def _policy(self, session: Session, root: Path | None) -> Policy:
        """What the folder that a turn is about says of calls, as its files are now. Raises ConfigError."""
        if root is None:
            return Policy()
        if root not in self._projects:
            self._projects[root] = ProjectPolicy(root, self._sink.warn)
        trust = partial(ask_for_trust, self.trust, self._approver, session.id, session.log)
        return await self._projects[root].read(trust, key_variables(self.settings.model))

    def _equip(self, session: Session, servers: DeferredTools | None) -> None:
        settings = self.settings
        builtin = builtin_tools(session.workspace, session.root, settings)
        deferred = self._deferred(servers)
        catalogue = deferred.catalogue() if deferred is not None else ""
        session.skills = self._skills(session.root)
        loader = [LoadSkill(session.skills, session.note_skill)] if session.skills else []
        session.toolset = Toolset(builtin, deferred, loader)
        instructions, skills = _instructions(session.root, self._folder), skills_text(session.skills)
        session.system = SystemMessage(system_text(session.workspace.roots, instructions, catalogue, skills))

    def _deferred(self, servers: DeferredTools | None) -> Deferred | None:
        if servers is None or not _has_anything(servers):
            return None
        settings = self.settings.mcp
        return Deferred(servers, auto_load=settings.auto_load, budget=settings.catalogue_budget)

    def _further_instructions(self, root: Path) -> str:
        """What a session is told with the first prompt about another folder than its own; empty without AGENTS.md."""
        try:
            instructions = _instructions(root, self._folder).strip()
        except ConfigError as error:
            self._sink.warn(error.message)
            return ""
        return f"\n\nProject instructions for {root} (AGENTS.md):\n{instructions}" if instructions else ""

    def _skills(self, root: Path | None) -> list[Skill]:
        """The folder's skills, unless `tools.disabled` names their loader; the user hears of those with a fault."""
        if root is None or LOADER in self.settings.tools.disabled:
            return []
        skills, problems = read_skills(root)
        for problem in problems:
            self._sink.warn(problem)
        return skills

    # -------------------------------------------------------------- what turns share

    async def model(self) -> Model:
        """The model of the settings as they are now. Raises ModelNotConfigured."""
        if self._model is not None and self._model[0] == self.settings.model:
            return self._model[1]
        if self._model is not None:
            await self._model[1].aclose()
        model = self._providers.model(self.settings)
        self._model = (self.settings.model, model)
        return model

    def servers(self, session: Session | None, root: Path | None) -> DeferredTools | None:
        """The MCP servers of the session's folder, else of `root`, started or not. Raises ConfigError."""
        return self._servers_of((session.root if session is not None else None) or root, session)

    def _servers_of(self, root: Path | None, session: Session | None) -> DeferredTools | None:
        if root is None:
            return None
        if root not in self._servers:
            asking = session or self.new_session()
            trust = partial(ask_for_trust, self.trust, self._approver, asking.id, asking.log)
            person = SessionPerson(lambda: self._of_servers(root, asking).id, self._approver, self._sink)
            log = FollowingLog(lambda: self._of_servers(root, asking).log)
            workspace = self._workspace.at([root])
            servers = self._providers.deferred_tools(
                root, lambda: workspace.roots, lambda: self.settings, trust, log, person
            )
            self._servers[root] = self._extend(servers, workspace)
        return self._servers[root]

    def _of_servers(self, root: Path, first: Session) -> Session:
        """The session that what a folder's servers do belongs to: the current one of that folder, else the `first`."""
        return self.current if self.current is not None and self.current.root == root else first

    async def aclose(self) -> None:
        """Cancel every turn, end every MCP server, close the connections to the model; all at the same time.

        A server that ignores everything takes four seconds, which leaves no time for anything before it.
        """
        ending = [servers.aclose() for servers in self._servers.values()]
        if self._model is not None:
            ending.append(self._model[1].aclose())
        await asyncio.gather(self.cancel(list(self.sessions.values())), *ending)
        for session in self.sessions.values():
            session.close()


def _has_anything(servers: DeferredTools) -> bool:
    """Whether there is, or may still come, a tool to load."""
    hopeless = ("untrusted", "disabled")
    return bool(servers.tools()) or any(server.status not in hopeless for server in servers.servers())


def _instructions(root: Path | None, closed: Path) -> str:
    """The text of the folder's AGENTS.md; empty where there is none. Raises ConfigError."""
    if root is None:
        return ""
    file = root / "AGENTS.md"
    if not os.path.lexists(file):
        return ""
    try:
        # As for any other file that the model gets to see: a link may not lead out of the workspace.
        text = textfile.read(containment.resolve(file.name, [root], writing=False, closed=[closed])).text
    except ToolError as error:
        raise ConfigError(f"{file} cannot be used: {error.message} Mend it or remove it.") from error
    if len(text) > INSTRUCTIONS_LIMIT:
        raise ConfigError(f"{file} has more than {INSTRUCTIONS_LIMIT} characters, and goes along with every request.")
    return text
