"""`hel.undo`: a turn's edits taken back, newest first, around what the user typed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from hel_lsp.agent.made import Made
from hel_lsp.agent.session import Session
from hel_lsp.errors import CommandError, FileRefused, MatchError, ToolError
from hel_lsp.messages import FileEdit
from hel_lsp.ports import Workspace
from hel_lsp.tools import edit as engine

_CREATED = "The turn created this file. Delete it yourself if it is not wanted."
_UNKNOWN = "It is not known whether this edit arrived, and the text does not show it."
_GIVEN_UP = "So much was edited since that the text from before this edit is no longer kept."


@dataclass(frozen=True, slots=True)
class Undone:
    """Which documents are as they were, and which were kept, with the reason."""

    reverted: Sequence[str]
    kept: Sequence[tuple[str, str]]


async def undo_turn(session: Session, workspace: Workspace, number: int | None) -> Undone:
    """Revert the edits of turn `number`, by default of the last turn with edits. Raises CommandError.

    A file whose edit cannot be taken back is left alone from there on: its older edits lie under the newer one. One
    that the turn created stays as it is: to delete it is the user's to decide. A turn with edits that stay is chosen
    again only by its number, or when no other is left.
    """
    if session.running is not None:
        raise CommandError("A turn is running: cancel it or wait for its end before undoing.")
    standing = [made for made in session.edits if made.report.applied or made.stands(workspace.newest(made.path))]
    newest = max(standing, key=lambda made: (not made.told, made.turn), default=None)
    if number is None and newest is not None:
        number = newest.turn
    made = [made for made in standing if made.turn == number]
    if not made:
        raise CommandError("turn: there is nothing to undo." if number is None else f"turn: {number} made no edits.")
    reverted: dict[str, None] = {}
    created = {one.path for one in made if one.edit is not None and one.edit.before is None}
    kept = {workspace.uri(path): _CREATED for path in created}
    stuck = set(created)
    for one in reversed(made):
        if one.path not in stuck:
            reason = await _revert(one, workspace)
            if reason is None:
                reverted[workspace.uri(one.path)] = None
                session.made.remove(one)
                continue
            kept[workspace.uri(one.path)] = reason
            stuck.add(one.path)
        one.told = True
        if one.path in created:
            # Said once; the next undo is about what lies before.
            session.made.remove(one)
    return Undone([uri for uri in reverted if uri not in kept], list(kept.items()))


async def _revert(made: Made, workspace: Workspace) -> str | None:
    """Why an edit stays; None when it was taken back."""
    if made.edit is None:
        return _GIVEN_UP
    if not made.report.applied:
        return _UNKNOWN
    try:
        outcome = await workspace.edit(made.path, partial(_reversal, made.edit))
    except ToolError as error:
        return error.message
    if outcome.report.applied:
        return None
    if outcome.may_come:
        # Then it is looked at once more before it is taken back again.
        made.report = replace(made.report, applied=None)
    return outcome.report.reason


def _reversal(edit: FileEdit, text: str | None) -> FileEdit:
    if text is None:
        raise FileRefused("The file is gone.")
    if engine.arrived(edit, text) is False:
        # Where it deleted something its place could be found a second time.
        raise MatchError("The edit has been taken back already.")
    return engine.revert(edit, text)
