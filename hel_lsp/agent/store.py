"""Sessions on the disk: one append-only file of JSON lines each, below a folder for their workspace.

An entry is a line, written in one go as things happen, so what a crash costs is at most the line that was being
written; a turn's end is synced before anyone hears of it. A file belongs to the process that has it locked.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from hel_lsp import platforms
from hel_lsp.errors import CommandError, ConfigError
from hel_lsp.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from hel_lsp.state import private_folder

UNKNOWN_RESULT = (
    "hel-lsp was stopped before it noted a result. The call may or may not have taken effect: look before you "
    "repeat it."
)

STOPPED = "[The turn ended here: hel-lsp was stopped.]"

_TAIL = 1 << 16
"""Bytes at a file's end in which the end of its last turn is looked for first."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as a list shows it. `prompt` is the first one, `updated` is seconds since the epoch."""

    id: str
    prompt: str
    updated: float
    turns: int


@dataclass(slots=True)
class Conversation:
    """What a session's file holds. `notes` tells what had to be mended, `skills` which bodies were loaded."""

    history: list[Message] = field(default_factory=list[Message])
    skills: list[str] = field(default_factory=list[str])
    turns: int = 0
    notes: list[str] = field(default_factory=list[str])


class SessionStore:
    """The sessions of every workspace, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, name: str, root: Path | None) -> SessionFile:
        """A new file, locked. Raises ConfigError when it cannot be written."""
        path = private_folder(self._of(root)) / f"{name}.jsonl"
        file = SessionFile(path)
        file.append("session", session=name, root=str(root) if root is not None else None)
        return file

    def open(self, name: str, root: Path | None) -> tuple[SessionFile, Conversation]:
        """An existing session, locked and mended, and what it holds. Raises CommandError, ConfigError."""
        file = SessionFile(self._of(root) / f"{name}.jsonl")
        try:
            return file, _restored(file)
        except ConfigError:
            file.close()
            raise

    def holder(self, name: str, roots: Sequence[Path | None]) -> Path | None:
        """Which of the workspace folders `roots` the session belongs to. Raises CommandError."""
        for root in roots:
            if Path(name).name == name and (self._of(root) / f"{name}.jsonl").is_file():
                return root
        raise CommandError(f"session: there is no session {name!r} in this workspace.")

    def sessions(self, roots: Sequence[Path | None]) -> list[StoredSession]:
        """Those of the workspace folders `roots` that have a turn, newest first."""
        files = [file for root in dict.fromkeys(roots) for file in self._of(root).glob("*.jsonl")]
        found = [session for file in files if (session := _summary(file)) is not None]
        return sorted(found, key=lambda session: (session.updated, session.id), reverse=True)

    def _of(self, root: Path | None) -> Path:
        return self._folder / hashlib.sha256(str(root or "").encode("utf-8", "surrogatepass")).hexdigest()[:16]


class SessionFile:
    """One session's file, open and locked until `close`. Raises CommandError where another process has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY, 0o600), "r+b", 0)
            locked = platforms.lock(self._file.fileno())
        except OSError as error:
            raise ConfigError(f"{path} cannot be opened: {error.strerror}.") from error
        if not locked:
            self._file.close()
            raise CommandError(f"session: {path.stem} is in use in another editor. Close it there first.")

    def append(self, kind: str, **fields: Any) -> None:
        """Write one entry. Raises ConfigError."""
        entry = {"kind": kind, "time": round(time.time(), 3), **fields}
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        try:
            while line:
                line = line[self._file.write(line) :]
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}.") from error

    def sync(self) -> None:
        """Return when everything is on the disk. Raises ConfigError."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}.") from error

    def read(self) -> bytes:
        self._file.seek(0)
        return self._file.readall()

    def cut(self, size: int) -> None:
        """Drop what comes after the first `size` bytes."""
        self._file.truncate(size)

    def close(self) -> None:
        """Give the file up; another process may have it from now on."""
        self._file.close()


_BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn every \n into \r\n


# ------------------------------------------------------------------ messages as JSON


def to_json(message: Message) -> dict[str, Any]:
    """All of a message but what it loaded: a resume starts with nothing loaded."""
    role = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool", SystemMessage: "system"}
    return {
        "role": role[type(message)],
        **{key: value for key, value in asdict(message).items() if value and key != "loaded"},
    }


def from_json(fields: dict[str, Any]) -> Message:
    """The message that `to_json` wrote. Raises ValueError, KeyError, TypeError for anything else."""
    rest = {key: value for key, value in fields.items() if key != "role"}
    match fields["role"]:
        case "user":
            return UserMessage(**{"text": "", **rest})
        case "assistant":
            calls = tuple(ToolCall(**call) for call in rest.pop("tool_calls", ()))
            return AssistantMessage(**{"text": "", **rest}, tool_calls=calls)
        case "tool":
            return ToolMessage(rest["call_id"], rest.get("text", ""))
        case other:
            raise ValueError(f"no message has the role {other!r}")


# ------------------------------------------------------------------ reading


def entries(data: bytes) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Each line's offset and its entry; None for one that is none."""
    offset = 0
    for line in data.split(b"\n"):
        if line:
            yield offset, _entry(line) if offset + len(line) < len(data) else None
        offset += len(line) + 1


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry: object = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", entry) if isinstance(entry, dict) and "kind" in entry else None


def seals(file: Path) -> list[tuple[int, str]]:
    """Each ended turn with the hash of the run log's newest line at that time. Raises OSError."""
    ends = [entry for _, entry in entries(file.read_bytes()) if entry is not None and entry["kind"] == "end"]
    return [(int(entry["turn"]), str(entry["log"])) for entry in ends if "log" in entry]


def _restored(file: SessionFile) -> Conversation:
    """What the file holds, up to a last line that was never finished, which is dropped.

    Ends the turn that was running when its process died.
    """
    conversation = Conversation()
    data = file.read()
    lines = list(entries(data))
    if lines and lines[-1][1] is None:
        offset, _ = lines.pop()
        file.cut(offset)
        conversation.notes.append("The last line of the session's file was never finished, and was dropped.")
    ended = 0
    for number, (_, entry) in enumerate(lines, 1):
        try:
            _take(conversation, entry or {})
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{file.path}, line {number}, column 1: this is no entry of a session.") from error
        if entry is not None and entry["kind"] == "end":
            ended = conversation.turns
    if ended < conversation.turns:
        conversation.notes.append(f"hel-lsp was stopped in the middle of turn {conversation.turns}.")
        for message in closing(conversation.history):
            file.append("message", message=to_json(message))
            conversation.history.append(message)
        file.append("end", turn=conversation.turns, stop="error")
    return conversation


def _take(conversation: Conversation, entry: dict[str, Any]) -> None:
    match entry["kind"]:
        case "turn":
            conversation.turns = int(entry["turn"])
        case "message":
            conversation.history.append(from_json(entry["message"]))
        case "compacted":
            conversation.history[:] = [from_json(message) for message in entry["messages"]]
        case "skill":
            name = str(entry["name"])
            conversation.skills = [*(other for other in conversation.skills if other != name), name]
        case _:
            pass


def closing(history: Sequence[Message]) -> list[Message]:
    """What a history that broke off lacks: a result for each call, and the assistant's word at its end."""
    # Only what follows the last reply counts: providers use the same ids for calls again and again.
    answered: set[str] = set()
    calls: tuple[ToolCall, ...] = ()
    for message in reversed(history):
        if isinstance(message, AssistantMessage):
            calls = message.tool_calls
            break
        if isinstance(message, ToolMessage):
            answered.add(message.call_id)
    missing: list[Message] = [ToolMessage(call.id, UNKNOWN_RESULT) for call in calls if call.id not in answered]
    if history and (missing or not isinstance(history[-1], AssistantMessage)):
        missing.append(AssistantMessage(STOPPED))
    return missing


def _summary(file: Path) -> StoredSession | None:
    """The first prompt from the file's head, the newest turn from its tail: the size of the file does not matter."""
    try:
        with file.open("rb") as stream:
            head = [_entry(stream.readline()), _entry(stream.readline())]
            size = stream.seek(0, os.SEEK_END)
            start = max(0, size - _TAIL)
            stream.seek(start)
            last = _newest_turn(stream.read())
            if last is None and start:
                stream.seek(0)
                last = _newest_turn(stream.read())
    except OSError:
        return None
    first = head[1]
    if head[0] is None or first is None or last is None:
        return None
    return StoredSession(file.stem, str(first.get("prompt", "")), float(last["time"]), int(last["turn"]))


def _newest_turn(data: bytes) -> dict[str, Any] | None:
    for line in reversed(data.split(b"\n")):
        entry = _entry(line)
        if entry is not None and entry["kind"] in ("turn", "end"):
            return entry
    return None
