"""What turns have edited, for their results and for `hel.undo`: as far as it is known, and as long as there is room."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hel_lsp.messages import EditReport, FileEdit
from hel_lsp.tools import edit as engine

KEPT_EDITS = 200
KEPT_BYTES = 64_000_000
"""Edits that can be undone, of all sessions together; each holds the text of its file."""


@dataclass(eq=False, slots=True)
class Made:
    """One edit of a turn. `edit` is None once its texts were given up, `told` says that the user knows why it stays."""

    session: str
    turn: int
    path: Path
    report: EditReport
    edit: FileEdit | None
    told: bool = False

    def stands(self, text: str | None) -> bool:
        """Whether there is something to undo, going by the newest text where it was not known that the edit arrived.

        Where it turns out that it has, the report says so from then on.
        """
        if self.report.applied or self.edit is None:
            return True
        arrived = engine.arrived(self.edit, text)
        if arrived:
            self.report = replace(self.report, applied=True, reason="")
        return arrived or (arrived is None and self.report.applied is None)


@dataclass(eq=False)
class MadeEdits:
    """The edits of all sessions of a connection, oldest first. The oldest turns lose their texts where that is due."""

    _made: list[Made] = field(default_factory=list[Made])

    def of(self, session: str) -> Sequence[Made]:
        return [made for made in self._made if made.session == session]

    def add(self, made: Made) -> None:
        self._made.append(made)
        while len(kept := [one for one in self._made if one.edit is not None]) > 1:
            is_large = sum(map(_size, kept)) > KEPT_BYTES
            oldest = [one for one in kept if (one.session, one.turn) == (kept[0].session, kept[0].turn)]
            if made in oldest and is_large:
                # Of the newest turn no more than has to go.
                oldest = oldest[:1]
            elif made in oldest or not (is_large or len(kept) > KEPT_EDITS):
                break
            for one in oldest:
                one.edit = None

    def remove(self, made: Made) -> None:
        self._made = [one for one in self._made if one is not made]


def _size(made: Made) -> int:
    return sum(sys.getsizeof(text) for text in (made.edit.before, made.edit.text)) if made.edit is not None else 0
