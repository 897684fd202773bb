"""The JSON files of a project, read so that a fault in one names its place."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from hel_lsp.errors import ConfigError

LIMIT = 4 << 20
"""Bytes of a project file that are read."""


def read_bytes(path: Path) -> bytes | None:
    """The file's bytes, None where there is no such file. Raises ConfigError.

    A link to a device, or a file without end, is a fault of the project and must not take the memory.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path} is not a regular file.")
        with path.open("rb") as file:
            data = file.read(LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > LIMIT:
        raise ConfigError(f"{path} is larger than {LIMIT >> 20} MiB, which no file of this kind is.")
    return data


def parse_json(path: Path, data: bytes) -> object:
    """The value that `data`, the bytes of `path`, stands for. Raises ConfigError naming line and column."""
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
        raise ConfigError(f"{path}, line {line}, column {column}: not UTF-8.") from error
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}, line 1, column 1: {error}.") from error


def place(path: Path, data: bytes, words: str) -> str:
    """Where the JSON string `words` stands in the file: `path, line L, column C`; its beginning when it is not found.

    A string may be escaped in more than one way, and then it is not found.
    """
    text = data.decode("utf-8-sig", "replace")
    spellings = (json.dumps(words), json.dumps(words, ensure_ascii=False))
    at = max((text.find(spelling) for spelling in spellings), default=-1)
    before = text[: max(at, 0)]
    return f"{path}, line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"
