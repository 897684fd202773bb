"""The run log: one JSON-lines file a session, each line carrying the hash of the line before it."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hel_lsp.redaction import Redaction, secret_values

logger = logging.getLogger(__name__)


class JsonLinesLog:
    """Appends to `path`, which is made with mode 0600 at the first entry, or goes on with one that is there.

    A log that cannot be written is reported once and never stops the work. Secrets do not get in: what looks like one,
    and what the environment variables `secret` hold.
    """

    def __init__(self, path: Path, secret: Collection[str] = ()) -> None:
        self.path = path
        self.newest = ""
        self._redaction = Redaction(secret_values(os.environ, secret))
        self._opened = False
        self._broken = False

    def write(self, kind: str, **fields: Any) -> None:
        try:
            if not self._opened:
                self._open()
            fields = self._redaction.of(fields)
            entry = {"time": round(time.time(), 3), "kind": kind, **fields, "previous": self.newest}
            line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass")
            with self.path.open("ab") as file:
                file.write(line + b"\n")
        except OSError as error:
            self._report(error)
            return
        self.newest = digest(line)

    def sync(self) -> None:
        """Return when everything is on the disk."""
        if not self._opened:
            return
        try:
            with self.path.open("ab") as file:
                os.fsync(file.fileno())
        except OSError as error:
            self._report(error)

    def _open(self) -> None:
        """Make the file, or take up the chain where a log of an earlier process ends.

        A last line that was never finished is dropped: nothing can follow it.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.touch(mode=0o600)
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.truncate(self.path, len(whole))
        if whole:
            self.newest = digest(whole[:-1].rpartition(b"\n")[2])
        self._opened = True

    def _report(self, error: OSError) -> None:
        if not self._broken:
            logger.error("The run log %s cannot be written: %s", self.path, error.strerror)
        self._broken = True


@dataclass(frozen=True, slots=True)
class FollowingLog:
    """A log for what outlives a session: each entry goes into the one that `log` names at that time."""

    log: Callable[[], JsonLinesLog]

    def write(self, kind: str, **fields: Any) -> None:
        self.log().write(kind, **fields)


def digest(line: bytes) -> str:
    """The hash of a line, without its end, as the next one carries it."""
    return hashlib.sha256(line).hexdigest()


# ------------------------------------------------------------------ whether a log is whole


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a log; `unsealed` counts the lines after the last end of a turn that its session noted."""

    lines: int
    problems: tuple[str, ...]
    unsealed: int


def verify(log: bytes, seals: Sequence[tuple[int, str]]) -> Verdict:
    """Whether any line was changed, removed or cut off; `seals` are the hashes that the ends of turns noted.

    Finds damage and careless edits: whoever can write both files can make them fit each other again.
    """
    lines = log.split(b"\n")
    rest = lines.pop()
    problems: list[str] = []
    expected = ""
    places = {"": 0}
    for number, line in enumerate(lines, 1):
        previous = _previous(line)
        if previous is None:
            problems.append(f"line {number} is no entry of a log: it was changed or damaged")
        elif previous != expected:
            problems.append(_broken(number))
        expected = digest(line)
        places[expected] = number
    if rest:
        problems.append(f"line {len(lines) + 1} was never finished, or its end was cut off")
    sealed = 0
    for turn, seal in seals:
        number = places.get(seal)
        if number is None:
            problems.append(f"the line that ended turn {turn} is not there: it was changed, removed or cut off")
        elif number < sealed:
            problems.append(f"the line that ended turn {turn} is not in its place")
        else:
            sealed = number
    return Verdict(len(lines), tuple(problems), len(lines) - sealed)


def _previous(line: bytes) -> str | None:
    try:
        entry: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    previous = cast("dict[str, object]", entry).get("previous") if isinstance(entry, dict) else None
    return previous if isinstance(previous, str) else None


def _broken(number: int) -> str:
    if number == 1:
        return "before line 1, lines were removed, or line 1 was changed"
    return f"line {number} does not follow line {number - 1}: that one was changed, or lines between them removed"
