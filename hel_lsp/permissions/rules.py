"""The rules of `.hel/permissions.json`: which calls are refused, asked about, or not asked about.

A rule is `tool`, `tool(glob)`, or a name that ends in `*` (`mcp__server__*`). The glob is for the path that a call is
about, relative to the workspace, or for the whole command. Refusing and asking are meant broadly, allowing narrowly:
case and compatibility forms of a path count only for `allow`, and a glob there covers a single plain command.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from hel_lsp.errors import ConfigError
from hel_lsp.jsonfile import parse_json, place
from hel_lsp.ports import Prepared

Kind = Literal["deny", "ask", "allow"]

KINDS: tuple[Kind, ...] = ("deny", "ask", "allow")
"""In the order in which they are looked at; the first that has a matching rule decides."""

_RULE = re.compile(r"([A-Za-z0-9_-]*\*|[A-Za-z0-9_-]+)(?:\((.+)\))?", re.DOTALL)
_COMPOUND = re.compile(r"[;&|<>`\n\r]|\$\(")


@dataclass(frozen=True, slots=True)
class Rule:
    """`text` as it stands in the file; `argument` is None for every call of the tool."""

    text: str
    tool: str
    argument: str | None

    def matches(self, kind: Kind, tool: str, prepared: Prepared, root: Path | None) -> bool:
        beginning = self.tool.removesuffix("*")
        if tool != self.tool and (beginning == self.tool or not tool.startswith(beginning)):
            return False
        if self.argument is None:
            return True
        if prepared.command is not None:
            return _matches_command(self.argument, prepared.command.strip(), narrowly=kind == "allow")
        if prepared.path is not None:
            return _matches_path(self.argument, _spelled(prepared.path, root), narrowly=kind == "allow")
        return False


@dataclass(frozen=True, slots=True)
class Rules:
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()

    def decide(self, tool: str, prepared: Prepared, root: Path | None) -> tuple[Kind, Rule] | None:
        """The rule that decides about a call, and how; None where none speaks of it."""
        of: Mapping[Kind, tuple[Rule, ...]] = {"deny": self.deny, "ask": self.ask, "allow": self.allow}
        for kind in KINDS:
            for rule in of[kind]:
                if rule.matches(kind, tool, prepared, root):
                    return kind, rule
        return None

    def without_allow(self) -> Rules:
        """What holds of a file that is not trusted: it may take away, and give nothing."""
        return replace(self, allow=())


# ------------------------------------------------------------------ reading


def parse_rules(path: Path, data: bytes) -> tuple[Rules, list[str]]:
    """The rules in `data`, the bytes of `path`, and what in it is none and has been left out.

    Raises ConfigError naming line and column for what is not JSON, or not lists of strings.
    """
    content = parse_json(path, data)
    if not isinstance(content, dict):
        raise ConfigError(f'{path}, line 1, column 1: expected {{"allow": […], "ask": […], "deny": […]}}.')
    problems: list[str] = []
    rules: dict[str, tuple[Rule, ...]] = {}
    for key, value in cast("dict[str, Any]", content).items():
        if key not in KINDS:
            problems.append(f"{place(path, data, key)}: expected allow, ask or deny; {key} is ignored.")
            continue
        if not isinstance(value, list) or not all(isinstance(text, str) for text in cast("list[object]", value)):
            raise ConfigError(f"{place(path, data, key)}: expected a list of rules, each a string.")
        rules[key] = tuple(_parsed(cast("list[str]", value), path, data, problems))
    return Rules(**rules), problems


def _parsed(texts: list[str], path: Path, data: bytes, problems: list[str]) -> Iterator[Rule]:
    for text in texts:
        parts = _RULE.fullmatch(text.strip())
        if parts is None:
            problems.append(f"{place(path, data, text)}: {text!r} is not a rule and is left out. {_SHAPE}")
        else:
            yield Rule(text, parts[1], parts[2])


_SHAPE = "A rule is `tool`, `tool(glob)` or `mcp__server__*`."


# ------------------------------------------------------------------ matching


def _matches_command(glob: str, command: str, *, narrowly: bool) -> bool:
    if command == glob.strip():
        return True
    if narrowly and _COMPOUND.search(command):
        return False
    return _pattern(glob.strip()).fullmatch(command) is not None


def _spelled(path: Path, root: Path | None) -> str:
    """The real path, relative to the workspace folder where it is in it, with forward slashes."""
    if root is None:
        return path.as_posix()
    try:
        real, real_root = Path(os.path.realpath(root / path)), Path(os.path.realpath(root))
    except ValueError:
        return path.as_posix()  # no file has this name: it has a NUL character
    return (real.relative_to(real_root) if real.is_relative_to(real_root) else real).as_posix()


def _matches_path(glob: str, path: str, *, narrowly: bool) -> bool:
    """`*` and `?` stay within a folder; `**` in the place of a name is any number of folders, also none."""
    if not narrowly:
        glob, path = (unicodedata.normalize("NFKC", text).casefold() for text in (glob, path))
    globs = glob.removeprefix("./").split("/")
    reached = _with_skipped({0}, globs)
    for name in path.split("/"):
        here = [at for at in reached if at < len(globs)]
        stay = {at for at in here if globs[at] == "**"}
        reached = _with_skipped(stay | {at + 1 for at in here if _pattern(globs[at]).fullmatch(name)}, globs)
    return len(globs) in reached


def _with_skipped(places: set[int], globs: list[str]) -> set[int]:
    """The places in a path's glob, and those behind a `**` that stands for nothing."""
    found = set(places)
    for at, glob in enumerate(globs):
        if at in found and glob == "**":
            found.add(at + 1)
    return found


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    """`?` is a character and `*` any number of them; brackets stand for themselves, being common in names.

    The groups are atomic, so that no rule of a project that nobody trusts takes more than linear time.
    """
    first, *others = (re.escape(part).replace(r"\?", ".") for part in re.split(r"\*+", glob))
    rest = "".join(f"(?>.*?{part})" for part in others[:-1]) + "".join(f".*{part}" for part in others[-1:])
    return re.compile(first + rest, re.DOTALL)
