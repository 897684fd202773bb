"""A reply put together from the chunks of a chat completions stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from hel_lsp.errors import StreamBroken
from hel_lsp.messages import Usage
from hel_lsp.models.json_values import objects, plain, tokens
from hel_lsp.models.text import TextPieces
from hel_lsp.models.tool_calls import ToolCallFragments
from hel_lsp.ports import ModelReply, ReasoningDelta, TextDelta

Finish = Literal["stop", "length", "refusal"]

_FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}
_WORSE: Sequence[Finish] = ("stop", "refusal", "length")
_INTERRUPTED = ("error", "abort", "insufficient_system_resource")


class ReplyAssembler:
    """Takes chunks in order, gives what can be shown at once, and the whole reply at the end."""

    def __init__(self) -> None:
        self._text = TextPieces()
        self._reasoning = TextPieces()
        self._calls = ToolCallFragments()
        self._finish: Finish | None = None
        self._other_finish = ""
        self._usage = Usage(requests=1)

    @property
    def ended(self) -> bool:
        """Whether a finish reason has come: what follows is at most another one and the usage."""
        return self._finish is not None or bool(self._other_finish)

    def add(self, chunk: Mapping[str, Any]) -> list[TextDelta | ReasoningDelta]:
        """Raises StreamBroken for fragments that cannot be put together."""
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = _usage(cast("Mapping[str, Any]", usage))
        shown: list[TextDelta | ReasoningDelta] = []
        for choice in objects(chunk.get("choices")):
            for name in ("delta", "message"):
                for delta in objects(choice.get(name)):
                    shown += self._delta(delta)
            self._finished(choice.get("finish_reason"))
        return shown

    def reply(self, request_bytes: int) -> ModelReply:
        """The whole reply. Raises StreamBroken when it did not end properly: then nothing in it may run."""
        if self._finish is None and not self._ends_some_other_way():
            why = f'ended with "{self._other_finish}"' if self._other_finish else "stopped without a finish reason"
            raise StreamBroken(f"The model's reply {why}: the stream broke, and nothing in it was run.")
        finish = self._finish or "stop"
        return ModelReply(
            text=str(self._text),
            tool_calls=self._calls.calls() if finish == "stop" else (),
            finish=finish,
            usage=self._usage,
            reasoning=str(self._reasoning),
            request_bytes=request_bytes,
        )

    def _ends_some_other_way(self) -> bool:
        """A finish reason that only this endpoint knows is enough for a text, and not for calls."""
        other = self._other_finish
        return bool(other) and other not in _INTERRUPTED and not self._calls and bool(str(self._text))

    def _delta(self, delta: Mapping[str, Any]) -> list[TextDelta | ReasoningDelta]:
        thought, text = _parts(delta.get("content"))
        reasoning = plain(delta.get("reasoning_content")) or plain(delta.get("reasoning"))
        for fragment in objects(delta.get("tool_calls")):
            self._calls.add(fragment)
        for function in objects(delta.get("function_call")):
            self._calls.add({"function": function})
        if refusal := plain(delta.get("refusal")):
            text += refusal
            self._finished("refusal")
        shown: list[TextDelta | ReasoningDelta] = []
        if piece := self._reasoning.add(reasoning + thought):
            shown.append(ReasoningDelta(piece))
        if piece := self._text.add(text):
            shown.append(TextDelta(piece))
        return shown

    def _finished(self, reason: object) -> None:
        """Of two finish reasons the worse one counts."""
        if not isinstance(reason, str) or not reason:
            return
        known = _FINISHES.get(reason.lower())
        if known is None:
            self._other_finish = reason
        elif self._finish is None or _WORSE.index(known) > _WORSE.index(self._finish):
            self._finish = known


def _parts(content: object) -> tuple[str, str]:
    """Reasoning and text of a content that is a string, a number, or a list of parts."""
    thought: list[str] = []
    text: list[str] = []
    for part in cast("list[object]", content) if isinstance(content, list) else [content]:
        if isinstance(part, dict):
            fields = cast("Mapping[str, Any]", part)
            text.append(plain(fields.get("text")))
            thinking = fields.get("thinking")
            thought += [plain(thinking), *(plain(inner.get("text")) for inner in objects(thinking))]
        else:
            text.append(plain(part))
    return "".join(thought), "".join(text)


def _usage(usage: Mapping[str, Any]) -> Usage:
    details: Any = usage.get("prompt_tokens_details")
    cached = cast("Mapping[str, Any]", details).get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        input_tokens=tokens(usage.get("prompt_tokens")),
        output_tokens=tokens(usage.get("completion_tokens")),
        cached_tokens=tokens(cached) or tokens(usage.get("prompt_cache_hit_tokens")),
        requests=1,
    )
