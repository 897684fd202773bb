"""The mirror of what the editor has open: texts exactly as the editor sent them, found by any spelling of their URI.

The editor is asked for full texts. A client that sends ranges all the same is followed, with lines that end at
`\\n`, `\\r\\n` and `\\r` only. Notifications arrive as plain JSON and are checked here, because a version that is
null or NaN is no reason to lose a document.
"""

from __future__ import annotations

import asyncio
import logging
import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hel_lsp.lsp.uris import same_document_key, uri_to_path
from hel_lsp.tools.lines import PositionEncoding, position_to_offset

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Document:
    """An open document; `uri` is the client's own spelling, `path` is resolved through symlinks.

    `path` is None for what is no local file (`untitled:`). `dirty` says that the text differs from the disk, as far
    as is known without looking again.
    """

    uri: str
    path: Path | None
    language_id: str
    version: int | None
    text: str
    dirty: bool


@dataclass(eq=False, slots=True)
class _Waiter:
    where: str | Path
    predicate: Callable[[str], bool]
    met: asyncio.Future[bool]


class Documents:
    """Open documents by URI or path; of two that show the same file, the one touched last."""

    def __init__(self) -> None:
        self.encoding: PositionEncoding = "utf-16"
        """The position encoding that was agreed on; matters only for ranged changes."""
        self._open: dict[str, Document] = {}
        self._waiters: list[_Waiter] = []

    def __iter__(self) -> Iterator[Document]:
        """The open documents, the one touched last at the end."""
        return iter(tuple(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    # ---------------------------------------------------------------- what the editor says

    def opened(self, params: Any) -> None:
        """`textDocument/didOpen`; a second one for the same document replaces the first."""
        item = _mapping(params, "textDocument")
        uri, text = item.get("uri"), item.get("text")
        if not isinstance(uri, str) or not isinstance(text, str):
            logger.warning("ignored a didOpen without uri or text")
            return
        path = _local_path(uri)
        document = Document(
            uri=uri,
            path=path,
            language_id=str(item.get("languageId") or ""),
            version=_version(item),
            text=text,
            dirty=bool(_differs_from_disk(path, text)),
        )
        self._touch(document)
        self._tell_waiters(document)

    def changed(self, params: Any) -> None:
        """`textDocument/didChange`; one for a document that is not open (any more) is ignored."""
        identifier = _mapping(params, "textDocument")
        document = self._named(identifier)
        changes = params.get("contentChanges") if document else None
        if document is None or not isinstance(changes, list):
            logger.warning("ignored a didChange of %r", identifier.get("uri"))
            return
        text = document.text
        for change in cast(list[Any], changes):
            text = self._after(text, change)
        document.version = _version(identifier)
        document.dirty = document.dirty or text != document.text
        document.text = text
        self._touch(document)
        self._tell_waiters(document)

    def saved(self, params: Any) -> None:
        """`textDocument/didSave`."""
        if document := self._named(_mapping(params, "textDocument")):
            document.dirty = False

    def closed(self, params: Any) -> None:
        """`textDocument/didClose`."""
        if document := self._named(_mapping(params, "textDocument")):
            del self._open[same_document_key(document.uri)]

    # ---------------------------------------------------------------- what the server asks

    def find(self, where: str | Path) -> Document | None:
        """The open document with this URI, in any spelling, or this path, through any symlink."""
        if isinstance(where, str):
            exact = self._open.get(same_document_key(where))
            path = None if exact else _local_path(where)
        else:
            exact, path = None, Path(os.path.realpath(where))
        return exact or (self._at(path) if path else None)

    def unsaved(self) -> list[Document]:
        """Documents whose text differs from the disk; those that may are compared with it again."""
        for document in self._open.values():
            if document.dirty:
                document.dirty = _differs_from_disk(document.path, document.text) is not False
        return [document for document in self._open.values() if document.dirty]

    async def wait_changed(self, where: str | Path, predicate: Callable[[str], bool], timeout: float) -> bool:
        """Wait until the document's text satisfies `predicate`, now or after a change; False after `timeout` seconds.

        The document need not be open yet: an editor may open it because of an edit.
        """
        document = self.find(where)
        if document is not None and predicate(document.text):
            return True
        waiter = _Waiter(where, predicate, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout):
                return await waiter.met
        except TimeoutError:
            return False
        finally:
            self._waiters.remove(waiter)

    # ---------------------------------------------------------------- inside

    def _named(self, identifier: Mapping[str, Any]) -> Document | None:
        # Not through symlinks: a late notification about a closed document must not reach another that shows its file.
        uri = identifier.get("uri")
        return self._open.get(same_document_key(uri)) if isinstance(uri, str) else None

    def _at(self, path: Path) -> Document | None:
        documents = [document for document in reversed(self._open.values()) if document.path]
        for document in documents:
            if document.path == path:
                return document
        # A file system may ignore case or Unicode normalisation; only it knows whether two names are one file.
        for document in documents:
            if document.path and _folded(document.path) == _folded(path) and _same_file(document.path, path):
                return document
        return None

    def _touch(self, document: Document) -> None:
        key = same_document_key(document.uri)
        self._open.pop(key, None)
        self._open[key] = document

    def _tell_waiters(self, document: Document) -> None:
        for waiter in self._waiters:
            if not waiter.met.done() and self.find(waiter.where) is document and waiter.predicate(document.text):
                waiter.met.set_result(True)

    def _after(self, text: str, change: Any) -> str:
        fields = cast(dict[str, Any], change) if isinstance(change, dict) else {}
        new, span = fields.get("text"), fields.get("range")
        if not isinstance(new, str):
            logger.warning("ignored a change without text")
            return text
        if span is None:
            return new
        try:
            start, end = (
                position_to_offset(text, span[edge]["line"], span[edge]["character"], self.encoding)
                for edge in ("start", "end")
            )
        except (KeyError, TypeError, ValueError) as error:
            logger.warning("ignored a change with a malformed range: %r", error)
            return text
        return text[:start] + new + text[max(start, end) :]


def _mapping(params: Any, key: str) -> Mapping[str, Any]:
    value = cast(dict[str, Any], params).get(key) if isinstance(params, dict) else None
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _version(item: Mapping[str, Any]) -> int | None:
    version = item.get("version")
    if isinstance(version, float) and version.is_integer():
        return int(version)
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def _local_path(uri: str) -> Path | None:
    path = uri_to_path(uri)
    if path is None or "\0" in path:
        return None
    return Path(os.path.realpath(path))


def _differs_from_disk(path: Path | None, text: str) -> bool | None:
    """Whether a save would change the file, line endings and BOM aside; None for a file that cannot be compared."""
    if path is None:
        return text != ""
    if not path.is_file():
        return None if path.exists() else True
    try:
        disk = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
    return disk != text and disk.replace("\r\n", "\n") != text.removeprefix("\ufeff").replace("\r\n", "\n")


def _folded(path: Path) -> str:
    return unicodedata.normalize("NFC", path.name).casefold()


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
