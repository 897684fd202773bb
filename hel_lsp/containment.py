"""Where a path that a model wrote may lead.

Everything is decided on real paths: the path and the roots have every link resolved, so neither `..` nor a link, broken
or not, leads out of a root. Names are compared as the most forgiving file system would (case, compatibility forms,
invisible characters, trailing dots), and folders also by identity, which catches short names and mounts. What is
decided holds for the path that is returned: use that one, not the one that was asked for.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from hel_lsp.errors import PathRefused

_HARNESS_FOLDER = ".hel"
_GIT_FOLDER = ".git"
_MOST_FILES = 10_000
"""Files under `.hel` that are compared with a hard link; it holds a handful."""

_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{port}{digit}" for port in ("com", "lpt") for digit in "123456789¹²³"
}


def resolve(
    path: str,
    roots: Sequence[Path],
    *,
    writing: bool,
    readable: Collection[Path] = (),
    closed: Collection[Path] = (),
) -> Path:
    """The real path that `path`, absolute or relative to the first root, names.

    `readable` are files outside the roots that may be read all the same, `closed` folders inside them that nothing
    may touch: what was trusted and granted is kept in one, and a home folder may be a workspace. `~` and variables
    are not expanded. Raises
    PathRefused for whatever leads out of the roots, into `.hel`, or, when writing, into git's own folder.
    """
    _refuse_malformed(path)
    if not writing and Path(path).is_absolute():
        real = _real(Path(path))
        if real in {_real(extra) for extra in readable}:
            return real
    if not roots:
        raise PathRefused("There is no workspace folder: open a folder in the editor, or ask from within a file.")
    real_roots = [_real(root) for root in roots]
    real = _inside(_real(real_roots[0] / path), real_roots)
    if real is None:
        raise PathRefused(f"{path} leads out of the workspace ({', '.join(map(str, roots))}).")
    if _names(real, _HARNESS_FOLDER) or _is_within(real, (root / _HARNESS_FOLDER for root in real_roots)):
        raise PathRefused(f"{path} is in {_HARNESS_FOLDER}, which tools may neither read nor write.")
    if _is_hard_link_into(real, [root / _HARNESS_FOLDER for root in real_roots]):
        raise PathRefused(f"{path} is the same file as one in {_HARNESS_FOLDER}, which tools may not touch.")
    if _is_within(real, closed):
        raise PathRefused(f"{path} is in the folder that keeps what was trusted, which tools may not touch.")
    if writing and (_names(real, _GIT_FOLDER) or _is_within(real, _git_folders(real_roots))):
        raise PathRefused(f"{path} belongs to git's own folder, which tools may not write: use git for that.")
    return real


def open_to_tools(files: Iterable[Path], roots: Sequence[Path], *, closed: Collection[Path] = ()) -> Iterator[Path]:
    """Those of `files` that `resolve` would let be read, of many that a walk through a root has found.

    They are real paths, for such a walk follows no links. Each of their folders is looked at once.
    """
    harness = [_real(root) / _HARNESS_FOLDER for root in roots]
    is_closed: dict[Path, bool] = {}
    for file in files:
        folder = file.parent
        if folder not in is_closed:
            is_closed[folder] = _names(folder, _HARNESS_FOLDER) or _is_within(folder, (*harness, *closed))
        if not is_closed[folder] and _forgiving(file.name) != _HARNESS_FOLDER and not _is_hard_link_into(file, harness):
            yield file


def _refuse_malformed(path: str) -> None:
    if not path:
        raise PathRefused("The path is empty.")
    if "\0" in path:
        raise PathRefused("The path has a NUL character.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise PathRefused("The path has characters that no file name has.") from None
    if path.lower().startswith("file://"):
        raise PathRefused(f"{path} is a URI: give the path itself.")
    if os.name == "nt" and (oddity := windows_oddity(path)):
        raise PathRefused(f"{path} {oddity}.")


def windows_oddity(path: str) -> str | None:
    """What Windows would take for something else than the file of that name, in words."""
    names = path.replace("\\", "/").split("/")
    drive, *rest = names
    if ":" in drive[2:] or (drive[1:2] == ":" and not drive[0].isalpha()) or any(":" in name for name in rest):
        return "has a colon, which names an alternate stream"
    for name in names:
        if name.strip(".") and name != name.rstrip(". "):
            return "has a name that ends in a dot or space, which Windows drops"
        if name.split(".")[0].rstrip().lower() in _DEVICES:
            return "has the name of a device"
    return None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _inside(real: Path, roots: Sequence[Path]) -> Path | None:
    """The path spelled below its root, None when it is in none of them."""
    for root in roots:
        if real.is_relative_to(root):
            return real
    for root in roots:
        # The same folder in another spelling: a file system that ignores case, a second mount.
        for parent in (real, *real.parents):
            if _same_file(parent, root):
                return root / real.relative_to(parent)
    return None


def _names(real: Path, closed: str) -> bool:
    return any(_forgiving(name) == closed for name in real.parts)


def _forgiving(name: str) -> str:
    """The name as the file systems that fold most of it would compare it."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in folded if unicodedata.category(char) != "Cf").rstrip(". ")


def _is_within(real: Path, folders: Iterable[Path]) -> bool:
    """Whether the path is one of the folders or below it, by identity."""
    return any(_same_file(parent, folder) for folder in folders for parent in (real, *real.parents))


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _is_hard_link_into(real: Path, folders: Sequence[Path]) -> bool:
    try:
        status = real.lstat()
    except OSError:
        return False
    if status.st_nlink < 2 or real.is_dir():
        return False
    return any(_same_file(real, file) for folder in folders for file in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            count += 1
            if count > _MOST_FILES:
                return
            yield Path(parent, name)


def _git_folders(roots: Sequence[Path]) -> Iterator[Path]:
    """Each root's `.git`, and where it is a file (a worktree, a submodule), the folders that it leads to.

    A worktree may lie within the repository's folder; that one is then no reason to close the worktree.
    """
    for root in roots:
        git = root / _GIT_FOLDER
        yield git
        if not (named := _first_line(git)).startswith("gitdir:"):
            continue
        folder = _real(root / named.removeprefix("gitdir:").strip())
        common = _real(folder / (_first_line(folder / "commondir") or "."))
        yield from (closed for closed in (folder, common) if not root.is_relative_to(closed))


def _first_line(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").partition("\n")[0].strip()
    except OSError:
        return ""
