"""Text files on the disk: read without losing a byte, or refused; written in place.

Only strict UTF-8, with or without byte order mark, is text here. Decoded and encoded again it gives the same bytes, so
whether a file changed since it was read is decided by comparing its content, not its times.

A file is written in place, never replaced by a new one: its inode, hard links, owner, mode and extended attributes
stay, and what watches it goes on seeing it. That cannot be atomic, so the order keeps everything recoverable: the old
bytes are copied to a file beside it and synced; then the part that grows is written, which is where a full disk shows
before anything old is overwritten; then the rest; then the copy goes. A failure on the way puts the old bytes back; a
crash leaves the copy.
"""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from hel_lsp.errors import FileRefused, StaleDocument

MOST_BYTES = 64 * 2**20
"""A file larger than this is not read: it would be a log or a data set, and every step on it would be slow."""

_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_OPEN_IT = "Open it in the editor to have it read and edited there."


@dataclass(frozen=True, slots=True)
class TextFile:
    """What a file held: `text` with its line endings as they are and without the byte order mark."""

    text: str
    bom: bool = False

    def encoded(self) -> bytes:
        return (_BOM if self.bom else b"") + self.text.encode()


def read(path: Path) -> TextFile:
    """Read a whole file. Raises FileRefused for what is missing, not a regular file, or not strict UTF-8 text."""
    refuse_notebook(path)
    try:
        _refuse_special(path, path.stat())
        content = path.read_bytes()
    except OSError as error:
        raise FileRefused(_reason(path, error)) from error
    return _decoded(path, content)


def text_of(path: Path) -> str | None:
    """The text of a file; None where there is none that `read` would give."""
    try:
        return read(path).text
    except FileRefused:
        return None


def write(path: Path, before: TextFile, text: str) -> TextFile:
    """Replace the text of a file that was read as `before`, keeping its byte order mark.

    Raises StaleDocument when the file holds something else by now, FileRefused when it cannot be written; then it
    holds what it held, and where even that is uncertain the message names the copy.
    """
    after = TextFile(text, before.bom)
    old, new = before.encoded(), _encoded(path, after)
    try:
        _refuse_special(path, path.stat())
        # Unbuffered: after a failure a buffer would try to write its rest once more.
        with path.open("r+b", buffering=0) as file:
            if file.readall() != old:
                raise StaleDocument(f"{path.name} changed on the disk since it was read: read it again.")
            _replace(path, file, old, new)
    except FileNotFoundError as error:
        raise StaleDocument(f"{path.name} was deleted since it was read.") from error
    except OSError as error:
        raise FileRefused(_reason(path, error)) from error
    return after


def create(path: Path, text: str) -> TextFile:
    """Create a file, and the folders above it. Raises FileRefused when something is there, or it cannot be made."""
    after = TextFile(text)
    content = _encoded(path, after)
    refuse_notebook(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileRefused(f"The folder of {path.name} cannot be made: {error.strerror or error}.") from error
    try:
        file = path.open("xb")
    except FileExistsError as error:
        raise FileRefused(f"{path.name} cannot be created: there is something by that name already.") from error
    except OSError as error:
        raise FileRefused(_reason(path, error)) from error
    try:
        with file:
            file.write(content)
            _sync(file)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise FileRefused(_reason(path, error)) from error
    return after


# ------------------------------------------------------------------ reading


def refuse_notebook(path: Path) -> None:
    """Raise FileRefused for a notebook, by its name."""
    if path.suffix.lower() == ".ipynb":
        raise FileRefused(
            f"{path.name} is a notebook: edits of its JSON text would break it. Open or create it in the editor."
        )


def _refuse_special(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise FileRefused(f"{path.name} is a folder: list_files shows what is in it.")
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused(f"{path.name} is not a regular file (a device, pipe or socket).")
    if status.st_size > MOST_BYTES:
        raise FileRefused(
            f"{path.name} has {status.st_size / 2**20:.0f} MiB: more than {MOST_BYTES // 2**20} are not read."
        )


def _decoded(path: Path, content: bytes) -> TextFile:
    for mark, encoding in _OTHER_BOMS.items():
        if content.startswith(mark):
            raise FileRefused(f"{path.name} is {encoding}, not UTF-8. {_OPEN_IT}")
    if b"\0" in content:
        raise FileRefused(_nul_reason(path, content))
    bom = content.startswith(_BOM)
    try:
        return TextFile(content[len(_BOM) * bom :].decode("utf-8"), bom)
    except UnicodeDecodeError as error:
        offset = error.start + len(_BOM) * bom
        line = content.count(b"\n", 0, offset) + 1
        raise FileRefused(
            f"{path.name} is not UTF-8: byte 0x{content[offset]:02X} at offset {offset} (line {line}). {_OPEN_IT}"
        ) from None


def _nul_reason(path: Path, content: bytes) -> str:
    """In UTF-16 of mostly Latin text every second byte is NUL, and always the same of the two."""
    half = len(content) // 2
    even, odd = content[::2].count(0), content[1::2].count(0)
    if len(content) % 2 == 0 and max(even, odd) > 0.4 * half and min(even, odd) < 0.1 * half:
        return f"{path.name} looks like UTF-16 without a byte order mark. {_OPEN_IT}"
    return f"{path.name} is not a text file: it has a NUL byte at offset {content.index(0)}."


def _reason(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path.name} does not exist."
    return f"{path.name}: {error.strerror or error}."


# ------------------------------------------------------------------ writing


def _encoded(path: Path, file: TextFile) -> bytes:
    try:
        return file.encoded()
    except UnicodeEncodeError as error:
        character = ord(file.text[error.start])
        raise FileRefused(f"{path.name}: the text has half of a surrogate pair (U+{character:04X}).") from None


def _replace(path: Path, file: FileIO, old: bytes, new: bytes) -> None:
    copy = _copy_beside(path, old)
    try:
        _put(file, old, new)
    except OSError as error:
        try:
            _put(file, b"", old)
        except OSError:
            raise FileRefused(f"{_reason(path, error)} What it held is in {copy}.") from error
        copy.unlink()
        raise
    copy.unlink()


def _put(file: FileIO, old: bytes, new: bytes) -> None:
    """Make `new` the content of a file that has `old`: first what needs room on the disk."""
    _write_at(file, len(old), new[len(old) :])
    _write_at(file, 0, new[: len(old)])
    file.truncate(len(new))
    os.fsync(file.fileno())


def _write_at(file: FileIO, offset: int, content: bytes) -> None:
    file.seek(offset)
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _copy_beside(path: Path, content: bytes) -> Path:
    prefix, suffix = f".{path.name[:40]}.", ".before-edit"
    try:
        handle, name = tempfile.mkstemp(suffix, prefix, path.parent)
    except PermissionError:
        # The file may be written, its folder may not.
        handle, name = tempfile.mkstemp(suffix, prefix)
    copy = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            _sync(file)
    except OSError:
        copy.unlink()
        raise
    return copy


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
