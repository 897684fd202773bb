"""A request as the messages format has it: the same messages are the same blocks, and few of them.

A tool that the conversation loaded is marked as deferred, and the result that tells of it refers to it: the provider
shows its definition there and not before the messages, so what came before them stays as it was.

The provider keeps what it has read up to a block that is marked, and finds it again in a request that begins with the
same blocks; the marks themselves do not count. So the marks move with the conversation while its blocks stay: one is
on the system text, behind the tools; one on the last block; and one where the request before this one had its last,
since the provider looks back from a mark over some twenty blocks only, and a reply may have more calls than that.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hel_lsp.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from hel_lsp.models.text import valid_name
from hel_lsp.ports import ModelRequest
from hel_lsp.settings import ModelSettings

Block = Mapping[str, Any]

_OURS = ("stream", "system", "messages", "tools")
_MARK = {"cache_control": {"type": "ephemeral"}}
_MARKED_MESSAGES = 2


@dataclass(frozen=True, slots=True)
class Dialect:
    """What endpoints disagree on. It starts with what most take and changes when one complains.

    `deferring`: tools are deferred and referred to; models and gateways that are older than this do not know it.
    `old_reasoning`: reasoning of earlier turns goes along. A conversation that another model began has signatures
    that the endpoint does not know; that of the turn under way it has signed itself, and wants back.
    """

    cache_marks: bool = True
    deferring: bool = True
    old_reasoning: bool = True

    def adapted(self, complaint: str) -> Dialect:
        """The dialect for an endpoint that says `complaint` of this one; the same where it names nothing of it."""
        if re.search(r"\bcache_control\b", complaint):
            return dataclasses.replace(self, cache_marks=False)
        if re.search(r"\bdefer_loading\b|\btool_reference\b", complaint):
            return dataclasses.replace(self, deferring=False)
        if re.search(r"\bsignature\b|\bthinking\b.{0,40}\bblock", complaint):
            return dataclasses.replace(self, old_reasoning=False)
        return self


def request_body(request: ModelRequest, model: str, settings: ModelSettings, dialect: Dialect) -> bytes:
    """The body of a streamed request, UTF-8 without needless blanks.

    `model.extraBody` may set every field but those that the conversation itself needs. Half characters, which UTF-8
    does not have, become question marks.
    """
    body: dict[str, Any] = {"model": model, "stream": True, "max_tokens": settings.max_output_tokens}
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    body.update({name: value for name, value in (settings.extra_body or {}).items() if name not in _OURS})
    deferred = _deferred(request) if dialect.deferring else frozenset[str]()
    if request.tools:
        body["tools"] = [_tool(tool, deferred) for tool in request.tools]
    texts = [message.text for message in request.messages if isinstance(message, SystemMessage)]
    if system := _text("\n\n".join(texts)):
        body["system"] = [{**system[0], **_MARK}] if dialect.cache_marks else system
    body["messages"] = _messages(request.messages, deferred, dialect)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _deferred(request: ModelRequest) -> frozenset[str]:
    """The tools of the request that one of its messages loaded. Others are not: nothing would refer to them."""
    loaded = {name for message in request.messages if isinstance(message, ToolMessage) for name in message.loaded}
    return frozenset(tool.name for tool in request.tools if tool.name in loaded)


def _tool(tool: ToolDefinition, deferred: Collection[str]) -> Mapping[str, Any]:
    definition = {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
    return {**definition, "defer_loading": True} if tool.name in deferred else definition


# ------------------------------------------------------------------ messages


def _messages(history: Sequence[Message], deferred: Collection[str], dialect: Dialect) -> list[Mapping[str, Any]]:
    """The messages with roles that take turns: neighbours of one role become one, so all results of a reply do.

    Results come first in theirs. What one says beside its references follows them all.
    """
    ids = _CallIds()
    after_results: list[Block] = []
    prompts = [index for index, message in enumerate(history) if isinstance(message, UserMessage)]
    turn = prompts[-1] if prompts else 0
    merged: list[tuple[str, list[Block]]] = []
    for index, message in enumerate(history):
        match message:
            case SystemMessage():
                continue
            case UserMessage(text):
                role, blocks = "user", _text(text)
            case ToolMessage(call_id, text, loaded):
                names = [name for name in loaded if name in deferred]
                role, blocks = "user", [_result(ids.of_result(call_id), text, names)]
                after_results += _beside(text, names)
            case AssistantMessage():
                role, blocks = "assistant", _assistant(message, ids, dialect.old_reasoning or index > turn)
        if merged and merged[-1][0] == role:
            merged[-1][1].extend(blocks)
        elif blocks:
            merged.append((role, blocks))
        if after_results and not isinstance(next(iter(history[index + 1 :]), None), ToolMessage):
            merged[-1][1].extend(after_results)
            after_results = []
    if dialect.cache_marks:
        for blocks in [blocks for role, blocks in merged if role == "user"][-_MARKED_MESSAGES:]:
            blocks[-1] = {**blocks[-1], **_MARK}
    return [{"role": role, "content": blocks} for role, blocks in merged]


def _assistant(message: AssistantMessage, ids: _CallIds, reasoning: bool) -> list[Block]:
    """The blocks in the order in which they came: the provider checks that its reasoning stands where it stood."""
    calls = [
        {"type": "tool_use", "id": call_id, "name": valid_name(call.name), "input": _object(call.arguments)}
        for call, call_id in ids.of_calls(message.tool_calls)
    ]
    blocks: list[Block] = []
    shown = made = 0
    if reasoning:
        for until, before, block in unpack(message.signed_reasoning):
            blocks += [*_text(message.text[shown:until]), *calls[made:before], block]
            shown, made = until, before
    return [*blocks, *_text(message.text[shown:]), *calls[made:]]


def _text(text: str) -> list[Block]:
    """A block for `text`; none for what is blank, which the format does not allow."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _result(call_id: str, text: str, loaded: Sequence[str]) -> Block:
    """A result, which is a text or references: the format does not promise to take both in one."""
    block = {"type": "tool_result", "tool_use_id": call_id}
    if loaded:
        return {**block, "content": [{"type": "tool_reference", "tool_name": name} for name in loaded]}
    return {**block, "content": text} if text.strip() else block


def _beside(text: str, loaded: Sequence[str]) -> list[Block]:
    """What a result says that its references do not: all lines but those on the tools that they name."""
    if not loaded:
        return []
    return _text("\n".join(line for line in text.split("\n") if line.partition(": ")[0] not in loaded))


def _object(arguments: str) -> Mapping[str, Any]:
    """The arguments as an object; numbers that JSON does not have become their text."""
    try:
        value: object = json.loads(arguments, parse_float=_finite, parse_constant=str)
    except (ValueError, RecursionError):
        value = None
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {"invalid_arguments": arguments}


def _finite(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


class _CallIds:
    """Ids in the alphabet of the format, each once in a request: other providers give the same in every reply."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeated: dict[str, int] = {}
        self._latest: dict[str, str] = {}

    def of_calls(self, calls: Iterable[ToolCall]) -> list[tuple[ToolCall, str]]:
        """Each call with its id; results that follow belong to these calls."""
        self._latest = {call.id: self._new(valid_name(call.id)) for call in calls}
        return [(call, self._latest[call.id]) for call in calls]

    def of_result(self, call_id: str) -> str:
        return self._latest.get(call_id, valid_name(call_id))

    def _new(self, wanted: str) -> str:
        name = wanted
        while name in self._taken:
            self._repeated[wanted] = self._repeated.get(wanted, 1) + 1
            name = f"{wanted}_{self._repeated[wanted]}"
        self._taken.add(name)
        return name


# ------------------------------------------------------------------ reasoning that only its provider reads

Placed = tuple[int, int, Block]
"""A block of reasoning, after how many characters of the reply's text, and after how many of its calls."""


def pack(blocks: Sequence[Placed]) -> str:
    """The blocks as a message keeps them."""
    return json.dumps(blocks, ensure_ascii=False, separators=(",", ":")) if blocks else ""


def unpack(signed_reasoning: str) -> list[Placed]:
    """What `pack` was given."""
    return [(until, before, block) for until, before, block in json.loads(signed_reasoning or "[]")]
