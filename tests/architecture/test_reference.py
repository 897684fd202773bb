"""docs/reference.md says what the code does: every command, setting and event, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import get_args

from hel_lsp.lsp.commands import Commands
from hel_lsp.lsp.events import _event
from hel_lsp.lsp.server import COMMANDS
from hel_lsp.messages import EditReport, ToolCall, TurnResult, Usage
from hel_lsp.ports import (
    EditEvent,
    EndEvent,
    Event,
    NoticeEvent,
    ReasoningEvent,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    UsageEvent,
)
from hel_lsp.settings import Settings

REFERENCE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """The table under a heading: first cell, without its backticks, to the other cells."""
    section = REFERENCE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if line[:3] == "| `"
    ]
    return {first.strip("` |"): rest for first, *rest in cells}


def settings(section: object, prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for field in dataclasses.fields(section):  # type: ignore[arg-type]
        key = prefix + re.sub(r"_(\w)", lambda match: match[1].upper(), field.name)
        value = getattr(section, field.name)
        found |= settings(value, key + ".") if dataclasses.is_dataclass(value) else {key: value}
    return found


def test_every_setting_is_listed_with_its_default():
    listed = {key: cells[0] for key, cells in rows("Settings").items()}
    actual = {
        key: "none" if value is None else f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"
        for key, value in settings(Settings()).items()
    }
    assert listed == actual


def test_every_command_is_listed_registered_and_handled():
    handled = Commands.table(Commands(None, None, None, None, None))  # type: ignore[arg-type] # the names need no agent
    assert set(rows("Commands")) == set(COMMANDS) == set(handled)


def test_every_event_is_listed_with_its_fields():
    examples = [
        TextEvent("a"),
        ReasoningEvent("a"),
        ToolCallEvent(ToolCall("1", "t", "{}"), "pending"),
        EditEvent(EditReport("file:///a", True, 1, 1, "why")),
        UsageEvent(Usage()),
        StepEvent(1),
        NoticeEvent("a"),
        EndEvent(TurnResult("s", 1, "end_turn")),
    ]
    assert {type(example) for example in examples} == set(get_args(Event))
    shown = {shape.pop("kind"): set(shape) for shape in map(dict, map(_event, examples))}
    listed = {
        kind: {name.rstrip("?") for name in re.findall(r"`(\w+\??)`", cells[0].split(": `pending`")[0])}
        for kind, cells in rows("Events").items()
    }
    assert listed == shown
