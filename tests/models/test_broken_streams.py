"""Recorded streams, split, cut and mangled at every byte: the reply is whole, or an error, and nothing between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hel_lsp.errors import ModelError
from hel_lsp.models.config import Endpoint
from hel_lsp.models.openai import OpenAIModel
from hel_lsp.ports import ModelReply, StreamEvent
from hel_lsp.settings import ModelSettings
from tests.models.played import DONE, HELLO, PlayedServer, call, chunk, played

WRITE = json.dumps({"path": "ü", "content": '"😀"\u2028\n'}, ensure_ascii=False)

RECORDED: dict[str, bytes] = {
    "chat completions": b"".join(
        (
            chunk({"role": "assistant", "content": None}),
            chunk({"content": "Zürich "}),
            chunk(call(0, "call_1", "write_file", "")),
            *(chunk(call(0, None, None, WRITE[start : start + 20])) for start in range(0, len(WRITE), 20)),
            chunk(call(1, "call_2", "bash", '{"command":"ls"}')),
            chunk({}, "tool_calls"),
            chunk(None, usage={"prompt_tokens": 10, "completion_tokens": 5}),
            DONE,
        )
    ),
    "whole calls under one index": b"".join(
        (
            b": keep-alive\n\n",
            chunk({"reasoning_content": "hm"}),
            chunk(call(0, "a", "write_file", WRITE)),
            chunk(call(0, "b", "bash", '{"command":"ls"}')),
            chunk({}, "stop", usage={"prompt_tokens": 10}),
        )
    ).replace(b"\n\n", b"\r\n\r\n"),
    "parts and no indexes": b"".join(
        (
            'data: {"choices":[{"delta":{"content":[{"type":"text","text":"ü😀"}]}}]}\n\n'.encode(),
            chunk(call(None, "a", "write_file", WRITE[:15])),
            chunk(call(None, None, None, WRITE[15:])),
            chunk(call(None, "b", "bash", '{"command":"ls"}')),
            chunk({}, "tool_calls"),
            DONE,
        )
    ),
}
CALLS = [("write_file", WRITE), ("bash", '{"command":"ls"}')]

Ask = Callable[..., ModelReply | None]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Plays pieces of a stream, for both tries; the reply, or None for a ModelError. All else fails the test."""
    with asyncio.Runner() as runner:
        server = PlayedServer()
        runner.run(server.start())
        model = OpenAIModel(
            Endpoint(server.base_url, "m", "HEL_API_KEY"), ModelSettings(), sleep=lambda _: asyncio.sleep(0)
        )

        async def asked(pieces: Sequence[bytes], cut: bool) -> ModelReply | None:
            server.replies = [played(*filter(None, pieces), end="cut" if cut else "whole")] * 2
            events: list[StreamEvent] = []
            try:
                async for item in model.stream(HELLO):
                    assert not any(isinstance(earlier, ModelReply) for earlier in events)
                    events.append(item)
            except ModelError:
                assert not any(isinstance(item, ModelReply) for item in events)
                return None
            assert isinstance(events[-1], ModelReply)
            return events[-1]

        yield lambda *pieces, cut=False: runner.run(asked(pieces, cut))
        runner.run(model.aclose())
        runner.run(server.stop())


def calls(reply: ModelReply | None) -> list[tuple[str, str]] | None:
    return None if reply is None else [(item.name, item.arguments) for item in reply.tool_calls]


each_recording = pytest.mark.parametrize("stream", RECORDED.values(), ids=RECORDED)
often = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@each_recording
@given(data=st.data())
@often
def test_a_stream_may_be_split_anywhere(ask: Ask, stream: bytes, data: st.DataObject) -> None:
    at = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=6)))
    assert calls(ask(*(stream[start:end] for start, end in pairwise((0, *at, len(stream)))))) == CALLS


@each_recording
def test_a_stream_may_come_byte_by_byte(ask: Ask, stream: bytes) -> None:
    assert calls(ask(*(stream[at : at + 1] for at in range(len(stream))))) == CALLS


@each_recording
def test_a_stream_that_ends_early_at_any_byte_gives_all_calls_or_an_error(ask: Ask, stream: bytes) -> None:
    finish = stream.index(b'"finish_reason":"')
    for at in range(len(stream)):
        outcome = calls(ask(stream[:at]))
        assert outcome is None or (outcome == CALLS and at > finish)


def test_a_connection_that_drops_at_any_byte_gives_all_calls_or_an_error(ask: Ask) -> None:
    stream = RECORDED["whole calls under one index"]
    finish = stream.index(b'"finish_reason":"')
    for at in range(len(stream)):
        outcome = calls(ask(stream[:at], cut=True))
        assert outcome is None or (outcome == CALLS and at > finish)


@each_recording
@given(data=st.data())
@often
def test_a_stream_with_mangled_bytes_is_a_reply_or_an_error(ask: Ask, stream: bytes, data: st.DataObject) -> None:
    mangled = bytearray(stream)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mangled) - 1))
        kind = data.draw(st.sampled_from(("replace", "insert", "delete", "repeat")))
        if kind == "replace":
            mangled[at] = data.draw(st.integers(0, 255))
        elif kind == "insert":
            mangled[at:at] = data.draw(st.binary(min_size=1, max_size=8))
        elif kind == "delete":
            del mangled[at : at + data.draw(st.integers(1, 60))]
        else:
            mangled[at:at] = mangled[at : at + data.draw(st.integers(1, 200))]
    ask(bytes(mangled), cut=data.draw(st.booleans()))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats()
    | st.sampled_from(["", "a", "stop", "{", "}", "\ud83d"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["index", "id", "function", "name", "arguments", "content", "text", "thinking", "tool_calls"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
deltas = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("content", "tool_calls", "function_call", "reasoning", "refusal"), json_values)
)
odd_chunks = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(st.fixed_dictionaries({}, optional={"delta": deltas | json_values, "index": json_values}))
        | json_values,
        "usage": json_values,
        "error": json_values,
    },
)


@given(chunks=st.lists(odd_chunks | json_values, max_size=6))
@often
def test_chunks_of_any_shape_are_a_reply_or_an_error(ask: Ask, chunks: list[object]) -> None:
    events = [f"data: {json.dumps(item)}\n\n".encode() for item in chunks]
    reply = ask(*events, chunk({}, "tool_calls"), DONE)
    if reply is not None:
        assert all(item.id and item.name for item in reply.tool_calls)
        json.dumps([(item.name, item.arguments) for item in reply.tool_calls], ensure_ascii=False).encode()
        reply.text.encode()
        reply.reasoning.encode()
