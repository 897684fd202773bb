"""The settings of a client: one shape of nested objects, camel-case on the wire, frozen here.

Checked by a table of its own instead of pydantic, which would double the time until the server answers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from hel_lsp.messages import AccessLevel

# ------------------------------------------------------------------ what a value may be

_UNSET = object()
_Section = TypeVar(
    "_Section", bound="Settings | ModelSettings | McpSettings | ToolSettings | BashSettings | LimitSettings"
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """`accept` gives the value to keep, `_UNSET` for one that says nothing, or raises ValueError."""

    expected: str
    accept: Callable[[object], object]


def _kind(expected: str, accept: Callable[[object], object]) -> Mapping[str, _Kind]:
    return {"kind": _Kind(expected, accept)}


def _number(expected: str, *, low: float, high: float = math.inf, exclusive: bool = False) -> Mapping[str, _Kind]:
    def accept(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError
        if not low <= value <= high or (exclusive and value == low):
            raise ValueError
        return value

    return _kind(expected, accept)


def _whole(expected: str, *, low: int) -> Mapping[str, _Kind]:
    def accept(value: object) -> object:
        # Some clients have no integers and send 50.0.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ValueError
        return value

    return _kind(expected, accept)


def _choice(*choices: str) -> Mapping[str, _Kind]:
    def accept(value: object) -> object:
        if value not in choices:
            raise ValueError
        return value

    return _kind("one of " + ", ".join(f'"{choice}"' for choice in choices), accept)


def _accept_text(value: object) -> object:
    # An empty box in an editor's settings page arrives as an empty string.
    if not isinstance(value, str):
        raise ValueError
    return value.strip() or _UNSET


def _accept_switch(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _accept_names(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise ValueError
    names = cast("Sequence[object]", value)
    if not all(isinstance(name, str) for name in names):
        raise ValueError
    return tuple(names)


def _accept_object(value: object) -> object:
    if not isinstance(value, Mapping):
        raise ValueError
    return dict(cast("Mapping[str, Any]", value))


_TEXT = _kind("a string", _accept_text)
_SWITCH = _kind("true or false", _accept_switch)
_NAMES = _kind("a list of strings", _accept_names)
_OBJECT = _kind("an object", _accept_object)
_SECONDS = _number("a positive number of seconds", low=0, exclusive=True)
_SECONDS_OR_NONE = _number("a number of seconds, 0 or more", low=0)
_TEMPERATURE = _number("a number from 0 to 2", low=0, high=2)
_COUNT = _whole("a whole number, 1 or more", low=1)
_COUNT_OR_NONE = _whole("a whole number, 0 or more", low=0)

# ------------------------------------------------------------------ the settings


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model to ask and how. `context_window` and `max_output_tokens` are tokens, `timeout` is seconds."""

    provider: Literal["openai", "anthropic"] = field(default="openai", metadata=_choice("openai", "anthropic"))
    base_url: str | None = field(default=None, metadata=_TEXT)
    name: str | None = field(default=None, metadata=_TEXT)
    api_key_env: str = field(default="HEL_API_KEY", metadata=_TEXT)
    context_window: int = field(default=128_000, metadata=_COUNT)
    max_output_tokens: int = field(default=8192, metadata=_COUNT)
    temperature: float | None = field(default=None, metadata=_TEMPERATURE)
    extra_body: Mapping[str, Any] | None = field(default=None, metadata=_OBJECT)
    timeout: float = field(default=120, metadata=_SECONDS)


@dataclass(frozen=True, slots=True)
class McpSettings:
    """Time-outs are seconds, `catalogue_budget` is characters of the system prompt."""

    enabled: bool = field(default=True, metadata=_SWITCH)
    start_timeout: float = field(default=30, metadata=_SECONDS)
    call_timeout: float = field(default=300, metadata=_SECONDS)
    start_wait: float = field(default=3, metadata=_SECONDS_OR_NONE)
    auto_load: bool = field(default=True, metadata=_SWITCH)
    catalogue_budget: int = field(default=4000, metadata=_COUNT_OR_NONE)
    long_names: Literal["drop", "hash"] = field(default="drop", metadata=_choice("drop", "hash"))
    trust_annotations: bool = field(default=False, metadata=_SWITCH)


@dataclass(frozen=True, slots=True)
class BashSettings:
    """`timeout` is seconds; `network` says whether a sandboxed command reaches the network."""

    timeout: float = field(default=120, metadata=_SECONDS)
    sandbox: Literal["auto", "require", "off"] = field(default="auto", metadata=_choice("auto", "require", "off"))
    network: bool = field(default=True, metadata=_SWITCH)


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """`disabled` names built-in tools that the model does not get."""

    disabled: tuple[str, ...] = field(default=(), metadata=_NAMES)
    bash: BashSettings = field(default_factory=BashSettings)


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """`max_steps` is model calls in one turn."""

    max_steps: int = field(default=50, metadata=_COUNT)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a client can set; each value has a default."""

    model: ModelSettings = field(default_factory=ModelSettings)
    access: AccessLevel = field(default="confirm", metadata=_choice("read-only", "confirm", "auto"))
    mcp: McpSettings = field(default_factory=McpSettings)
    tools: ToolSettings = field(default_factory=ToolSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    answer: Literal["auto", "message", "document", "none"] = field(
        default="auto", metadata=_choice("auto", "message", "document", "none")
    )


PROVIDER_KEYS = ("DEEPSEEK_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
"""Environment variables with the keys of hosted providers."""


def key_variables(settings: ModelSettings) -> frozenset[str]:
    """Environment variables that hold the model's key, or may: no child process gets to see them."""
    return frozenset((settings.api_key_env, ModelSettings().api_key_env, *PROVIDER_KEYS))


# ------------------------------------------------------------------ reading them


def parse(layers: Sequence[object]) -> tuple[Settings, list[str]]:
    """The settings that `layers` come to, later ones winning key by key, and what is wrong in them.

    A key that is absent, null or an empty string leaves what an earlier layer said. A problem names the dotted key
    and what was expected, never the value, and appears once; everything else still applies.
    """
    problems: dict[str, None] = {}
    settings = Settings()
    for layer in layers:
        settings = _merged(settings, layer, "", problems)
    return settings, list(problems)


def _merged(section: _Section, given: object, prefix: str, problems: dict[str, None]) -> _Section:
    if given is None:
        return section
    if not isinstance(given, Mapping):
        where = f"Setting {prefix.rstrip('.')}" if prefix else "The settings"
        problems[f"{where}: expected an object."] = None
        return section
    fields = {_camel(item.name): item for item in dataclasses.fields(section)}
    changes: dict[str, object] = {}
    for key, value in cast("Mapping[object, object]", given).items():
        known = fields.get(key) if isinstance(key, str) else None
        if known is None:
            problems[_unknown(prefix, str(key), list(fields))] = None
        elif (kind := cast("_Kind | None", known.metadata.get("kind"))) is None:
            inner: Any = getattr(section, known.name)
            changes[known.name] = _merged(inner, value, f"{prefix}{key}.", problems)
        elif value is not None:
            try:
                accepted = kind.accept(value)
            except (ValueError, OverflowError):
                problems[f"Setting {prefix}{key}: expected {kind.expected}."] = None
            else:
                if accepted is not _UNSET:
                    changes[known.name] = accepted
    return dataclasses.replace(section, **changes) if changes else section


def _unknown(prefix: str, key: str, known: Sequence[str]) -> str:
    if "." in key:
        outer, _, inner = key.partition(".")
        return f'Unknown setting "{prefix}{key}": expected nested objects, {{"{outer}": {{"{inner}": …}}}}.'
    expected = known[0] if len(known) == 1 else "one of " + ", ".join(known)
    return f"Unknown setting {prefix}{key}: expected {expected}."


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
