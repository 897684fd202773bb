"""The workspace as the editor has it: texts from its buffers, edits through `workspace/applyEdit`.

An edit is made on the newest text right before it is sent, with no wait in between, and believed only when the
document has become what was expected: an editor's "applied" proves nothing, and its "not applied" may follow a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast
from weakref import WeakValueDictionary

from lsprotocol import types

from hel_lsp import containment, textfile
from hel_lsp.errors import EditorError, EditorSilent, FileRefused, ToolError
from hel_lsp.lsp.client import ClientFacts, Editor
from hel_lsp.lsp.documents import Document, Documents
from hel_lsp.lsp.text_edits import fitted, text_edit
from hel_lsp.lsp.uris import path_to_uri
from hel_lsp.messages import EditOutcome, EditReport, FileEdit
from hel_lsp.ports import DocumentText, MakeEdit
from hel_lsp.textfile import TextFile
from hel_lsp.tools import edit as engine

REPLY_TIME = 30.0
"""Seconds that the editor gets to answer an edit."""

SETTLE_TIME = 1.0
"""Seconds that the document gets to become the expected text once the editor has answered."""

UNTITLED = "untitled:"
"""How the URI of a document without a file begins."""

LAST_LOOK = 0.7
"""Seconds that an edit which has been sent is still watched after a cancel."""


@dataclass(eq=False)
class EditorWorkspace:
    """Implements the Workspace port. `folders` follow the editor's; `asked` are those a session was asked about."""

    editor: Editor
    documents: Documents
    facts: ClientFacts = field(default_factory=ClientFacts)
    folders: list[Path] = field(default_factory=list[Path])
    asked: Sequence[Path] = ()
    closed: Sequence[Path] = ()
    _readable: set[Path] = field(default_factory=set[Path])
    _locks: WeakValueDictionary[Path, asyncio.Lock] = field(default_factory=WeakValueDictionary[Path, asyncio.Lock])

    # -------------------------------------------------------------- paths

    @property
    def roots(self) -> Sequence[Path]:
        if not self.folders:
            return self.asked
        return sorted(self.folders, key=lambda folder: folder not in self.asked[:1])

    def at(self, roots: Sequence[Path]) -> EditorWorkspace:
        return replace(self, asked=roots)

    def resolve(self, path: str, *, writing: bool = False) -> Path:
        if path.startswith(UNTITLED) and self.documents.find(path) is not None:
            return Path(path)
        return containment.resolve(path, self.roots, writing=writing, readable=self._readable, closed=self.closed)

    def display(self, path: Path) -> str:
        first = next(iter(self.roots), None)
        return path.relative_to(first).as_posix() if first and path.is_relative_to(first) else path.as_posix()

    def uri(self, path: Path) -> str:
        document = self._document(path)
        if document is not None:
            return document.uri
        return path_to_uri(path) if path.is_absolute() else str(path)

    def open_to_tools(self, files: Iterable[Path]) -> Iterable[Path]:
        return containment.open_to_tools(files, self.roots, closed=self.closed)

    def allow_reading(self, path: Path) -> None:
        self._readable.add(path)

    # -------------------------------------------------------------- texts

    async def read(self, path: Path) -> DocumentText:
        document = self._document(path)
        if document is not None:
            return DocumentText(path, document.uri, document.text)
        return DocumentText(path, path_to_uri(path), textfile.read(path).text)

    def exists(self, path: Path) -> bool:
        return self._document(path) is not None or path.exists()

    def newest(self, path: Path) -> str | None:
        document = self._document(path)
        return document.text if document is not None else textfile.text_of(path) if path.is_absolute() else None

    def open_documents(self) -> Sequence[DocumentText]:
        unsaved = {document.uri for document in self.documents.unsaved()}
        return [
            DocumentText(path, document.uri, document.text, document.uri in unsaved)
            for document in self.documents
            if (path := self._path(document)) is not None
        ]

    def _document(self, path: Path) -> Document | None:
        return self.documents.find(path if path.is_absolute() else str(path))

    def _path(self, document: Document) -> Path | None:
        """Where tools find the document; None outside the workspace. One without a file goes by its URI."""
        if document.path is None:
            return Path(document.uri) if document.uri.startswith(UNTITLED) else None
        return document.path if any(document.path.is_relative_to(root) for root in self.roots) else None

    # -------------------------------------------------------------- edits

    async def edit(self, path: Path, make: MakeEdit) -> EditOutcome:
        lock = self._locks.setdefault(path, asyncio.Lock())
        task = asyncio.current_task()
        async with lock:
            attempt = await self._attempt(path, make)
            if attempt.again and not (task and task.cancelling()):
                attempt = await self._attempt(path, make)
            return attempt.outcome

    async def _attempt(self, path: Path, make: MakeEdit) -> _Attempt:
        document = self._document(path)
        if document is None and not path.is_absolute():
            raise FileRefused(f"{path} was closed in the editor.")
        file = None if document is not None or not path.exists() else textfile.read(path)
        before = document.text if document is not None else file.text if file is not None else None
        edit = make(before)
        if document is None and not self.facts.applies_edits:
            return _Attempt(self._write(edit, file))
        return await self._send(fitted(edit, self.facts, opened=document is not None), document, make)

    def _write(self, edit: FileEdit, file: TextFile | None) -> EditOutcome:
        """The disk, for an editor that does not say that it takes edits, and a file that it does not have open.

        One that is open is left to the editor all the same: some take edits and do not say so.
        """
        if file is None:
            textfile.create(edit.path, edit.after)
        else:
            textfile.write(edit.path, file, edit.after)
        return _outcome(edit, path_to_uri(edit.path), True)

    async def _send(self, edit: FileEdit, document: Document | None, make: MakeEdit) -> _Attempt:
        uri = document.uri if document is not None else path_to_uri(edit.path)
        params = self._params(edit, uri, document)
        if edit.before is None:
            # Made now: an editor creates the file, and not all of them the folder.
            edit.path.parent.mkdir(parents=True, exist_ok=True)
        where = edit.path if edit.path.is_absolute() else uri
        exact = document is not None and "\n" in document.text
        watch = asyncio.create_task(
            self.documents.wait_changed(where, partial(_is_expected, edit, exact), REPLY_TIME + SETTLE_TIME)
        )
        asking = asyncio.create_task(self._reply(params))
        try:
            await asyncio.wait({asking})
            await asyncio.wait({watch}, timeout=SETTLE_TIME)
        except asyncio.CancelledError:
            # It has been sent: what became of it is still worth knowing. The turn notices the cancel afterwards.
            await _look_once_more(watch)
        finally:
            arrived = watch.done() and not watch.cancelled() and watch.result()
            watch.cancel()
            asking.cancel()
        reply = asking.result() if asking.done() else _Reply("cancelled", "cancelled before the editor had answered.")
        return _Attempt(_outcome(edit, uri, True)) if arrived else self._judge(edit, uri, make, reply)

    async def _reply(self, params: types.ApplyWorkspaceEditParams) -> _Reply:
        try:
            result: object = await self.editor.request(types.WORKSPACE_APPLY_EDIT, params, REPLY_TIME)
        except EditorError as error:
            return _Reply("silent" if isinstance(error, EditorSilent) else "unusable", error.message)
        fields = cast("Mapping[str, object]", result if isinstance(result, Mapping) else {})
        applied, said = fields.get("applied"), fields.get("failureReason")
        if not isinstance(applied, bool):
            return _Reply("unusable", "the editor's answer could not be read.")
        if applied:
            return _Reply("applied", "the editor says that it was applied, but the text has not changed.")
        return _Reply("refused", f"the editor refused it: {said}" if said else _NO_REASON)

    def _judge(self, edit: FileEdit, uri: str, make: MakeEdit, reply: _Reply) -> _Attempt:
        """What became of an edit whose document is not what was expected, and whether a second attempt makes sense."""
        document = self._document(edit.path)
        text = document.text if document is not None else None
        outcome = partial(_outcome, edit, uri, text=text, may_come=reply.kind != "refused")
        # An editor may say that it was applied and drop it, or tell of the change later.
        otherwise = None if reply.kind in ("applied", "cancelled") else False
        if text is None and reply.kind == "applied":
            return _Attempt(outcome(None, "the editor says that it was applied, but has not shown the document."))
        if text is None or _comparable(text) == _comparable(edit.before or ""):
            return _Attempt(outcome(otherwise, reply.reason), again=reply.kind == "refused")
        if _comparable(text) == _comparable(edit.after):
            return _Attempt(outcome(None, "it arrived with other line ends than it was sent with."))
        is_there, is_wanted = _succeeds(partial(engine.revert, edit), text), _succeeds(make, text)
        if is_there and not is_wanted:
            # The user was typing elsewhere.
            return _Attempt(_outcome(edit, uri, True, text=text))
        # An edit that was put in a wrong place leaves the quoted text where it is, too.
        strayed = reply.kind == "applied" and (
            not edit.text or text.count(edit.text) > (edit.before or "").count(edit.text)
        )
        if is_wanted and not is_there and not strayed:
            again = reply.kind not in ("silent", "cancelled")
            applied = None if reply.kind == "cancelled" else False
            return _Attempt(outcome(applied, "the document changed since it was read."), again=again)
        return _Attempt(outcome(None, "the document changed since it was read, and not into what was expected."))

    def _params(self, edit: FileEdit, uri: str, document: Document | None) -> types.ApplyWorkspaceEditParams:
        change = text_edit(edit, self.facts, self.documents.encoding, opened=document is not None)
        if not self.facts.document_changes:
            workspace_edit = types.WorkspaceEdit(changes={uri: [change]})
        else:
            version = document.version if document is not None else None
            identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
            changes: list[Any] = [types.TextDocumentEdit(text_document=identifier, edits=[change])]
            if edit.before is None and self.facts.creates_files:
                changes.insert(0, types.CreateFile(uri=uri))
            workspace_edit = types.WorkspaceEdit(document_changes=changes)
        return types.ApplyWorkspaceEditParams(edit=workspace_edit, label="hel")


@dataclass(frozen=True, slots=True)
class _Attempt:
    outcome: EditOutcome
    again: bool = False


@dataclass(frozen=True, slots=True)
class _Reply:
    """What the editor answered, and what that means for an edit that cannot be seen."""

    kind: Literal["applied", "refused", "unusable", "silent", "cancelled"]
    reason: str


_NO_REASON = "the editor refused it and gave no reason; most likely its document is newer than the one that was read."


def _outcome(
    edit: FileEdit,
    uri: str,
    applied: bool | None,
    reason: str = "",
    *,
    text: str | None = None,
    may_come: bool = False,
) -> EditOutcome:
    added, removed = engine.added_and_removed(edit)
    return EditOutcome(EditReport(uri, applied, added, removed, reason), edit, text, may_come)


async def _look_once_more(watch: asyncio.Task[bool]) -> None:
    """Wait a little for an edit that has been sent, however many cancels come meanwhile."""
    loop = asyncio.get_running_loop()
    end = loop.time() + LAST_LOOK
    while not watch.done() and loop.time() < end:
        with suppress(asyncio.CancelledError):
            await asyncio.wait({watch}, timeout=end - loop.time())


def _is_expected(edit: FileEdit, exact: bool, text: str) -> bool:
    """Whether a text is what the edit makes: to the last line end where it was made on the client's own."""
    return text == edit.after if exact else _comparable(text) == _comparable(edit.after)


def _succeeds(make: Callable[[str], FileEdit], text: str) -> bool:
    try:
        make(text)
    except ToolError:
        return False
    return True


def _comparable(text: str) -> str:
    """The text without what an editor may hold differently: line endings and a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
