"""What commands take from a terminal and print to it."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from hel_lsp.errors import ConfigError
from hel_lsp.jsonfile import parse_json, read_bytes
from hel_lsp.mcp.text import harmless
from hel_lsp.settings import Settings, parse


def workspace_folder(path: Path) -> Path:
    """The folder of `--workspace` under its real path. Raises ConfigError where there is none."""
    try:
        if path.is_dir():
            return path.resolve()
    except OSError as error:  # a current folder that was deleted has no path any more
        raise ConfigError(f"--workspace: {path} cannot be used: {error.strerror}.") from error
    raise ConfigError(f"--workspace: {path} is no folder.")


def settings_of(file: Path | None) -> Settings:
    """What the file of `--settings` says, in the shape in which an editor sends it. Raises ConfigError for any fault.

    Without one they are the defaults. A script gets no half of what it asked for.
    """
    if file is None:
        return Settings()
    data = read_bytes(file)
    if data is None:
        raise ConfigError(f"--settings: {file} does not exist.")
    settings, problems = parse([parse_json(file, data)])
    if problems:
        raise ConfigError(f"--settings: {file}: {' '.join(problems)}")
    return settings


def printable(text: str, stream: TextIO) -> str:
    """Text of a model, a server or a file with nothing in it that a terminal obeys or that `stream` cannot hold."""
    encoding = stream.encoding or "utf-8"
    return harmless(text).encode(encoding, "backslashreplace").decode(encoding)


def printable_line(text: str, stream: TextIO) -> str:
    """The same on one line, and without characters that turn round or hide what is beside them."""
    line = (character if character.isprintable() else " " for character in printable(text, stream))
    return "".join(line)
