"""A conversation as `hel.resume` answers it: what a transcript needs, and nothing that only the model is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hel_lsp.messages import AssistantMessage, Message, ToolMessage, UserMessage


def history_messages(history: Sequence[Message]) -> list[dict[str, Any]]:
    """`{role, text}` for each message; the assistant's with `toolCalls`, a tool's with the `callId` it answers."""
    shown: list[dict[str, Any]] = []
    for message in history:
        match message:
            case UserMessage(text, prompt):
                shown.append({"role": "user", "text": prompt or text})
            case AssistantMessage(text, calls):
                made = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
                shown.append({"role": "assistant", "text": text, **({"toolCalls": made} if made else {})})
            case ToolMessage(call_id, text):
                shown.append({"role": "tool", "callId": call_id, "text": text})
            case _:
                pass
    return shown
