"""Questions to the person: `window/showMessageRequest`, one at a time, or `hel.answer` in its place.

Only the exact title of an action counts. A question may stay unanswered for ever and holds up nothing but what
needs an answer too.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from lsprotocol import types

from hel_lsp.errors import EditorError
from hel_lsp.lsp.client import ClientFacts, Editor
from hel_lsp.lsp.uris import path_to_uri
from hel_lsp.permissions.question import LIMIT
from hel_lsp.ports import Question
from hel_lsp.state import private_folder

T = TypeVar("T")

SHOW_TIME = 5.0
"""Seconds that the editor has to show a document or a page, before it is only named."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that waits for an answer."""

    id: str
    question: Question
    answer: asyncio.Future[str | None]


@dataclass(eq=False)
class EditorApprover:
    """Implements the Approver port. `waiting` hears of a session when a question of it goes out and comes back.

    `uri` gives a file's URI as the editor knows it.
    """

    editor: Editor
    folder: Path
    facts: ClientFacts = field(default_factory=ClientFacts)
    waiting: Callable[[str, str | None], None] = lambda session, message: None
    uri: Callable[[Path], str] = path_to_uri
    _pending: dict[str, Pending] = field(default_factory=dict[str, Pending])
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _asked: dict[str, int] = field(default_factory=dict[str, int])

    async def ask(self, question: Question) -> str | None:
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        pending = Pending(str(next(self._ids)), question, answer)
        self._pending[pending.id] = pending
        self.waiting(question.session, question.message)
        try:
            async with self._turn:
                if not answer.done():
                    await self._put(pending)
                return await answer
        finally:
            del self._pending[pending.id]
            self.waiting(question.session, None)

    async def open(self, url: str) -> bool:
        """Have the editor open the page in the browser; where it does not, say the address."""
        if not await self._show(types.ShowDocumentParams(uri=url, external=True)):
            message = types.ShowMessageParams(types.MessageType.Info, f"hel: open this page in your browser: {url}")
            self.editor.notify(types.WINDOW_SHOW_MESSAGE, message)
        return True

    def pending(self) -> list[Pending]:
        return list(self._pending.values())

    def answer(self, name: str, action: str) -> bool:
        """Answer a question as its button would; False when it is not there, or has no such action."""
        pending = self._pending.get(name)
        if pending is None or pending.answer.done() or action not in pending.question.actions:
            return False
        pending.answer.set_result(action)
        return True

    async def _put(self, pending: Pending) -> None:
        """Ask in the editor until there is an answer, from there or from `answer`."""
        question = pending.question
        message = await _unless_answered(pending, self._shown(pending))
        if message is None:
            return
        edit = question.edit
        shows_diff = self.facts.diff and edit is not None
        if shows_diff and edit is not None:
            diff = {"uri": self.uri(edit.path), "before": edit.before or "", "after": edit.after}
            self.editor.notify("hel/showDiff", {**diff, "title": question.message.split(" ⏎ ", 1)[0]})
        try:
            title = await _unless_answered(pending, self._popup(self._unique(message), question.actions))
            if not pending.answer.done():
                pending.answer.set_result(title)
        finally:
            if shows_diff and edit is not None:
                self.editor.notify("hel/closeDiff", {"uri": self.uri(edit.path)})

    async def _popup(self, message: str, actions: tuple[str, ...]) -> str | None:
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Warning,
            message=message,
            actions=[types.MessageActionItem(title=title) for title in actions],
        )
        try:
            result: object = await self.editor.request(types.WINDOW_SHOW_MESSAGE_REQUEST, params, None)
        except EditorError:
            return None
        title = cast("Mapping[str, object]", result).get("title") if isinstance(result, Mapping) else None
        return title if isinstance(title, str) and title in actions else None

    async def _shown(self, pending: Pending) -> str:
        """The message; what does not fit in it is opened beside it, or lies in a file that it names."""
        question = pending.question
        if not question.detail:
            return question.message
        suffix = "diff" if question.edit is not None else "txt"
        file = private_folder(self.folder / "questions") / f"{question.session}-{pending.id}.{suffix}"
        file.touch(mode=0o600)
        file.write_text(question.detail, encoding="utf-8", errors="surrogateescape")
        if await self._show(types.ShowDocumentParams(uri=path_to_uri(file), take_focus=False)):
            return question.message
        where = f" (in full: {file})"
        return question.message[: LIMIT - len(where)] + where

    async def _show(self, params: types.ShowDocumentParams) -> bool:
        if not self.facts.shows_documents:
            return False
        try:
            shown: object = await self.editor.request(types.WINDOW_SHOW_DOCUMENT, params, SHOW_TIME)
        except EditorError:
            return False
        return isinstance(shown, Mapping) and cast("Mapping[str, object]", shown).get("success") is True

    def _unique(self, message: str) -> str:
        """The message, numbered when it was asked before: an editor may take an equal one for the same popup."""
        count = self._asked.get(message, 0) + 1
        self._asked[message] = count
        return message if count == 1 else f"({count}) {message}"


async def _unless_answered(pending: Pending, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`; it is given up, and the result None, as soon as the question has its answer."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task, pending.answer}, return_when=asyncio.FIRST_COMPLETED)
        return None if pending.answer.done() else task.result()
    finally:
        task.cancel()
