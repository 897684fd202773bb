"""Anthropic's streams, split, cut and mangled at every byte: the reply is whole, or an error, and nothing between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hel_lsp.errors import ModelError
from hel_lsp.messages import AssistantMessage
from hel_lsp.models.anthropic import AnthropicModel
from hel_lsp.models.anthropic_request import Dialect, request_body
from hel_lsp.models.config import Endpoint
from hel_lsp.ports import ModelReply, ModelRequest, StreamEvent
from hel_lsp.settings import ModelSettings
from tests.models.anthropic_stream import END, message, sse, text, thinking, use
from tests.models.played import HELLO, PlayedServer, played

WRITE = json.dumps({"path": "ü", "content": '"😀"\u2028\n'}, ensure_ascii=False)
STREAM = message(
    thinking(0, "hm, Zürich", "c2lnbmF0dXJl"),
    text(1, "Zürich ", "😀"),
    use(2, "toolu_1", "write_file", *(WRITE[at : at + 20] for at in range(0, len(WRITE), 20))),
    use(3, "toolu_2", "bash", '{"command":"ls"}'),
    reason="tool_use",
)
RECORDED = {"line feeds": STREAM, "carriage returns": STREAM.replace(b"\n", b"\r\n")}
CALLS = [("write_file", WRITE), ("bash", '{"command":"ls"}')]

Ask = Callable[..., ModelReply | None]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Plays pieces of a stream, for every try; the reply, or None for a ModelError. All else fails the test."""
    with asyncio.Runner() as runner:
        server = PlayedServer()
        runner.run(server.start())
        endpoint = Endpoint(server.base_url, "m", "HEL_API_KEY")
        model = AnthropicModel(endpoint, ModelSettings(), sleep=lambda _: asyncio.sleep(0))

        async def asked(pieces: Sequence[bytes], cut: bool) -> ModelReply | None:
            server.replies = [played(*filter(None, pieces), end="cut" if cut else "whole")] * 6
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


def check_usable(reply: ModelReply) -> None:
    """What the reply becomes in the history can be sent again."""
    assert all(item.id and item.name for item in reply.tool_calls)
    kept = AssistantMessage(reply.text, reply.tool_calls, reply.reasoning, reply.signed_reasoning)
    body = json.loads(request_body(ModelRequest([kept], []), "m", ModelSettings(), Dialect()))
    assert all(block["type"] for sent in body["messages"] for block in sent["content"])


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
    reply = ask(*(stream[at : at + 1] for at in range(len(stream))))
    assert calls(reply) == CALLS
    assert reply is not None
    check_usable(reply)


@pytest.mark.parametrize(("cut", "step"), [(False, 1), (True, 4)], ids=["ended", "dropped"])
def test_a_stream_that_stops_anywhere_gives_all_calls_or_an_error(ask: Ask, cut: bool, step: int) -> None:
    end = STREAM.index(b'"message_stop"')
    for at in range(0, len(STREAM), step):
        outcome = calls(ask(STREAM[:at], cut=cut))
        assert outcome is None or (outcome == CALLS and at > end)


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
    reply = ask(bytes(mangled), cut=data.draw(st.booleans()))
    if reply is not None:
        check_usable(reply)


@given(order=st.permutations(STREAM.split(b"\n\n")[:-1]), left_out=st.integers(0, 3))
@often
def test_events_in_any_order_are_a_reply_or_an_error(ask: Ask, order: list[bytes], left_out: int) -> None:
    reply = ask(*(event + b"\n\n" for event in order[left_out:]))
    if reply is not None:
        check_usable(reply)


kinds = st.sampled_from(
    ("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message")
)
parts = st.sampled_from(
    ("text", "tool_use", "thinking", "redacted_thinking", "text_delta", "input_json_delta", "signature_delta", "a")
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats()
    | parts
    | st.sampled_from(("", "{", "}", "\ud83d", "tool_use", "max_tokens", "refusal")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {},
            optional={
                "type": parts,
                **dict.fromkeys(
                    ("id", "name", "input", "text", "thinking", "signature", "data", "partial_json", "usage"), inner
                ),
            },
        )
    ),
    max_leaves=8,
)
odd_events = st.fixed_dictionaries(
    {"type": kinds | json_values},
    optional=dict.fromkeys(
        ("index", "content_block", "delta", "message", "usage", "content", "stop_reason", "stop_details", "error"),
        json_values,
    ),
)


@given(events=st.lists(odd_events | json_values, max_size=8))
@often
def test_events_of_any_shape_are_a_reply_or_an_error(ask: Ask, events: list[object]) -> None:
    pieces = [f"data: {json.dumps(item)}\n\n".encode() for item in events]
    reply = ask(*pieces, sse("message_delta", delta={"stop_reason": "tool_use"}), END)
    if reply is not None:
        check_usable(reply)
        reply.text.encode()
        reply.reasoning.encode()
