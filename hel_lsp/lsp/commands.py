"""The commands of the wire: each takes at most one object, says what is wrong with it, and talks to the agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast, get_args

from hel_lsp.agent.agent import Agent, Ask
from hel_lsp.agent.prompt import Focus
from hel_lsp.errors import CommandError
from hel_lsp.lsp.approver import EditorApprover
from hel_lsp.lsp.documents import Document
from hel_lsp.lsp.edits import EditorWorkspace
from hel_lsp.lsp.events import EditorEvents, turn_result
from hel_lsp.lsp.history import history_messages
from hel_lsp.lsp.uris import path_to_uri, uri_to_path
from hel_lsp.messages import AccessLevel
from hel_lsp.ports import DeferredTools, Tool, Workspace
from hel_lsp.tools.builtin import builtin_tools
from hel_lsp.tools.lines import position_to_offset, split_lines

AROUND = 10
"""Lines that go along on each side of the cursor."""

TITLE_LIMIT = 60


class Shower(Protocol):
    async def __call__(self, uri: str) -> bool: ...


@dataclass(eq=False)
class Commands:
    """One method a command; `table` is what the server registers."""

    agent: Agent
    workspace: EditorWorkspace
    approver: EditorApprover
    events: EditorEvents
    show: Shower

    def table(self) -> Mapping[str, Callable[[Arguments], Awaitable[Any]]]:
        return {
            "hel.ask": self.ask,
            "hel.wait": self.wait,
            "hel.cancel": self.cancel,
            "hel.newSession": self.new_session,
            "hel.sessions": self.sessions,
            "hel.resume": self.resume,
            "hel.compact": self.compact,
            "hel.setAccess": self.set_access,
            "hel.pending": self.pending,
            "hel.answer": self.answer,
            "hel.tools": self.tools,
            "hel.reloadMcp": self.reload_mcp,
            "hel.undo": self.undo,
            "hel.openLog": self.open_log,
        }

    async def ask(self, given: Arguments) -> dict[str, Any]:
        prompt = given.text("prompt")
        if not prompt.strip():
            raise CommandError("prompt: expected a text that is not empty.")
        wait = given.flag("wait")
        document = given.optional_object("textDocument")
        uri = document.text("uri") if document is not None else None
        name, root = given.optional_text("session"), self._root(uri)
        focus = self._focus(uri, given.optional_object("range"), self._workspace_of(name, root))
        ask = Ask(prompt, root, focus, given.optional_access("access"))
        session, turn = self.agent.ask(ask, name)
        self.events.began(session.id, turn, f"hel: {_title(prompt)}", given.token if wait else None)
        if not wait:
            return {"session": session.id, "turn": turn}
        try:
            return turn_result(await self.agent.wait(session, turn))
        finally:
            # A client that cancels the request it waits with means the turn.
            if session.running is not None and session.count == turn:
                await self.agent.cancel([session])

    async def wait(self, given: Arguments) -> dict[str, Any]:
        name, turn = given.optional_text("session"), given.optional_number("turn")
        return turn_result(await self.agent.wait(self.agent.session(name), turn))

    async def cancel(self, given: Arguments) -> dict[str, bool]:
        name = given.optional_text("session")
        sessions = list(self.agent.sessions.values()) if name is None else [self.agent.session(name)]
        return {"cancelled": await self.agent.cancel(sessions)}

    async def new_session(self, given: Arguments) -> dict[str, str]:
        given.nothing()
        return {"session": self.agent.new_session().id}

    async def sessions(self, given: Arguments) -> list[dict[str, Any]]:
        given.nothing()
        return [
            {"session": kept.id, "title": _title(kept.prompt), "updated": _timestamp(kept.updated), "turns": kept.turns}
            for kept in self.agent.stored()
        ]

    async def resume(self, given: Arguments) -> dict[str, Any]:
        session = self.agent.resume(given.optional_text("session"))
        return {"session": session.id, "messages": history_messages(session.history)}

    async def compact(self, given: Arguments) -> dict[str, Any]:
        done = await self.agent.compact(self.agent.session(given.optional_text("session")))
        shape: dict[str, Any] = {"before": done.before, "after": done.after}
        return {**shape, "reason": done.reason} if done.reason else shape

    async def set_access(self, given: Arguments) -> dict[str, str]:
        level = given.optional_access("access")
        if level is None:
            raise CommandError(f"access: expected one of {', '.join(get_args(AccessLevel))}.")
        self.agent.access = level
        return {"access": level}

    async def pending(self, given: Arguments) -> list[dict[str, Any]]:
        given.nothing()
        return [
            {
                "id": pending.id,
                "session": pending.question.session,
                "message": pending.question.message,
                "actions": list(pending.question.actions),
            }
            for pending in self.approver.pending()
        ]

    async def answer(self, given: Arguments) -> dict[str, bool]:
        return {"accepted": self.approver.answer(given.text("id"), given.text("action"))}

    async def tools(self, given: Arguments) -> dict[str, Any]:
        name = given.optional_text("session")
        session = self.agent.session(name) if name is not None else self.agent.current
        root = self.agent.root
        if session is not None and session.started:
            builtin: Sequence[Tool] = session.toolset.builtin
        else:
            builtin = builtin_tools(self._workspace_of(name, root), root, self.agent.settings)
        loaded = session.toolset.deferred.loaded() if session is not None and session.toolset.deferred else ()
        servers = self.agent.servers(session, root)
        if servers is not None:
            await servers.look(self.agent.trust.knows)
        return {
            "builtin": [
                _tool(tool.definition.name, tool.definition.description, True, tool.access) for tool in builtin
            ],
            "servers": _servers(servers, loaded) if servers is not None else [],
        }

    async def reload_mcp(self, given: Arguments) -> dict[str, Any]:
        name = given.optional_text("server")
        servers = self.agent.servers(self.agent.current, self.agent.root)
        if servers is not None:
            await servers.reload(name)
        return await self.tools(Arguments({}))

    async def undo(self, given: Arguments) -> dict[str, Any]:
        name, turn = given.optional_text("session"), given.optional_number("turn")
        undone = await self.agent.undo(self.agent.session(name), turn)
        kept = [{"uri": uri, "reason": reason} for uri, reason in undone.kept]
        return {"reverted": list(undone.reverted), "kept": kept}

    async def open_log(self, given: Arguments) -> dict[str, str]:
        session = self.agent.session(given.optional_text("session"))
        if not session.log.path.exists():
            session.log.write("opened")
        uri = path_to_uri(session.log.path)
        await self.show(uri)
        return {"uri": uri}

    # -------------------------------------------------------------- where the user is

    def _root(self, uri: str | None) -> Path | None:
        """The workspace folder that holds the document; without folders, the document's own; None where it has none."""
        path = _path(uri)
        if path is None:
            return None
        if not self.workspace.folders:
            return path.parent
        holding = [folder for folder in self.workspace.folders if path.is_relative_to(folder)]
        return max(holding, key=lambda folder: len(folder.parts), default=None)

    def _workspace_of(self, session: str | None, root: Path | None) -> Workspace:
        """The workspace as the session has it, or as one about `root` will."""
        there = self.agent.current if session is None else self.agent.session(session)
        if there is not None and there.root is not None:
            return there.workspace
        root = root or self.agent.root
        return self.workspace.at([root] if root is not None else [])

    def _focus(self, uri: str | None, span: Arguments | None, workspace: Workspace) -> Focus | None:
        if uri is None:
            if span is not None:
                raise CommandError("range: expected only together with textDocument.")
            return None
        selected = (span.position("start"), span.position("end")) if span is not None else None
        path = _path(uri)
        document = self.workspace.documents.find(uri)
        name = workspace.display(path) if path is not None else uri
        if document is None or selected is None:
            return Focus(name, document.language_id if document is not None else "")
        return self._excerpt(name, document, *selected)

    def _excerpt(self, name: str, document: Document, start: tuple[int, int], end: tuple[int, int]) -> Focus:
        text = document.text
        if start == end:
            lines = split_lines(text)
            first = max(0, start[0] - AROUND)
            return Focus(name, document.language_id, "".join(lines[first : start[0] + AROUND + 1]), first + 1)
        encoding = self.workspace.documents.encoding
        low = position_to_offset(text, *start, encoding)
        high = position_to_offset(text, *end, encoding)
        excerpt = text[min(low, high) : max(low, high)]
        return Focus(name, document.language_id, excerpt, min(start, end)[0] + 1, selected=True)


@dataclass(frozen=True, slots=True)
class Arguments:
    """A command's one object, read field by field; every fault is a CommandError that names the field."""

    fields: Mapping[str, Any]
    token: int | str | None = None
    prefix: str = ""

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise CommandError(f"{self.prefix}{name}: expected a string.")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self.fields.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        value = self.fields.get(name)
        if value is not None and not isinstance(value, bool):
            raise CommandError(f"{self.prefix}{name}: expected true or false.")
        return value is True

    def number(self, name: str) -> int:
        value = self.fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise CommandError(f"{self.prefix}{name}: expected a whole number, 0 or more.")
        return value

    def optional_number(self, name: str) -> int | None:
        return None if self.fields.get(name) is None else self.number(name)

    def optional_access(self, name: str) -> AccessLevel | None:
        value = self.fields.get(name)
        if value is not None and value not in get_args(AccessLevel):
            raise CommandError(f"{self.prefix}{name}: expected one of {', '.join(get_args(AccessLevel))}.")
        return cast("AccessLevel | None", value)

    def optional_object(self, name: str) -> Arguments | None:
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise CommandError(f"{self.prefix}{name}: expected an object.")
        return Arguments(cast("Mapping[str, Any]", value), prefix=f"{self.prefix}{name}.")

    def position(self, name: str) -> tuple[int, int]:
        where = self.optional_object(name)
        if where is None:
            raise CommandError(f"{self.prefix}{name}: expected a position.")
        return where.number("line"), where.number("character")

    def nothing(self) -> None:
        """Raise when there is a field, of a command that takes none."""
        for name in self.fields:
            raise CommandError(f"{name}: expected no argument.")


def _path(uri: str | None) -> Path | None:
    path = uri_to_path(uri) if uri is not None else None
    return Path(path).resolve() if path is not None and "\0" not in path else None


def _title(prompt: str) -> str:
    line = " ".join(prompt.split())
    return line if len(line) <= TITLE_LIMIT else line[: TITLE_LIMIT - 1] + "…"


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _tool(name: str, description: str, loaded: bool, access: str) -> dict[str, Any]:
    return {"name": name, "description": description, "loaded": loaded, "access": access}


def _servers(servers: DeferredTools, loaded: Any) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for server in servers.servers():
        tools = [
            _tool(tool.name, tool.definition.description, tool.name in loaded, tool.access) for tool in server.tools
        ]
        entry = {"name": server.name, "status": server.status, "tools": tools, "diagnostics": list(server.diagnostics)}
        if server.protocol_version is not None:
            entry["protocolVersion"] = server.protocol_version
        shown.append(entry)
    return shown
