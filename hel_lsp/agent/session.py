"""One conversation: its history, what belongs to it, what it edited, and the file that keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hel_lsp.agent.made import Made, MadeEdits
from hel_lsp.agent.runlog import JsonLinesLog
from hel_lsp.agent.skills import Skill
from hel_lsp.agent.store import SessionFile, to_json
from hel_lsp.errors import ConfigError
from hel_lsp.messages import EditReport, Message, StopReason, SystemMessage, TurnResult
from hel_lsp.permissions.gate import Grants
from hel_lsp.ports import Workspace
from hel_lsp.tools.spill import Spill
from hel_lsp.tools.toolset import Toolset


@dataclass
class Session:
    """Lives as long as its connection. `system` and `toolset` are fixed when the first turn starts, but for MCP tools.

    `roots` are the folders that it was asked about; it belongs to the first of them. `earlier` is the number of turns
    before the session was resumed. `counted` are the tokens of the newest request and its reply as the provider counted
    them, and how many messages of the history that covers. `warn` hears, for the user, that the session cannot be kept;
    it goes on without its file.
    """

    id: str
    roots: list[Path]
    workspace: Workspace
    log: JsonLinesLog
    spill: Spill
    grants: Grants
    warn: Callable[[str], None]
    system: SystemMessage = field(default_factory=lambda: SystemMessage(""))
    toolset: Toolset = field(default_factory=lambda: Toolset((), None))
    history: list[Message] = field(default_factory=list[Message])
    turns: list[asyncio.Task[TurnResult]] = field(default_factory=list[asyncio.Task[TurnResult]])
    skills: list[Skill] = field(default_factory=list[Skill])
    loaded_skills: list[str] = field(default_factory=list[str])
    earlier: int = 0
    made: MadeEdits = field(default_factory=MadeEdits)
    file: SessionFile | None = None
    counted: tuple[int, int] | None = None
    compacting: asyncio.Task[Any] | None = None
    started: bool = False

    @property
    def root(self) -> Path | None:
        """The folder whose servers, skills, instructions and shell it has; None before it was asked about any."""
        return next(iter(self.roots), None)

    @property
    def running(self) -> asyncio.Task[Any] | None:
        """The turn, or the compaction, that is under way."""
        newest = [*self.turns[-1:], *([self.compacting] if self.compacting is not None else [])]
        return next((task for task in newest if not task.done()), None)

    @property
    def count(self) -> int:
        """How many turns there have been, the one under way included."""
        return self.earlier + len(self.turns)

    def add(self, message: Message) -> None:
        """Put a message at the end of the history, and into the file."""
        self.history.append(message)
        self.note("message", message=to_json(message))

    def replace(self, messages: Sequence[Message]) -> None:
        """Put these messages in the place of the whole history, here and in the file."""
        self.history[:] = messages
        self.counted = None
        self.note("compacted", messages=[to_json(message) for message in messages])

    def note(self, kind: str, **fields: Any) -> None:
        """Write an entry into the session's file."""
        if self.file is None:
            return
        try:
            self.file.append(kind, **fields)
        except ConfigError as error:
            self._give_up(self.file, error)

    @property
    def edits(self) -> Sequence[Made]:
        """What its turns have edited, or may have, and has not been undone."""
        return self.made.of(self.id)

    def look_again(self, path: Path, text: str | None, *, over: bool = False) -> list[Made]:
        """The edits of a file that were not known to have arrived and stand in `text`, its newest.

        With `over` those that do not will not come any more: another edit has been made on this text.
        """
        late: list[Made] = []
        for made in self.edits:
            if made.path == path and not made.report.applied:
                stands = made.stands(text)
                if made.report.applied:
                    late.append(made)
                elif over and not stands:
                    self.made.remove(made)
        return late

    def note_skill(self, name: str) -> None:
        """The model loaded this skill: a compaction puts it back, the latest first."""
        self.loaded_skills = [*(other for other in self.loaded_skills if other != name), name]
        self.note("skill", name=name)

    def end_turn(self, number: int, stop: StopReason) -> None:
        """Have the turn on the disk, with the newest hash of the run log, before anyone hears of its end."""
        self.log.sync()
        self.note("end", turn=number, stop=stop, log=self.log.newest)
        if self.file is None:
            return
        try:
            self.file.sync()
        except ConfigError as error:
            self._give_up(self.file, error)

    def close(self) -> None:
        """Let another process have the session."""
        if self.file is not None:
            self.file.close()
            self.file = None

    def _give_up(self, file: SessionFile, error: ConfigError) -> None:
        self.file = None
        file.close()
        self.warn(f"Session {self.id} is not kept from here on: {error.message}")

    def still_unsaved(self, edits: Iterable[EditReport]) -> tuple[str, ...]:
        """The documents among `edits` that the user has yet to save."""
        edited = {report.uri for report in edits}
        opened = self.workspace.open_documents()
        return tuple(document.uri for document in opened if document.unsaved and document.uri in edited)
