"""What differs between Linux, macOS and Windows: how child processes are found, grouped, ended and outlived; file
locks; names of environment variables; what was typed at a terminal.

A child is started with `spawn_options()`, put into a `ProcessGroup` at once, and ended through that group, so that
what it started in turn ends too. POSIX has process groups; Windows has job objects.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

GRACE = 2.0
"""Seconds between asking a process group to end and ending it."""

_POLL = 0.03  # the end of a group is not announced to anyone but its members' parents

# Sets the signal that Linux sends when the parent dies, then becomes the real command. As a program of its own and
# not as a `preexec_fn`: running Python between fork and exec is not safe once there are threads. The parent is
# compared because it may have died before the signal was set. LC_CTYPE is what Python adds when the locale is C.
_TIED = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
parent, keep, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
if os.getppid() != int(parent): sys.exit(1)
if keep != "keep": os.environ.pop("LC_CTYPE", None)
try: os.execvp(argv[0], argv)
except OSError as error: sys.exit(f"{argv[0]}: {error.strerror}")
"""


def spawn_options() -> dict[str, Any]:
    """Keyword arguments that start a child as the leader of a group of its own, without a console window."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def tied_to_parent(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command that runs `argv` and is killed when this process dies; `argv` itself where there is no such thing.

    The tie is to the thread that starts the child. On Windows the group's job object does the same.
    """
    if sys.platform != "linux":
        return list(argv)
    keep = "keep" if "LC_CTYPE" in environment else "drop"
    return [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), keep, *argv]


INHERITED = (
    (
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    )
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)
"""Environment variables that any program may see: no keys, no tokens."""


def safe_environment() -> dict[str, str]:
    """This process's INHERITED variables, less exported shell functions."""
    return {name: os.environ[name] for name in INHERITED if not os.environ.get(name, "()").startswith("()")}


def is_variable_among(name: str, names: Collection[str]) -> bool:
    """Whether an environment variable is one of `names`. Windows ignores case, in the way of `os.environ`."""
    if sys.platform == "win32":
        return name.upper() in {other.upper() for other in names}
    return name in names


def environment_without(names: Collection[str]) -> dict[str, str]:
    """This process's variables, less those."""
    return {name: value for name, value in os.environ.items() if not is_variable_among(name, names)}


def find_command(command: str, environment: Mapping[str, str], folder: Path) -> str | None:
    """The executable that `command` names when it is run in `folder`; None when there is none.

    On Windows this also finds what a shell would (`npx` is `npx.cmd`).
    """
    if Path(command).name != command:
        return shutil.which(str(folder / command))
    return find_program(command, environment.get("PATH", os.defpath))


def lock(descriptor: int) -> bool:
    """Lock the open file for this process, until it is closed; False when another one has it locked.

    The system lets go of a lock when its process ends, however that happens. Raises OSError where a file system has
    no locks.
    """
    if sys.platform == "win32":
        import msvcrt  # exists only there

        # Other processes may not even read what is locked, so that is a byte which the file will never have.
        os.lseek(descriptor, 1 << 40, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
    import fcntl  # exists everywhere but there

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def forget_typed(terminal: int) -> None:
    """Drop what was typed at the terminal and nobody has read yet, an unfinished line too."""
    if sys.platform == "win32":
        import msvcrt  # exists only there

        while msvcrt.kbhit():
            msvcrt.getwch()
        return
    import termios  # exists everywhere but there

    with contextlib.suppress(termios.error):  # the terminal is gone
        termios.tcflush(terminal, termios.TCIFLUSH)


def find_program(name: str, path: str | None = None) -> str | None:
    """The program on `path`, by default the PATH; None where there is none.

    As `shutil.which`, except that on Windows the current folder is not looked into first: it may be a repository.
    """
    path = os.environ.get("PATH", os.defpath) if path is None else path
    if sys.platform != "win32":
        return shutil.which(name, path=path)
    endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";")
    names = [name] if name.upper().endswith(tuple(map(str.upper, endings))) else [name + ending for ending in endings]
    files = (Path(folder, file) for folder in path.split(os.pathsep) for file in names)
    return next((str(file) for file in files if file.is_absolute() and file.is_file()), None)


def find_shell() -> str | None:
    """A POSIX shell, bash where there is one; on Windows that of Git, which is on the PATH or is not used."""
    return find_program("bash") or find_program("sh")


class ProcessGroup(Protocol):
    """A child and everything that it started."""

    def alive(self) -> bool: ...

    def trace(self) -> None:
        """Note who belongs to it now: a descendant whose parent has ended can no longer be traced."""
        ...

    def terminate(self) -> None:
        """Ask every member to end (on Windows: end it)."""
        ...

    def kill(self) -> None: ...

    def close(self) -> None:
        """Forget the group."""
        ...


def process_group(pid: int) -> ProcessGroup:
    """The group led by the child `pid`, which has just been started with `spawn_options()`."""
    if sys.platform == "win32":
        from hel_lsp.windows_job import JobObject  # ctypes' Windows half exists only there

        return JobObject(pid)
    return _PosixGroup(pid)


async def end_group(group: ProcessGroup, *, grace: float = GRACE) -> None:
    """End every member: ask, wait up to `grace` seconds, kill. Returns when none is left, or 1 s after the kill."""
    group.terminate()
    if not await _gone(group, grace):
        group.kill()
        await _gone(group, 1.0)
    group.close()


async def _gone(group: ProcessGroup, seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while group.alive():
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_POLL)
    return True


class _PosixGroup:
    """The session led by `leader`, and on Linux those of its descendants that moved to another one.

    The group outlives its leader: its number stays taken as long as it has members.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._strays: set[int] = set()

    def alive(self) -> bool:
        return _exists(-self._leader) or any(_exists(pid) for pid in self._strays)

    def trace(self) -> None:
        self._strays.update(pid for pid, group in _descendants(self._leader).items() if group != self._leader)

    def terminate(self) -> None:
        self.trace()
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def close(self) -> None:
        self._strays.clear()

    def _send(self, number: signal.Signals) -> None:
        for target in (-self._leader, *self._strays):
            # It may be gone, or have become another user's.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(target, number)


def _exists(target: int) -> bool:
    """Whether a process (or, negative, a process group) has anything left that runs.

    A dead process that nobody has waited for still takes signals. In a container whose first process waits for
    nobody it does so for ever, so on Linux its state is looked up.
    """
    try:
        os.kill(target, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's, or a dead one on macOS
    if sys.platform != "linux":
        return True
    members = [target] if target > 0 else [pid for pid, fields in _processes() if int(fields[2]) == -target]
    return any(_stat(pid)[:1] not in ([], ["Z"]) for pid in members)


def _stat(pid: int) -> list[str]:
    """The fields of `/proc/PID/stat` from the state on: state, parent, group; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Every process with its fields; nothing where there is no `/proc`."""
    if sys.platform == "linux":
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and len(fields := _stat(int(entry.name))) > 2:
                yield int(entry.name), fields


def _descendants(root: int) -> dict[int, int]:
    """Every process below `root`, with its group."""
    children: dict[int, list[int]] = {}
    groups: dict[int, int] = {}
    for pid, fields in _processes():
        children.setdefault(int(fields[1]), []).append(pid)
        groups[pid] = int(fields[2])
    found: dict[int, int] = {}
    waiting = [root]
    while waiting:
        fresh = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update((pid, groups[pid]) for pid in fresh)
        waiting.extend(fresh)
    return found
