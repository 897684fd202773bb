"""Commands that are asked about even with access `auto`: the one list of them.

A seat belt and no wall: it sees what a command plainly says, also behind `env`, `xargs`, `sh -c`, in substitutions
and groups, and not what a script that it starts would do. What it cannot read it takes for the worst. The wall is the
sandbox.
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

# What begins a group of commands, and what ends it: to a pipe a group is one command.
_GROUPS = {"{": "}", "(": ")", "case": "esac", "if": "fi"} | dict.fromkeys(("for", "select", "until", "while"), "done")

# Words in front of a command that leave it the command; those that have arguments of their own before it.
_WRAPPERS = frozenset(
    {"busybox", "chroot", "coproc", "env", "function", "ionice", "nice", "setsid", "stdbuf", "time", "timeout"}
    | {"watch", "xargs"}
)
_PREFIXES = _WRAPPERS | frozenset(
    {"!", "{", "builtin", "command", "do", "elif", "else", "exec", "if", "nohup", "then", "until", "while"}
)
_LISTED = _SUPERUSER | _REMOVERS | _SHELLS | {"dd", "eval", "find", "git", "trap"}

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
class _Group:
    """A group of commands that ends with `end`; `fed` when its input may be a download, `gives` when its output may.

    `piped` is that of the pipeline which is being read.
    """

    end: str = ""
    fed: bool = False
    gives: bool = False
    piped: bool = False


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
        return self._why_group(command, _Group())

    def _why_group(self, command: str, group: _Group) -> str | None:
        outer: list[_Group] = []
        fed = group.fed
        for words, end in _commands(command):
            for word in _opening(words):
                outer.append(group)
                group = _Group(_GROUPS[word], fed)
            if outer and words[:1] == [group.end]:
                group, fed = _closed(outer, group)
            name, operands = _command(words)
            inside = _Group("", fed)
            if reason := self._why_one(name, operands, inside):
                return reason
            if fed and (_runs_its_input(name, operands) or name.startswith("$")):
                return "runs what it downloads"
            group.piped = group.piped or name in _DOWNLOADERS or inside.gives
            if end == "(":
                outer.append(group)
                group = _Group(")", fed)
            elif end == ")" and outer and group.end == end:
                group, fed = _closed(outer, group)
            elif end in _PIPES:
                fed = fed or group.piped
            else:
                group.gives, group.piped, fed = group.gives or group.piped, False, group.fed
        group.gives = group.gives or group.piped
        return None

    def _why_one(self, name: str, operands: Words, group: _Group) -> str | None:
        if name in ("cd", "pushd"):
            target = next((word for word in operands if not word.startswith("-")), "~")
            self.folder = None if self.is_outside(target, itself=False) else Path(self.folder or "/", target)
        if inner := _program(name, operands):
            self.depth += 1
            if self.depth > DEPTH:
                raise ValueError("too deep to be read")
            if reason := self._why_group(inner, group):
                return reason
            self.depth -= 1
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


def _commands(command: str) -> Iterator[tuple[list[str], str]]:
    """Each command's words, and the operator that ends them. Raises ValueError for quotes that do not end."""
    lexer = shlex.shlex(command.replace("\\\n", ""), posix=True, punctuation_chars=";&|()<>`\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    redirected = piped = False
    for token in lexer:
        if token and set(token) <= {"<", ">", "&", "|"} and set(token) & {"<", ">"}:
            redirected = True  # what follows names a file
        elif token and set(token) <= set(";&|()<>`\n"):
            redirected = False
            for operator in _OPERATOR.findall(token):
                if operator == "\n" and words[:1] and words[0].startswith("#"):
                    words = []  # a comment
                if piped and operator == "\n" and not words:
                    continue  # what the pipe leads to is on the next line
                yield words, operator
                words, piped = [], operator in _PIPES
        elif redirected:
            redirected = False
        else:
            words.append(token)
    yield words, ""


_OPERATOR = re.compile(r"\|\||\|&|[^<>]")
_PIPES = ("|", "|&")


def _opening(words: Words) -> Iterator[str]:
    """The words that begin a group, of those at the beginning of a command."""
    for word in words:
        if word in _GROUPS:
            yield word
        if word not in _PREFIXES:
            return


def _closed(outer: list[_Group], group: _Group) -> tuple[_Group, bool]:
    """The group around one that has ended, and whether the ended one's input may be a download."""
    around = outer.pop()
    around.piped = around.piped or group.gives or group.piped
    return around, group.fed


def _program(name: str, operands: Words) -> str:
    """The commands that stand in the operands of one."""
    if name == "eval":
        return " ".join(operands)
    if name == "trap":
        return next((word for word in operands if not word.startswith("-")), "")
    if name == "find":
        runs = (at for at, word in enumerate(operands) if re.fullmatch(r"-(?:exec|ok)(?:dir)?", word))
        return shlex.join(operands[next(runs, len(operands)) + 1 :])
    return _argument_of_c(operands) if name in _SHELLS else ""


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
        if prefixes[-1] in _WRAPPERS:
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
