"""Results too large for the conversation: the whole goes to a file, the model gets head, tail and where to read on."""

from __future__ import annotations

from pathlib import Path

from hel_lsp.ports import Workspace

LIMIT = 50_000
"""Bytes of a result that the model gets whole; about 12,500 tokens."""

SAID_OF_A_PART = 1_000
"""Bytes on top of that for a part of a text that is within the limit: what its tool and the hooks say of it."""

PART = 4_000
"""Characters of head and of tail."""


class Spill:
    """Keeps one session's large results in `folder`, which is made when the first one comes."""

    def __init__(self, folder: Path, workspace: Workspace) -> None:
        self._folder = folder
        self._workspace = workspace
        self._kept = 0

    def take_up(self) -> None:
        """Go on after the results that an earlier process kept for the same session."""
        for file in self._folder.glob("result-*.txt"):
            self._workspace.allow_reading(file)
            self._kept += 1

    def shorten(self, text: str, *, is_part: bool = False) -> str:
        """`text`, or a note with its head and tail and the path of the whole.

        Where the disk does not take it the rest is lost, and the note says so: the call itself has happened.
        `is_part` for the result of a tool that gives the rest when it is asked: a file would hold no more of it.
        """
        # As read_file takes it: a file with NUL or half a character in it is no text.
        data = text.encode("utf-8", "replace").replace(b"\0", b"?")
        if len(data) <= LIMIT + (SAID_OF_A_PART if is_part else 0):
            return text
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._folder / f"result-{self._kept + 1}.txt"
            file.touch(mode=0o600)
            file.write_bytes(data)
        except OSError as error:
            where = f"the rest could not be kept: {error.strerror}"
        else:
            self._kept += 1
            self._workspace.allow_reading(file)
            where = f"the whole is in {file}, to be read with read_file"
        return f"[{len(data)} bytes; {where}]\n{text[:PART]}\n[…]\n{text[-PART:]}"
