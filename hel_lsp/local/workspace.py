"""The workspace without an editor: files on the disk, written with the same care as an editor's buffers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakValueDictionary

from hel_lsp import containment, textfile
from hel_lsp.errors import StaleDocument
from hel_lsp.messages import EditOutcome, EditReport
from hel_lsp.ports import DocumentText, MakeEdit
from hel_lsp.tools import edit as engine


@dataclass(eq=False)
class FileWorkspace:
    """Implements the Workspace port on the folder `root`, a real path."""

    root: Path
    closed: Sequence[Path] = ()
    _readable: set[Path] = field(default_factory=set[Path])
    _locks: WeakValueDictionary[Path, asyncio.Lock] = field(default_factory=WeakValueDictionary[Path, asyncio.Lock])

    @property
    def roots(self) -> Sequence[Path]:
        return [self.root]

    def at(self, roots: Sequence[Path]) -> FileWorkspace:
        return self

    def resolve(self, path: str, *, writing: bool = False) -> Path:
        return containment.resolve(path, self.roots, writing=writing, readable=self._readable, closed=self.closed)

    def display(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def uri(self, path: Path) -> str:
        return path.as_uri()

    def open_to_tools(self, files: Iterable[Path]) -> Iterable[Path]:
        return containment.open_to_tools(files, self.roots, closed=self.closed)

    def allow_reading(self, path: Path) -> None:
        self._readable.add(path)

    async def read(self, path: Path) -> DocumentText:
        return DocumentText(path, path.as_uri(), textfile.read(path).text)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def newest(self, path: Path) -> str | None:
        return textfile.text_of(path)

    def open_documents(self) -> Sequence[DocumentText]:
        return ()

    async def edit(self, path: Path, make: MakeEdit) -> EditOutcome:
        """Write an edit of the text that the file has now; made once more where another program was faster."""
        lock = self._locks.setdefault(path, asyncio.Lock())
        async with lock:
            try:
                return _write(path, make)
            except StaleDocument:
                return _write(path, make)


def _write(path: Path, make: MakeEdit) -> EditOutcome:
    file = textfile.read(path) if path.exists() else None
    edit = make(file.text if file is not None else None)
    if file is None:
        textfile.create(edit.path, edit.after)
    else:
        textfile.write(edit.path, file, edit.after)
    added, removed = engine.added_and_removed(edit)
    return EditOutcome(EditReport(edit.path.as_uri(), True, added, removed), edit, edit.after)
