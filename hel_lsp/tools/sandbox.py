"""The sandbox of `bash`: bubblewrap, where it is installed and can run.

A command in it may write to the workspace and to a `/tmp` that the commands of its session share, and nobody else. The
rest of the system is read-only. Not there for it: keys, tokens and browser profiles in the home folder, the state
folder, `.hel`, other processes, and the sockets in `/run` and `/tmp`, since whoever reaches a container daemon, a
terminal multiplexer or an editor through one runs commands outside. Git's hooks and configuration are read-only, since
the next `git status` outside would run what they name.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hel_lsp import processes

PROBE_TIME = 10.0
"""Seconds that the trial run gets."""

CREDENTIALS = (
    ".1password",
    ".aws",
    ".azure",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".codex",
    ".composer/auth.json",
    ".config/BraveSoftware",
    ".config/Bitwarden CLI",
    ".config/chromium",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/github-copilot",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/heroku",
    ".config/hub",
    ".config/microsoft-edge",
    ".config/op",
    ".config/opera",
    ".config/pypoetry/auth.toml",
    ".config/rclone",
    ".config/sops",
    ".config/vivaldi",
    ".docker",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".kube",
    ".local/share/keyrings",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".mozilla",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".oci",
    ".password-store",
    ".pgpass",
    ".pki",
    ".pypirc",
    ".s3cfg",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".thunderbird",
    ".var/app",
    ".vault-token",
    ".yarnrc.yml",
    "snap/chromium",
    "snap/firefox",
)
"""What in the home folder holds keys, tokens or logins: files and folders, where they exist."""

GIT_RUNS = ("hooks", "config", "modules")
"""What in a repository's `.git` names programs that git runs."""

SYSTEM_RUN = (
    "/run/current-system",
    "/run/opengl-driver",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/systemd/resolve",
)
"""Parts of `/run` without which names are not resolved, or programs not found."""


class Sandbox:
    """Runs commands with `roots` writable and the state folder `state` hidden; what is left in `/tmp` ends with it."""

    def __init__(self, roots: Iterable[Path], state: Path, *, network: bool) -> None:
        self.network = network
        self._roots = sorted({_real(root) for root in roots})
        self._state = _real(state)
        self._trouble: str | None = None
        self._temporary: Path | None = None

    async def trouble(self, folder: Path, shell: str, environment: Mapping[str, str]) -> str:
        """Why commands cannot run in it, in words; empty when they can. Found out once, by running one."""
        if self._trouble is None:
            self._trouble = await self._tried(folder, shell, environment)
        return self._trouble

    async def _tried(self, folder: Path, shell: str, environment: Mapping[str, str]) -> str:
        if sys.platform != "linux" or shutil.which("bwrap") is None:
            return "bubblewrap is not installed"
        # Writing is tried too: as root in a container, another user's files are out of reach in a sandbox.
        try:
            trial = self.wrap([shell, "-c", "test -w ."], folder)
            finished = await processes.run(trial, folder=folder, environment=environment, timeout=PROBE_TIME)
        except OSError as error:
            return f"bubblewrap cannot run here ({error.strerror})"
        if finished.code == 0:
            return ""
        said = finished.stderr.text().strip().split("\n")[-1]
        return f"bubblewrap cannot run here ({said or 'the workspace is not writable in it'})"

    def wrap(self, argv: Sequence[str], folder: Path) -> list[str]:
        """The command that runs `argv` in `folder`, in the sandbox. Raises OSError where there can be no `/tmp`."""
        return [
            "bwrap",
            *("--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try"),
            *(() if self.network else ("--unshare-net",)),
            *("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *self._mounts(),
            # The real cache is read-only, which many tools take for an error.
            *("--setenv", "TMPDIR", "/tmp", "--setenv", "XDG_CACHE_HOME", "/tmp/.cache"),
            *("--chdir", str(_real(folder)), "--", *argv),
        ]

    @contextmanager
    def harness_closed(self) -> Generator[None]:
        """Have a `.hel` in each root while a command runs, and a folder for hooks in its `.git`.

        What is not there cannot be hidden or be read-only, but could be made.
        """
        made: list[Path] = []
        for folder in (root / name for root in self._roots for name in (".hel", ".git/hooks")):
            with suppress(OSError):  # it is there, or nobody can make it, or there is no repository
                folder.mkdir()
                made.append(folder)
        try:
            yield
        finally:
            for folder in made:
                with suppress(OSError):  # the user has put something into it meanwhile
                    folder.rmdir()

    def _mounts(self) -> Iterator[str]:
        yield from ("--tmpfs", "/run", "--bind", str(self._temporary_folder()), "/tmp")
        for path in SYSTEM_RUN:
            yield from ("--ro-bind-try", path, path)
        for root in self._roots:
            if root.is_relative_to("/tmp") and root != Path("/tmp"):
                # What surrounds a workspace is as readable here as anywhere else.
                surroundings = str(Path("/tmp", root.relative_to("/tmp").parts[0]))
                yield from ("--ro-bind", surroundings, surroundings)
        hidden = sorted(self._hidden())
        around = [path for path in hidden if any(root.is_relative_to(path) for root in self._roots)]
        yield from _masks(around)
        for root in self._roots:
            yield from ("--bind", str(root), str(root))
        for path in (root / ".git" / name for root in self._roots for name in GIT_RUNS):
            if path.exists():
                yield from ("--ro-bind", str(path), str(path))
        yield from _masks([path for path in hidden if path not in around])
        # At the end: until then mount points are made in them.
        for path in (Path("/run"), *hidden):
            if path.is_dir():
                yield from ("--remount-ro", str(path))

    def _temporary_folder(self) -> Path:
        """What is `/tmp` there, removed with this object; made anew where a cleaner of old files has taken it."""
        if self._temporary is None or not self._temporary.is_dir():
            self._temporary = Path(tempfile.mkdtemp(prefix="hel-lsp-"))
            weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
        return self._temporary

    def _hidden(self) -> set[Path]:
        """Real paths, so that a link cannot lead past the mask."""
        home = Path.home()
        named = [home / name for name in CREDENTIALS]
        named += [self._state, *(root / ".hel" for root in self._roots)]
        if agent := os.environ.get("SSH_AUTH_SOCK"):
            named.append(Path(agent))
        return {_real(path) for path in named if _is_there(path)}


def _masks(paths: Sequence[Path]) -> Iterator[str]:
    """An empty folder over each folder, nothing over each file."""
    for path in paths:
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--dev-bind", "/dev/null", str(path))


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:
        return False  # also where it cannot be looked at: then nothing that runs as the same user can
    return True


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
