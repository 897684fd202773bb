"""A request as the chat completions format has it: the same messages are the same bytes, and few of them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hel_lsp.messages import AssistantMessage, Message, SystemMessage, ToolDefinition, ToolMessage, UserMessage
from hel_lsp.models.text import valid_name
from hel_lsp.ports import ModelRequest
from hel_lsp.settings import ModelSettings

_OURS = ("stream", "messages", "tools")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What compatible endpoints disagree on. It starts with what most take and changes when one complains."""

    max_tokens_field: str = "max_tokens"
    stream_options: bool = True
    echo_reasoning: bool = False

    def adapted(self, complaint: str) -> Dialect:
        """The dialect for an endpoint that says `complaint` of this one; the same where it names no field of it."""
        if re.search(r"\breasoning_content\b", complaint):
            return dataclasses.replace(self, echo_reasoning=not self.echo_reasoning)
        if re.search(r"\bmax_tokens\b", complaint):
            return dataclasses.replace(self, max_tokens_field="max_completion_tokens")
        if re.search(r"\bstream_options\b", complaint):
            return dataclasses.replace(self, stream_options=False)
        return self


def request_body(request: ModelRequest, model: str, settings: ModelSettings, dialect: Dialect) -> bytes:
    """The body of a streamed request, UTF-8 without needless blanks.

    `model.extraBody` may set every field but those that the conversation itself needs. Half characters, which UTF-8
    does not have, become question marks.
    """
    body: dict[str, Any] = {"model": model, "stream": True}
    if dialect.stream_options:
        body["stream_options"] = {"include_usage": True}
    body[dialect.max_tokens_field] = settings.max_output_tokens
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    body.update({name: value for name, value in (settings.extra_body or {}).items() if name not in _OURS})
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    body["messages"] = [_message(message, dialect) for message in request.messages]
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _tool(tool: ToolDefinition) -> Mapping[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _message(message: Message, dialect: Dialect) -> Mapping[str, Any]:
    match message:
        case SystemMessage(text):
            return {"role": "system", "content": text}
        case UserMessage(text):
            return {"role": "user", "content": text}
        case ToolMessage(call_id, text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case AssistantMessage():
            return _assistant(message, dialect)


def _assistant(message: AssistantMessage, dialect: Dialect) -> Mapping[str, Any]:
    # An empty text, not null: templates of local models join it to other text.
    wire: dict[str, Any] = {"role": "assistant", "content": message.text}
    if dialect.echo_reasoning and (message.reasoning or message.tool_calls):
        wire["reasoning_content"] = message.reasoning
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": valid_name(call.name), "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    return wire
