"""Hooks of `.hel/hooks.json`: commands that see a call before it runs, and its result after.

A hook before a call fails closed: a guard that is broken must not wave things through. A hook after it cannot undo
anything, so the result stands, with a note. What a hook allows, the user is still asked about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from hel_lsp import processes
from hel_lsp.errors import ConfigError
from hel_lsp.jsonfile import parse_json, place
from hel_lsp.messages import ToolResult
from hel_lsp.platforms import environment_without, find_shell

Event = Literal["PreToolUse", "PostToolUse"]

EVENTS: tuple[Event, ...] = ("PreToolUse", "PostToolUse")

TIMEOUT = 60.0
"""Seconds that a hook gets where it does not say."""

BLOCKED = 2
"""The exit code that blocks."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A shell command for the calls of tools in whose name `matcher` is found; `timeout` is seconds."""

    event: Event
    matcher: re.Pattern[str]
    command: str
    timeout: float

    @property
    def line(self) -> str:
        """As it is shown to the person who is asked to trust it."""
        tools = self.matcher.pattern
        return f"{self.event}{f' of {tools}' if tools else ''}: {self.command}"


@dataclass(frozen=True, slots=True)
class HookCall:
    """The call that hooks are told of."""

    session: str
    turn: int
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a hook came to: the call goes on, or it does not, because of `reason`; `broken` when the hook failed."""

    hook: Hook
    blocks: bool = False
    reason: str = ""
    broken: bool = False


# ------------------------------------------------------------------ reading


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class _Command(_Shape):
    type: Literal["command"]
    command: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    timeout: float = Field(default=TIMEOUT, gt=0)


class _Group(_Shape):
    matcher: str = ""
    hooks: list[_Command]


class _File(_Shape):
    hooks: dict[str, list[_Group]]


def parse_hooks(path: Path, data: bytes) -> tuple[Hook, ...]:
    """The hooks in `data`, the bytes of `path`, in order. Raises ConfigError naming line and column.

    Whatever is wrong makes the whole file unusable: half of a set of guards is not what was meant.
    """
    content = parse_json(path, data)
    try:
        groups = _File.model_validate(content).hooks
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        names = [str(part) for part in first["loc"]]
        named = next((name for name in reversed(names) if not name.isdigit()), "")
        raise ConfigError(f"{place(path, data, named)}: {'.'.join(names)}: {first['msg']}.") from error
    if unknown := sorted(groups.keys() - set(EVENTS)):
        raise ConfigError(
            f"{place(path, data, unknown[0])}: {unknown[0]} is no event; there are {' and '.join(EVENTS)}."
        )
    hooks: list[Hook] = []
    for event in EVENTS:
        for group in groups.get(event, []):
            matcher = _matcher(path, data, group.matcher)
            hooks += [Hook(event, matcher, command.command, command.timeout) for command in group.hooks]
    return tuple(hooks)


def _matcher(path: Path, data: bytes, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(f"{place(path, data, text)}: {text!r} is not a regular expression: {error.msg}.") from error


# ------------------------------------------------------------------ running


@dataclass(frozen=True, slots=True)
class Hooks:
    """The trusted hooks of the workspace folder `root`.

    `secret` names environment variables that they do not get, `warn` tells the user which of them failed.
    """

    hooks: Sequence[Hook]
    root: Path
    secret: Collection[str]
    warn: Callable[[str], None]

    async def before(self, call: HookCall) -> Outcome | None:
        """The outcome that keeps the call from running; None when it may go on."""
        for hook in self._of("PreToolUse", call):
            outcome = await self._run(hook, call, {})
            if outcome.broken:
                self.warn(f"The PreToolUse hook `{hook.command}` {outcome.reason}, so {call.tool} was not run.")
            if outcome.blocks or outcome.broken:
                return outcome
        return None

    async def after(self, call: HookCall, result: ToolResult) -> ToolResult:
        """The result as the model gets it; what was done stays done."""
        for hook in self._of("PostToolUse", call):
            outcome = await self._run(hook, call, {"result": result.text})
            if outcome.broken:
                self.warn(f"The PostToolUse hook `{hook.command}` {outcome.reason}; {call.tool} had already run.")
                result = replace(result, text=f"{result.text}\n[A hook that checks results {outcome.reason}.]")
            elif outcome.blocks:
                result = replace(result, text=outcome.reason)
        return result

    def _of(self, event: Event, call: HookCall) -> list[Hook]:
        return [hook for hook in self.hooks if hook.event == event and hook.matcher.search(call.tool)]

    async def _run(self, hook: Hook, call: HookCall, more: Mapping[str, Any]) -> Outcome:
        shell = find_shell()
        if shell is None:
            return Outcome(hook, broken=True, reason="could not run: there is no POSIX shell on the PATH")
        told = {"event": hook.event, "session": call.session, "turn": call.turn, "tool": call.tool}
        try:
            finished = await processes.run(
                [shell, "-c", hook.command],
                folder=self.root,
                environment=environment_without(self.secret),
                timeout=hook.timeout,
                stdin=json.dumps({**told, "arguments": call.arguments, **more}).encode() + b"\n",
                whole_output=True,
            )
        except OSError as error:
            return Outcome(hook, broken=True, reason=f"could not be started ({error.strerror})")
        return _outcome(hook, finished)


def _outcome(hook: Hook, finished: processes.Finished) -> Outcome:
    if finished.stdout.size + finished.stderr.size > processes.OUTPUT:
        return Outcome(hook, broken=True, reason=f"printed more than {processes.OUTPUT} bytes")
    if finished.code is None:
        return Outcome(hook, broken=True, reason=f"took longer than {hook.timeout:g} s")
    if finished.code == BLOCKED:
        return Outcome(hook, blocks=True, reason=finished.stderr.text().strip() or "Blocked by a hook.")
    if finished.code != 0:
        said = finished.stderr.text().strip().split("\n")[-1]
        return Outcome(hook, broken=True, reason=f"failed with exit code {finished.code}{f' ({said})' if said else ''}")
    return _decision(hook, finished.stdout.text().strip())


def _decision(hook: Hook, printed: str) -> Outcome:
    """What standard output says: JSON decides, other text is nothing to us, and broken JSON is no yes."""
    if not printed.startswith("{"):
        return Outcome(hook)
    try:
        content = cast("dict[str, object]", json.loads(printed))
    except (ValueError, RecursionError):
        return Outcome(hook, broken=True, reason="printed JSON that is not valid")
    decision, reason = content.get("decision"), content.get("reason")
    if decision not in (None, "allow", "block"):
        return Outcome(hook, broken=True, reason=f"decided {decision!r}, which is neither block nor allow")
    said = reason if isinstance(reason, str) and reason.strip() else "Blocked by a hook."
    return Outcome(hook, blocks=decision == "block", reason=said)
