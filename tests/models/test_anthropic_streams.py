"""Replies in Anthropic's format over a real connection: what is shown, what runs, what is asked again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hel_lsp.errors import ModelRefused, ModelUnavailable, PromptTooLong, StreamBroken
from hel_lsp.messages import Usage
from hel_lsp.ports import ReasoningDelta, TextDelta
from tests.models.anthropic_stream import END, PING, block, message, sse, start, stop, text, thinking, use
from tests.models.played import HELLO, Client, Played, played, refused

HI = played(message(text(0, "hi")))
CALLED = (text(0, "I will"), use(1, "toolu_1", "f", '{"x":', "1}"), use(2, "toolu_2", "g"))


async def test_text_and_reasoning_are_shown_as_they_come(claude: Client) -> None:
    answer = await claude.ask(played(message(thinking(0, "hm", "c2ln"), text(1, "Good ", "day"))))
    assert answer.events[:3] == [ReasoningDelta("hm"), TextDelta("Good "), TextDelta("day")]
    assert (answer.reply.text, answer.reply.reasoning, answer.reply.finish) == ("Good day", "hm", "stop")
    assert answer.reply.request_bytes == len(claude.server.bodies[0])


@pytest.mark.parametrize("reason", ["tool_use", "end_turn", "stop_sequence"])
async def test_calls_are_whole_and_in_order(claude: Client, reason: str) -> None:
    answer = await claude.ask(played(message(*CALLED, reason=reason)))
    assert answer.calls == [("f", '{"x":1}'), ("g", "{}")]
    assert [call.id for call in answer.reply.tool_calls] == ["toolu_1", "toolu_2"]


async def test_blocks_may_come_mixed(claude: Client) -> None:
    def delta(index: int, piece: str) -> bytes:
        return sse("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece})

    begun = [
        sse("content_block_start", index=index, content_block={"type": "tool_use", "id": name, "name": name})
        for index, name in enumerate("fg")
    ]
    ended = [sse("content_block_stop", index=index) for index in (1, 0)]
    pieces = (delta(0, '{"x"'), delta(1, '{"y"'), delta(0, ":1}"), delta(1, ":2}"))
    answer = await claude.ask(played(message(*begun, *pieces, *ended, reason="tool_use")))
    assert answer.calls == [("f", '{"x":1}'), ("g", '{"y":2}')]


async def test_a_call_may_begin_with_its_whole_input(claude: Client) -> None:
    whole = block(0, "tool_use", id="a", name="f", input={"x": "é"})
    assert (await claude.ask(played(message(whole, reason="tool_use")))).calls == [("f", '{"x": "é"}')]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (use(0, "a", "f"), "{}"),
        (block(0, "tool_use", id="a", name="f", input={}), "{}"),
        (block(0, "tool_use", id="a", name="f"), ""),
        (block(0, "tool_use", id="a", name="f", input=None), ""),
    ],
    ids=["nothing streamed", "no deltas", "no input", "null"],
)
async def test_an_empty_input_is_an_empty_object_and_a_missing_one_is_missing(
    claude: Client, call: bytes, arguments: str
) -> None:
    assert (await claude.ask(played(message(call, reason="tool_use")))).calls == [("f", arguments)]


async def test_calls_without_or_with_the_same_ids_get_their_own(claude: Client) -> None:
    answer = await claude.ask(played(message(use(0, "", "f"), use(1, "a", "f"), use(2, "a", "f"))))
    assert len({call.id for call in answer.reply.tool_calls}) == 3


async def test_arguments_are_kept_as_the_model_wrote_them(claude: Client) -> None:
    answer = await claude.ask(played(message(use(0, "a", "f", '{"path":"a\n"', ",")), use(1, "b", "g")))
    assert answer.calls == [("f", '{"path":"a\n",')]


async def test_pings_comments_and_what_nobody_knows_are_passed_over(claude: Client) -> None:
    odd = (
        b": keep-alive\n\n",
        PING,
        sse("content_block_start", index=0, content_block={"type": "oracle"}),
        sse("content_block_delta", index=0, delta={"type": "vision", "text": "not for you"}),
        sse("content_block_stop", index=0),
        sse("news", text="none"),
    )
    answer = await claude.ask(played(message(*odd, text(1, "hi"), PING)))
    assert answer.shown == answer.reply.text == "hi"


async def test_a_reply_that_is_one_json_document_is_understood(claude: Client) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
    ]
    body = {"type": "message", "content": blocks, "stop_reason": "tool_use", "usage": {"input_tokens": 3}}
    answer = await claude.ask(Played((json.dumps(body).encode(),), headers={"Content-Type": "application/json"}))
    assert (answer.shown, answer.calls, answer.reply.usage.input_tokens) == ("hi", [("f", '{"x": 1}')], 3)
    assert "c2ln" in answer.reply.signed_reasoning


async def test_a_server_that_stays_silent_after_the_end_holds_up_nothing(claude: Client) -> None:
    assert (await claude.ask(Played((message(text(0, "hi")),), end="open"))).reply.text == "hi"
    assert (await claude.ask(HI)).reply.text == "hi"


# ------------------------------------------------------------------ how a reply ends


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
async def test_a_reply_that_was_cut_off_at_the_limit_has_no_calls(claude: Client, reason: str) -> None:
    answer = await claude.ask(played(message(*CALLED, reason=reason)))
    assert (answer.reply.finish, answer.reply.tool_calls, answer.reply.text) == ("length", (), "I will")


async def test_a_refusal_has_no_calls_and_says_why(claude: Client) -> None:
    end = sse("message_delta", delta={"stop_reason": "refusal", "stop_details": {"explanation": "Too hot."}})
    answer = await claude.ask(played(b"".join((start(), use(0, "a", "f"), end, END))))
    assert (answer.reply.finish, answer.reply.tool_calls, answer.reply.text) == ("refusal", (), "Too hot.")


async def test_a_pause_is_said_and_nothing_runs(claude: Client) -> None:
    with pytest.raises(ModelRefused, match=r"paused in the middle.*model\.extraBody"):
        await claude.ask(played(message(*CALLED, reason="pause_turn")))


async def test_two_ends_count_once_and_the_worse_one(claude: Client) -> None:
    twice = played(b"".join((start(), use(0, "a", "f"), stop("tool_use"), stop("tool_use"), END)))
    assert (await claude.ask(twice)).calls == [("f", "{}")]
    worse = played(b"".join((start(), use(0, "a", "f"), stop("max_tokens"), stop("tool_use"), END)))
    assert (await claude.ask(worse)).reply.finish == "length"


async def test_a_stop_reason_that_nobody_knows_is_enough_for_a_text_and_not_for_calls(claude: Client) -> None:
    assert (await claude.ask(played(message(text(0, "hi"), reason="bored")))).reply.text == "hi"
    odd = played(message(use(0, "a", "f"), reason="bored"))
    with pytest.raises(StreamBroken, match="bored"):
        await claude.ask(odd, odd)


CALL = use(0, "a", "f", "{}")
BROKEN = {
    "no end": (b"".join((start(), CALL, stop("tool_use"))), "without its end"),
    "nothing at all": (PING, "without its end"),
    "no stop reason": (b"".join((start(), CALL, stop(None), END)), "without a stop reason"),
    "a call without an end": (
        message(CALL.rpartition(b"event: content_block_stop")[0], reason="tool_use"),
        "tool call without an end",
    ),
    "a call without a name": (message(use(0, "a", "", "{}"), reason="tool_use"), "without a name"),
    "a piece of nothing": (message(CALL, sse("content_block_delta", index=1, delta={})), "never began"),
    "a piece after the end of its block": (
        message(CALL, sse("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "x"})),
        "never began",
    ),
    "a call in pieces of text": (
        message(block(0, "tool_use", {"type": "text_delta", "text": "{"}, name="f")),
        "no known form",
    ),
    "no JSON": (start() + b"data: {\n\n" + CALL + stop("tool_use") + END, "not JSON"),
    "half a character": (message(use(0, "a", "f", "@")).replace(b"@", rb"\ud83d"), "half a character"),
}


@pytest.mark.parametrize(("stream", "says"), BROKEN.values(), ids=BROKEN)
async def test_a_stream_that_broke_is_asked_for_once_more_and_nothing_of_it_runs(
    claude: Client, stream: bytes, says: str
) -> None:
    answer = await claude.ask(played(stream), HI)
    assert (answer.reply.text, answer.calls, len(answer.retries)) == ("hi", [], 1)
    with pytest.raises(StreamBroken, match=says):
        await claude.ask(played(stream), played(stream))


async def test_a_stream_that_breaks_after_text_is_not_asked_for_again(claude: Client) -> None:
    cut = played(start(), text(0, "I will"), CALL, end="cut")
    with pytest.raises(StreamBroken, match="dropped"):
        await claude.ask(cut)
    assert len(claude.server.bodies) == 1


# ------------------------------------------------------------------ usage


async def test_usage_counts_what_came_from_the_cache_and_what_went_into_it(claude: Client) -> None:
    read = {"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 1}
    stream = b"".join((start(**read), text(0, "hi"), stop("end_turn", output_tokens=7), END))
    assert (await claude.ask(played(stream))).reply.usage == Usage(123, 7, 100, 1)


async def test_usage_may_come_at_the_end_alone_and_zeros_there_take_nothing_back(claude: Client) -> None:
    late = b"".join((start(input_tokens=0), text(0, "hi"), stop("end_turn", input_tokens=9, output_tokens=2), END))
    assert (await claude.ask(played(late))).reply.usage == Usage(9, 2, 0, 1)
    zeros = b"".join((start(input_tokens=9), text(0, "hi"), stop("end_turn", input_tokens=0, output_tokens=2), END))
    assert (await claude.ask(played(zeros))).reply.usage == Usage(9, 2, 0, 1)


@pytest.mark.parametrize("usage", [None, 5, {"input_tokens": "many", "output_tokens": -1}])
async def test_usage_that_makes_no_sense_counts_nothing(claude: Client, usage: Any) -> None:
    stream = sse("message_start", message={"usage": usage}) + text(0, "hi") + stop("end_turn") + END
    assert (await claude.ask(played(stream))).reply.usage == Usage(0, 0, 0, 1)


# ------------------------------------------------------------------ errors


def error(kind: str, says: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": says}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, error("invalid_request_error", "tools.0: bad"), r"tools\.0: bad.*model\.extraBody"),
        (401, error("authentication_error", "invalid x-api-key"), r"invalid x-api-key.*variable HEL_API_KEY"),
        (403, error("permission_error", "not yours"), r"not yours.*variable HEL_API_KEY"),
        (404, error("not_found_error", "model: x"), r'model: x.*model\.name \("test-model"\)'),
    ],
)
async def test_a_refusal_is_final_and_says_what_to_check(claude: Client, status: int, body: Any, says: str) -> None:
    with pytest.raises(ModelRefused, match=says):
        await claude.ask(refused(status, body))
    assert (claude.waits, len(claude.server.bodies)) == ([], 1)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, error("request_too_large", "Request exceeds the maximum size")),
        (400, error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")),
        (400, error("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000")),
    ],
)
async def test_a_prompt_that_is_too_long_is_told_from_other_refusals(claude: Client, status: int, body: Any) -> None:
    with pytest.raises(PromptTooLong):
        await claude.ask(refused(status, body))


async def test_an_endpoint_that_is_busy_is_asked_again_when_it_says(claude: Client) -> None:
    limited = refused(429, error("rate_limit_error", "slow down"), Retry_After="7")
    answer = await claude.ask(limited, refused(529, error("overloaded_error", "Overloaded")), HI)
    assert answer.reply.text == "hi"
    assert claude.waits == [7, 1]
    assert "Overloaded" in answer.retries[1].reason


OVERLOADED = sse("error", error={"type": "overloaded_error", "message": "Overloaded"})


async def test_an_overload_inside_the_stream_is_waited_for_before_text_and_an_error_after(claude: Client) -> None:
    answer = await claude.ask(played(start(), CALL, OVERLOADED), HI)
    assert (answer.reply.text, answer.calls, claude.waits) == ("hi", [], [0.5])
    claude.plays(played(start(), text(0, "I will"), OVERLOADED))
    with pytest.raises(ModelUnavailable, match="Overloaded"):
        _ = [item async for item in claude.model.stream(HELLO)]
    with pytest.raises(ModelUnavailable, match="Gave up after 5 tries"):
        await claude.ask(*[played(start(), OVERLOADED)] * 5)


async def test_another_error_inside_the_stream_is_final(claude: Client) -> None:
    bad = sse("error", error={"type": "invalid_request_error", "message": "sk-secret-key is bad"})
    with pytest.raises(ModelRefused, match=r"\[key\] is bad"):
        await claude.ask(played(start(), CALL, bad, stop("tool_use"), END))
