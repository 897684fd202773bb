"""`hel.undo`: a turn's edits taken back, newest first, around what the user typed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hel_lsp.agent.session import Session
from hel_lsp.errors import CommandError, FileRefused, ToolError
from hel_lsp.messages import FileEdit
from hel_lsp.ports import Workspace
from hel_lsp.tools import edit as engine

_CREATED = "The turn created this file. Delete it yourself if it is not wanted."


@dataclass(frozen=True, slots=True)
class Undone:
    """Which documents are as they were, and which were kept, with the reason."""

    reverted: Sequence[str]
    kept: Sequence[tuple[str, str]]


async def undo_turn(session: Session, workspace: Workspace, number: int | None) -> Undone:
    """Revert the edits of turn `number`, by default of the last turn with edits. Raises CommandError.

    A file whose edit cannot be taken back is left alone from there on: its older edits lie under the newer one. One
    that the turn created stays as it is: to delete it is the user's to decide.
    """
    if session.running is not None:
        raise CommandError("A turn is running: cancel it or wait for its end before undoing.")
    chosen = number if number is not None else max((turn for turn, _ in session.edits), default=0)
    edits = [edit for turn, edit in session.edits if turn == chosen]
    if not edits:
        raise CommandError("turn: there is nothing to undo." if number is None else f"turn: {number} made no edits.")
    reverted: dict[str, None] = {}
    created = {edit.path for edit in edits if edit.before is None}
    kept = {workspace.uri(path): _CREATED for path in created}
    stuck = set(created)
    for edit in reversed(edits):
        if edit.path in stuck:
            continue
        try:
            outcome = await workspace.edit(edit.path, partial(_reversal, edit))
        except ToolError as error:
            kept[workspace.uri(edit.path)] = error.message
            stuck.add(edit.path)
            continue
        if outcome.report.applied:
            reverted[outcome.report.uri] = None
            session.edits.remove((chosen, edit))
        else:
            kept[outcome.report.uri] = outcome.report.reason
            stuck.add(edit.path)
    # Said once; the next undo is about what lies before.
    session.edits[:] = [(turn, edit) for turn, edit in session.edits if turn != chosen or edit.path not in created]
    return Undone([uri for uri in reverted if uri not in kept], list(kept.items()))


def _reversal(edit: FileEdit, text: str | None) -> FileEdit:
    if text is None:
        raise FileRefused("The file is gone.")
    return engine.revert(edit, text)
