"""A reply put together from the events of a messages stream."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hel_lsp.errors import ModelRefused, StreamBroken
from hel_lsp.messages import ToolCall, Usage
from hel_lsp.models.anthropic_request import Placed, pack
from hel_lsp.models.json_values import fragment, objects, plain, tokens
from hel_lsp.models.text import TextPieces, whole
from hel_lsp.ports import ModelReply, ReasoningDelta, TextDelta

Finish = Literal["stop", "length", "refusal"]
Shown = list[TextDelta | ReasoningDelta]

_FINISHES: Mapping[str, Finish] = {
    "end_turn": "stop",
    "tool_use": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

_PAUSED = (
    "The model paused in the middle of its reply, as it does for tools that run at the provider. hel-lsp has none of "
    "these and cannot go on from there: check model.extraBody."
)


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    given: object
    pieces: list[str] = field(default_factory=list[str])

    @property
    def arguments(self) -> str:
        """What was streamed, else what the call began with: that may be an empty object, with nothing after it."""
        return "".join(self.pieces) or fragment(self.given)


@dataclass(slots=True)
class _Reasoning:
    """A block of reasoning and where it stands: after so many characters of text and so many calls."""

    characters: int
    calls: int
    start: Mapping[str, Any]
    text: TextPieces = field(default_factory=TextPieces)
    signature: list[str] = field(default_factory=list[str])

    def placed(self) -> Placed:
        block = dict(self.start)
        if block["type"] == "thinking":
            block |= {"thinking": str(self.text), "signature": "".join(self.signature)}
        return self.characters, self.calls, block


@dataclass(slots=True)
class _Text:
    """A block of text, or one of a kind that is passed over."""

    passed_over: bool = False


class ReplyAssembler:
    """Takes events in order, gives what can be shown at once, and the whole reply at the end."""

    def __init__(self) -> None:
        self.ended = False
        self._text = TextPieces()
        self._reasoning: list[_Reasoning] = []
        self._calls: list[_Call] = []
        self._open: dict[int, _Call | _Reasoning | _Text] = {}
        self._stop_reasons: list[str] = []
        self._usage: dict[str, int] = {}

    def add(self, event: Mapping[str, Any]) -> Shown:
        """Raises StreamBroken for pieces that cannot be put together."""
        shown: Shown = []
        match event.get("type"):
            case "message_start":
                for message in objects(event.get("message")):
                    self._count(message)
            case "content_block_start":
                for block in objects(event.get("content_block")):
                    shown += self._begin(_index(event), block)
            case "content_block_delta":
                for delta in objects(event.get("delta")):
                    shown += self._grow(_index(event), delta)
            case "content_block_stop":
                self._open.pop(_index(event), None)
            case "message_delta":
                self._count(event)
                for delta in objects(event.get("delta")):
                    shown += self._stopped(delta)
            case "message_stop":
                self.ended = True
            case "message":
                # The endpoint does not stream: all blocks at once.
                self._count(event)
                for block in objects(event.get("content")):
                    shown += self._begin(0, block)
                    self._open.clear()
                shown += self._stopped(event)
                self.ended = True
            case _:
                pass  # a ping, or what the format may have in years to come
        return shown

    def reply(self, request_bytes: int) -> ModelReply:
        """The whole reply. Raises StreamBroken when it did not end properly: then nothing in it may run."""
        finish = self._finish()
        read, created, cached = (self._usage.get(name, 0) for name in _READ)
        return ModelReply(
            text=str(self._text),
            tool_calls=self._tool_calls() if finish == "stop" else (),
            finish=finish,
            # The format counts what came from the cache, or went into it, apart from the rest of the input.
            usage=Usage(read + created + cached, self._usage.get("output_tokens", 0), cached, 1),
            reasoning="".join(str(block.text) for block in self._reasoning),
            request_bytes=request_bytes,
            signed_reasoning=pack([block.placed() for block in self._reasoning]),
        )

    # -------------------------------------------------------------- blocks

    def _begin(self, index: int, block: Mapping[str, Any]) -> Shown:
        kind = block.get("type")
        if kind == "tool_use":
            call = _Call(plain(block.get("id")), plain(block.get("name")), block.get("input"))
            self._calls.append(call)
            self._open[index] = call
            return []
        if kind in ("thinking", "redacted_thinking"):
            reasoning = _Reasoning(len(str(self._text)), len(self._calls), block)
            self._reasoning.append(reasoning)
            self._open[index] = reasoning
            reasoning.signature.append(plain(block.get("signature")))
            return _reasoned(reasoning, block.get("thinking"))
        self._open[index] = _Text(passed_over=kind != "text")
        return self._said(block.get("text")) if kind == "text" else []

    def _grow(self, index: int, delta: Mapping[str, Any]) -> Shown:
        kind = delta.get("type")
        match self._open.get(index):
            case None:
                raise StreamBroken("The model's reply goes on where it never began; nothing in it was run.")
            case _Call() as call:
                if kind != "input_json_delta":
                    raise StreamBroken("The model's reply has a tool call of no known form; nothing in it was run.")
                call.pieces.append(fragment(delta.get("partial_json")))
            case _Reasoning() as reasoning:
                if kind == "signature_delta":
                    reasoning.signature.append(plain(delta.get("signature")))
                return _reasoned(reasoning, delta.get("thinking"))
            case _Text(passed_over):
                return [] if passed_over else self._said(delta.get("text"))
        return []

    def _said(self, text: object) -> Shown:
        piece = self._text.add(plain(text))
        return [TextDelta(piece)] if piece else []

    def _tool_calls(self) -> tuple[ToolCall, ...]:
        ids: set[str] = set()
        calls: list[ToolCall] = []
        for call in self._calls:
            if not call.name:
                raise StreamBroken("The model's reply has a tool call without a name; nothing in it was run.")
            call_id = call.id if call.id and call.id not in ids else f"toolu_{secrets.token_hex(12)}"
            ids.add(call_id)
            calls.append(ToolCall(whole(call_id), whole(call.name), whole(call.arguments)))
        return tuple(calls)

    # -------------------------------------------------------------- the end

    def _stopped(self, delta: Mapping[str, Any]) -> Shown:
        reason = delta.get("stop_reason")
        if isinstance(reason, str) and reason:
            self._stop_reasons.append(reason)
        shown: Shown = []
        for details in objects(delta.get("stop_details")):
            shown += self._said(details.get("explanation"))
        return shown

    def _finish(self) -> Finish:
        """What the reply came to; of several stop reasons the worst counts."""
        if not self.ended or not self._stop_reasons:
            missing = "a stop reason" if self.ended else "its end"
            raise StreamBroken(
                f"The model's reply stopped without {missing}: the stream broke, and nothing in it was run."
            )
        finishes = [_FINISHES.get(reason) for reason in self._stop_reasons]
        if "length" in finishes:
            return "length"
        if "refusal" in finishes:
            return "refusal"
        if "pause_turn" in self._stop_reasons:
            raise ModelRefused(_PAUSED)
        if self._calls and None in finishes:
            odd = self._stop_reasons[finishes.index(None)]
            raise StreamBroken(f'The model\'s reply ended with "{odd}"; nothing in it was run.')
        if any(isinstance(block, _Call) for block in self._open.values()):
            raise StreamBroken("The model's reply has a tool call without an end; nothing in it was run.")
        return "stop"

    def _count(self, event: Mapping[str, Any]) -> None:
        """Take the counts of `event`; they are sums, so later ones stand for earlier ones."""
        for usage in objects(event.get("usage")):
            self._usage |= {name: count for name in (*_READ, "output_tokens") if (count := tokens(usage.get(name)))}


def _reasoned(reasoning: _Reasoning, text: object) -> Shown:
    piece = reasoning.text.add(plain(text))
    return [ReasoningDelta(piece)] if piece else []


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else -1
