"""Pieces of a stream in Anthropic's messages format."""

from __future__ import annotations

import json
from typing import Any


def sse(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


PING = sse("ping")
END = sse("message_stop")


def start(**usage: int) -> bytes:
    return sse("message_start", message={"type": "message", "role": "assistant", "content": [], "usage": usage})


def block(index: int, kind: str, *deltas: dict[str, Any], **fields: Any) -> bytes:
    """One block from its start to its stop."""
    return b"".join(
        (
            sse("content_block_start", index=index, content_block={"type": kind, **fields}),
            *(sse("content_block_delta", index=index, delta=delta) for delta in deltas),
            sse("content_block_stop", index=index),
        )
    )


def text(index: int, *pieces: str) -> bytes:
    return block(index, "text", *({"type": "text_delta", "text": piece} for piece in pieces), text="")


def use(index: int, id: str, name: str, *pieces: str) -> bytes:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces))
    return block(index, "tool_use", *deltas, id=id, name=name, input={})


def thinking(index: int, thought: str, signature: str) -> bytes:
    deltas = ({"type": "thinking_delta", "thinking": thought}, {"type": "signature_delta", "signature": signature})
    return block(index, "thinking", *deltas, thinking="", signature="")


def stop(reason: str | None, **usage: int) -> bytes:
    return sse("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)


def message(*blocks: bytes, reason: str = "end_turn") -> bytes:
    """A whole stream."""
    return b"".join((start(input_tokens=10, output_tokens=1), PING, *blocks, stop(reason, output_tokens=5), END))
