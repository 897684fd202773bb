"""Skills: instructions of a project that the model knows by name and loads when it needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from hel_lsp import textfile
from hel_lsp.errors import ConfigError, FileRefused, ToolError
from hel_lsp.messages import Access, ToolDefinition, ToolResult
from hel_lsp.ports import Prepared, Preview
from hel_lsp.tools.arguments import Arguments, check, define

FOLDERS = (".hel/skills", ".agents/skills")
"""Where skills are; one that is in both is that of the first."""

DESCRIPTION_LIMIT = 1024
"""Characters of a description in the system text."""

LOADER = "load_skill"

_FENCE = "---"


@dataclass(frozen=True, slots=True)
class Skill:
    """`file` is its SKILL.md, `shown` how the model may name the folder it lies in; empty where tools may not go."""

    name: str
    description: str
    file: Path
    shown: str = ""

    def body(self) -> str:
        """The instructions as the file has them now. Raises ToolError."""
        text = textfile.read(self.file).text
        _, body = _split(text)
        beside = f"Files that belong to this skill are in {self.shown}.\n\n" if self.shown else ""
        return f"{beside}{body.strip()}"


def read_skills(root: Path) -> tuple[list[Skill], list[str]]:
    """The skills of the workspace folder `root`, by name, and what is wrong with those that cannot be used."""
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for folder in FOLDERS:
        for file in sorted((root / folder).glob("*/SKILL.md")):
            try:
                skill = _read(root, file)
            except ConfigError as error:
                problems.append(error.message)
                continue
            if skill.name in skills:
                problems.append(f"{file}: there is a skill named {skill.name} already, so this one is left out.")
            else:
                skills[skill.name] = skill
    return list(skills.values()), problems


def skills_text(skills: Sequence[Skill]) -> str:
    """What the system text says of skills; empty where there are none."""
    lines = [f"{skill.name}: {skill.description}" for skill in skills]
    return "\n".join(["Skills (load one with load_skill when it fits the task):", *lines]) if lines else ""


def _read(root: Path, file: Path) -> Skill:
    """Raises ConfigError with file, line and column."""
    real = file.resolve()
    if not real.is_relative_to(root.resolve()):
        raise ConfigError(f"{file} leads out of the workspace.")
    try:
        front, _ = _split(textfile.read(real).text)
    except FileRefused as error:
        raise ConfigError(f"{file}, line 1, column 1: {error.message}") from error
    fields = _front_matter(file, front)
    name, description = (_one_line(fields.get(key)) for key in ("name", "description"))
    if not name or not description:
        missing = "name" if not name else "description"
        raise ConfigError(f"{file}, line 1, column 1: the front matter needs a {missing}, a text.")
    shown = "" if FOLDERS[0] in file.as_posix() else file.parent.relative_to(root).as_posix()
    return Skill(name, description[:DESCRIPTION_LIMIT], real, shown)


def _split(text: str) -> tuple[str, str]:
    """Front matter and body. Without a front matter everything is body."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        return "", text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        return "", text
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])


def _front_matter(file: Path, text: str) -> Mapping[str, object]:
    import yaml  # a fifth of a second's worth of modules that only a project with skills needs

    try:
        # The base loader knows texts, lists and mappings alone: `name: on` stays a text, and nothing is constructed.
        fields: object = yaml.load(text, yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        # One line further down than YAML counts: it did not see the fence.
        where = f"line {mark.line + 2}, column {mark.column + 1}" if mark is not None else "line 1, column 1"
        hint = " A text with a colon in it needs quotes." if "mapping values" in str(error.problem) else ""
        raise ConfigError(f"{file}, {where}: {error.problem}.{hint}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}, line 1, column 1: the front matter is not YAML: {error}.") from error
    return cast("Mapping[str, object]", fields) if isinstance(fields, dict) else {}


def _one_line(value: object) -> str:
    if not isinstance(value, str):
        return ""
    text = " ".join(value.split())
    return "".join(character for character in text if character.isprintable())


class _Load(Arguments):
    name: str


@dataclass(frozen=True, slots=True)
class LoadSkill:
    """`load_skill`: puts a skill's instructions into the conversation; `loaded` hears of each."""

    skills: Sequence[Skill]
    loaded: Callable[[str], None]

    @property
    def definition(self) -> ToolDefinition:
        return _LOAD_SKILL

    @property
    def access(self) -> Access:
        return "read"

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        wanted = check(_Load, LOADER, arguments)
        skill = find(self.skills, wanted.name)
        if skill is None:
            names = ", ".join(skill.name for skill in self.skills)
            raise ToolError(f"There is no skill named {wanted.name}. There are: {names}.")
        return Prepared("read", Preview(f"load the skill {skill.name}"), partial(self._run, skill), LOADER)

    async def _run(self, skill: Skill) -> ToolResult:
        body = skill.body()
        self.loaded(skill.name)
        return ToolResult(body)


_LOAD_SKILL = define(LOADER, "Load the instructions of a skill", _Load)


def find(skills: Sequence[Skill], name: str) -> Skill | None:
    return next((skill for skill in skills if skill.name == name), None)
