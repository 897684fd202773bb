"""Commands that are asked about even with access `auto`: the one list of them.

A seat belt and no wall: it sees what a command plainly says, also behind `env`, `xargs`, `sh -c` and substitutions, and
not what a script that it starts would do. What it cannot read it takes for the worst. The wall is the sandbox.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

Words = Sequence[str]

_SUPERUSER = frozenset({"doas", "pkexec", "run0", "su", "sudo"})
_REMOVERS = frozenset({"rm", "rmdir", "shred", "unlink"})
_DOWNLOADERS = frozenset({"aria2c", "curl", "fetch", "http", "https", "wget", "xh"})
_SHELLS = frozenset({"ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"})
_INTERPRETERS = _SHELLS | {"bun", "deno", "node", "perl", "php", "python", "ruby"}

# Words in front of a command that leave it the command.
_PREFIXES = frozenset(
    {"!", "{", "builtin", "command", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "time", "timeout"}
    | {"do", "elif", "else", "if", "then", "until", "while", "xargs"}
)
_LISTED = _SUPERUSER | _REMOVERS | _SHELLS | {"dd", "eval", "find", "git"}

_ANY = re.compile(rf"\b(?:{'|'.join(sorted(_SUPERUSER | _REMOVERS))}|curl|wget|delete|push|mkfs|dd)\b")
_DOWNLOAD_IN_PLACE = re.compile(
    rf"(?:^|[\s;&|(])(?:\S*/)?(?:{'|'.join(sorted(_SHELLS))}|\.|eval|source)\s[^;|\n]{{0,200}}(?:\$\(|<\(|`)\s*"
    rf"(?:\S*/)?(?:{'|'.join(sorted(_DOWNLOADERS))})\s"
)

LENGTH = 50_000
"""Characters of a command that is read; splitting one takes some microseconds a character."""

SUBSTITUTIONS = 50
"""How many substitutions of one command are read."""

DEPTH = 10
"""How many commands within one another are read, each the argument of `eval` or `sh -c`."""

UNREADABLE = "has one of the words that ask, and cannot be read"


def why_asked(command: str, root: Path | None) -> str | None:
    """What makes `command`, run in `root`, one of these, in words; None for every other command."""
    parts = [command, *islice(_substitutions(command), SUBSTITUTIONS + 1)]
    if len(command) > LENGTH or len(parts) > SUBSTITUTIONS + 1:
        return UNREADABLE if _ANY.search(command) else None
    if _DOWNLOAD_IN_PLACE.search(command):
        return "runs what it downloads"
    for part in parts:
        try:
            if reason := _Reader(root).why(part):
                return reason
        except ValueError:
            # Not what the splitter understands, such as a text with an apostrophe after `<<`.
            if _ANY.search(part):
                return UNREADABLE
    return None


@dataclass
class _Reader:
    """Follows one command line; `folder` is where it is by now, None when that is not known or outside of `root`."""

    root: Path | None
    folder: Path | None = field(init=False)
    depth: int = 0

    def __post_init__(self) -> None:
        self.folder = self.root

    def why(self, command: str) -> str | None:
        """As `why_asked`; raises ValueError for what cannot be read."""
        for pipeline in _pipelines(command):
            downloaded = False
            for words in pipeline:
                name, operands = _command(words)
                if reason := self._why_one(name, operands):
                    return reason
                if downloaded and _runs_its_input(name, operands):
                    return "runs what it downloads"
                downloaded = downloaded or name in _DOWNLOADERS
        return None

    def _why_one(self, name: str, operands: Words) -> str | None:
        if name in ("cd", "pushd"):
            target = next((word for word in operands if not word.startswith("-")), "~")
            self.folder = None if self.is_outside(target, itself=False) else Path(self.folder or "/", target)
        inner = " ".join(operands) if name == "eval" else _argument_of_c(operands) if name in _SHELLS else ""
        if inner:
            self.depth += 1
            if self.depth > DEPTH:
                raise ValueError("too deep to be read")
            reason = self.why(inner)
            self.depth -= 1
            return reason
        return next((reason for test, reason in _LIST if test(self, name, operands)), None)

    def is_outside(self, operand: str, *, itself: bool = True) -> bool:
        """Whether an operand may name something outside the workspace, or (with `itself`) the workspace folder."""
        # Variables, and alternatives in braces that are more than a name.
        if self.root is None or re.search(r"^~|\$|`|\{[^}]*(?:/|\.\.)", operand):
            return True
        if self.folder is None and not operand.startswith("/"):
            return True
        path = Path(self.folder or "/", operand)
        # A link is removed itself, and not what it leads to, unless a slash follows it.
        followed = operand.endswith(("/", ".."))
        real = Path(os.path.realpath(path)) if followed else Path(os.path.realpath(path.parent), path.name)
        root = Path(os.path.realpath(self.root))
        return not real.is_relative_to(root) or (itself and real == root)


# ------------------------------------------------------------------ the list


def _acts_as_another_user(reader: _Reader, name: str, operands: Words) -> bool:
    return name in _SUPERUSER


def _removes_outside(reader: _Reader, name: str, operands: Words) -> bool:
    if name == "find" and ("-delete" in operands or _REMOVERS & {_base(word) for word in operands}):
        options = (at for at, word in enumerate(operands) if word.startswith(("-", "(", "!")))
        starts = operands[: next(options, len(operands))]
        return any(reader.is_outside(word, itself=False) for word in starts)
    return name in _REMOVERS and any(reader.is_outside(word) for word in operands if not word.startswith("-"))


def _forces_a_push(reader: _Reader, name: str, operands: Words) -> bool:
    if name != "git" or "push" not in operands:
        return False
    for word in operands[operands.index("push") + 1 :]:
        if word.startswith(("+", ":", "--force", "--mirror", "--delete", "--prune")):
            return True
        if re.fullmatch(r"-[a-z]*[fd][a-z]*", word):
            return True
    return False


def _overwrites_a_device(reader: _Reader, name: str, operands: Words) -> bool:
    writes = name == "dd" and any(word.startswith("of=/dev/") for word in operands)
    return writes or name == "mkfs" or name.startswith("mkfs.")


_LIST: tuple[tuple[Callable[[_Reader, str, Words], bool], str], ...] = (
    (_acts_as_another_user, "acts as another user"),
    (_removes_outside, "may remove something outside the workspace"),
    (_forces_a_push, "overwrites or deletes what was pushed"),
    (_overwrites_a_device, "overwrites a device"),
)


def _runs_its_input(name: str, operands: Words) -> bool:
    """Whether an interpreter takes its program from standard input, and not from an argument."""
    if name not in _INTERPRETERS and not re.fullmatch(r"python[\d.]+", name):
        return False
    for word in operands:
        if word == "-" or (name in _SHELLS and re.fullmatch(r"-[a-z]*s[a-z]*", word)):
            return True
        if not word.startswith("-") or re.match(r"-[a-zA-Z]*[cemnpr]|--(?:eval|print|require)", word):
            return False
    return True


# ------------------------------------------------------------------ reading a command line


def _pipelines(command: str) -> Iterator[list[list[str]]]:
    """Each pipeline as its commands, each command as its words. Raises ValueError for quotes that do not end."""
    lexer = shlex.shlex(command.replace("\\\n", ""), posix=True, punctuation_chars=";&|()<>`\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    pipeline: list[list[str]] = [[]]
    redirected = False
    for token in lexer:
        if token and set(token) <= {"<", ">", "&", "|"} and set(token) & {"<", ">"}:
            redirected = True  # what follows names a file
        elif token and set(token) <= set(";&|()<>`\n"):
            redirected = False
            if token in ("|", "|&"):
                pipeline.append([])
            else:
                yield pipeline
                pipeline = [[]]
        elif redirected:
            redirected = False
        else:
            pipeline[-1].append(token)
    yield pipeline


def _substitutions(command: str) -> Iterator[str]:
    """What stands in `$(…)`, `<(…)` and backticks, in quotes too."""
    for begin in re.finditer(r"[$<>]\(", command):
        depth, end = 1, begin.end()
        while depth and end < len(command):
            depth += {"(": 1, ")": -1}.get(command[end], 0)
            end += 1
        yield command[begin.end() : end - (not depth)]
    yield from command.split("`")[1::2]


def _command(words: Words) -> tuple[str, Words]:
    """A command's name and operands, without assignments, prefixes and the options of those."""
    at = 0
    while at < len(words) and re.match(r"\w+=", words[at]):
        at += 1
    prefixes: list[str] = []
    while at < len(words) and _base(words[at]) in _PREFIXES:
        prefixes.append(_base(words[at]))
        at += 1
        if prefixes[-1] in ("env", "ionice", "nice", "stdbuf", "time", "timeout", "xargs"):
            # Their own arguments come next, in shapes of their own: what is on the list counts wherever it stands.
            listed = (place for place in range(at, len(words)) if _base(words[place]) in _LISTED | _PREFIXES)
            own = (place for place in range(at, len(words)) if not re.match(r"-|\w+=|[\d.]+[smhd]?$", words[place]))
            at = next(listed, next(own, len(words)))
    if at == len(words):
        return "", ()
    operands = words[at + 1 :]
    # What `xargs` adds is not known.
    return _base(words[at]), [*operands, "$"] if "xargs" in prefixes else operands


def _base(word: str) -> str:
    return PurePosixPath(word).name


def _argument_of_c(operands: Words) -> str:
    """The program in the argument of `-c`, also where that is joined with other options."""
    options = (at for at, word in enumerate(operands) if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word))
    return next(iter(operands[next(options, len(operands)) + 1 :]), "")
