"""Replies as compatible endpoints really send them, over a real connection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hel_lsp.errors import ModelRefused, PromptTooLong, StreamBroken
from hel_lsp.messages import Usage
from hel_lsp.ports import ReasoningDelta, TextDelta
from tests.models.played import DONE, Client, Played, call, chunk, event, played

STOP = chunk({}, "stop")
CALLS = chunk({}, "tool_calls")


async def test_text_is_shown_as_it_comes_and_is_whole_in_the_reply(client: Client) -> None:
    answer = await client.ask(
        played(
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "Good "}),
            chunk({"content": "day"}),
            STOP,
            DONE,
        )
    )
    assert [item.text for item in answer.events if isinstance(item, TextDelta)] == ["Good ", "day"]
    assert answer.reply.text == "Good day"
    assert answer.reply.finish == "stop"


# ------------------------------------------------------------------ tool calls


async def test_an_empty_id_or_name_in_a_later_delta_is_absent(client: Client) -> None:
    answer = await client.ask(
        played(chunk(call(0, "c1", "search_replace", "{")), chunk(call(0, "", "", "}")), CALLS, DONE)
    )
    assert answer.calls == [("search_replace", "{}")]
    assert answer.reply.tool_calls[0].id == "c1"


SPLIT_CALLS: dict[str, list[dict[str, Any]]] = {
    "one after another": [
        call(0, "a", "f", '{"x"'),
        call(0, None, None, ":1}"),
        call(1, "b", "g", '{"y"'),
        call(1, None, None, ":2}"),
    ],
    "interleaved": [
        call(0, "a", "f"),
        call(1, "b", "g"),
        call(0, args='{"x"'),
        call(1, args='{"y"'),
        call(0, args=":1}"),
        call(1, args=":2}"),
    ],
    "no index": [
        call(None, "a", "f", '{"x"'),
        call(None, args=":1}"),
        call(None, "b", "g", '{"y"'),
        call(None, args=":2}"),
    ],
    "no index, ids repeated": [
        call(None, "a", "f", '{"x"'),
        call(None, "b", "g", '{"y"'),
        call(None, "a", args=":1}"),
        call(None, "b", args=":2}"),
    ],
    "index null": [
        {"tool_calls": [{"index": None, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]},
        {"tool_calls": [{"index": None, "id": "b", "function": {"name": "g", "arguments": '{"y":2}'}}]},
    ],
    "the same index for all": [
        call(0, "a", "f", '{"x"'),
        call(0, None, None, ":1}"),
        call(0, "b", "g", '{"y"'),
        call(0, None, None, ":2}"),
    ],
    "the same index for all, interleaved by id": [
        call(0, "a", "f", '{"x"'),
        call(0, "b", "g", '{"y"'),
        call(0, "a", "", ":1}"),
        call(0, "b", "", ":2}"),
    ],
    "the same index and no ids": [
        call(0, None, "f", '{"x":1}'),
        call(0, None, "g", '{"y"'),
        call(0, None, None, ":2}"),
    ],
    "no index and no ids": [call(None, None, "f", '{"x":1}'), call(None, None, "g", '{"y":2}')],
    "indexes from 1": [call(1, "a", "f", '{"x":1}'), call(2, "b", "g", '{"y":2}')],
    "one id for all": [
        call(0, "a", "f", '{"x"'),
        call(1, "a", "g", '{"y"'),
        call(0, "a", args=":1}"),
        call(1, "a", args=":2}"),
    ],
    "a new id for each fragment": [
        call(0, "a", "f", '{"x"'),
        call(0, "a2", args=":1}"),
        call(1, "b", "g", '{"y"'),
        call(1, "b2", args=":2}"),
    ],
    "the name repeated": [
        call(0, "a", "f", '{"x"'),
        call(0, "a", "f", ":1}"),
        call(1, "b", "g", '{"y"'),
        call(1, None, "g", ":2}"),
    ],
    "the name repeated without ids": [
        call(0, None, "f", '{"x"'),
        call(0, None, "f", ":1}"),
        call(1, None, "g", '{"y"'),
        call(1, None, "g", ":2}"),
    ],
    "the name after the id": [call(0, "a"), call(0, None, "f", '{"x":1}'), call(1, "b"), call(1, None, "g", '{"y":2}')],
    "the id after the name": [
        call(0, None, "f", '{"x"'),
        call(0, "a", None, ":1}"),
        call(1, None, "g", '{"y"'),
        call(1, "b", None, ":2}"),
    ],
    "the arguments before the name": [
        call(0, "a", None, '{"x"'),
        call(0, None, "f", ":1}"),
        call(1, "b", "g", '{"y":2}'),
    ],
    "two fragments in one delta": [
        {"tool_calls": [*call(0, "a", "f", '{"x":1}')["tool_calls"], *call(1, "b", "g", '{"y":2}')["tool_calls"]]}
    ],
    "one fragment that is not in a list": [
        {"tool_calls": call(0, "a", "f", '{"x":1}')["tool_calls"][0]},
        call(1, "b", "g", '{"y":2}'),
    ],
}


@pytest.mark.parametrize("deltas", SPLIT_CALLS.values(), ids=SPLIT_CALLS)
async def test_two_calls_are_told_apart(client: Client, deltas: list[dict[str, Any]]) -> None:
    answer = await client.ask(played(*map(chunk, deltas), CALLS, DONE))
    assert answer.calls == [("f", '{"x":1}'), ("g", '{"y":2}')]
    ids = [item.id for item in answer.reply.tool_calls]
    assert all(ids)
    assert len(set(ids)) == 2


async def test_two_calls_of_one_tool_without_index_and_id_are_two(client: Client) -> None:
    answer = await client.ask(
        played(chunk(call(name="f", args='{"x":1}')), chunk(call(name="f", args='{"x":2}')), CALLS)
    )
    assert answer.calls == [("f", '{"x":1}'), ("f", '{"x":2}')]


async def test_arguments_under_an_index_never_opened_go_to_the_only_call(client: Client) -> None:
    answer = await client.ask(
        played(chunk(call(0, "a", "f")), chunk(call(1, args='{"x"')), chunk(call(1, args=":1}")), CALLS)
    )
    assert answer.calls == [("f", '{"x":1}')]


async def test_arguments_that_could_be_anyones_break_the_reply(client: Client) -> None:
    two = (chunk(call(0, "a", "f", "{}")), chunk(call(1, "b", "g", "{}")))
    stray = played(*two, chunk(call(2, args='{"x":1}')), CALLS)
    with pytest.raises(StreamBroken, match="belong to no tool call"):
        await client.ask(stray, stray)


async def test_a_call_without_a_name_breaks_the_reply(client: Client) -> None:
    nameless = played(chunk(call(0, "a", None, "{}")), CALLS)
    with pytest.raises(StreamBroken, match="without a name"):
        await client.ask(nameless, nameless)


@pytest.mark.parametrize(
    "arguments", ["null", "5", "[]", "", '{"path":\\n"a"}', '{"path":"a","old":"x\ny"}', '{"a":', "{}{}"]
)
async def test_arguments_are_kept_as_the_model_wrote_them(client: Client, arguments: str) -> None:
    answer = await client.ask(played(chunk(call(0, "a", "f", arguments)), CALLS, DONE))
    assert answer.calls == [("f", arguments)]


async def test_arguments_of_null_are_empty(client: Client) -> None:
    delta = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}]}
    assert (await client.ask(played(chunk(delta), CALLS))).calls == [("f", "")]


async def test_arguments_that_come_as_an_object_are_its_json(client: Client) -> None:
    answer = await client.ask(played(chunk(call(0, "a", "f", {"name": "é"})), CALLS))
    assert answer.calls == [("f", '{"name": "é"}')]


async def test_the_older_function_call_is_a_tool_call(client: Client) -> None:
    deltas = (
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": '{"x":'}},
        {"function_call": {"arguments": "1}"}},
    )
    answer = await client.ask(played(*map(chunk, deltas), chunk({}, "function_call")))
    assert answer.calls == [("f", '{"x":1}')]


async def test_made_up_ids_differ_between_replies(client: Client) -> None:
    bare = played(chunk(call(0, None, "f", "{}")), CALLS, DONE)
    first, second = await client.ask(bare), await client.ask(bare)
    assert first.reply.tool_calls[0].id != second.reply.tool_calls[0].id


# ------------------------------------------------------------------ how a reply ends


async def test_stop_with_calls_is_a_reply_with_calls(client: Client) -> None:
    answer = await client.ask(played(chunk(call(0, "a", "f", "{}")), STOP, DONE))
    assert answer.calls == [("f", "{}")]
    assert answer.reply.finish == "stop"


async def test_two_finish_chunks_give_the_calls_once(client: Client) -> None:
    answer = await client.ask(played(chunk(call(0, "a", "f", "{}")), CALLS, STOP, DONE))
    assert answer.calls == [("f", "{}")]


@pytest.mark.parametrize("finishes", [["length"], ["stop", "length"], ["length", "tool_calls"]])
async def test_a_reply_that_was_cut_off_at_the_limit_has_no_calls(client: Client, finishes: list[str]) -> None:
    ends = [chunk({}, finish) for finish in finishes]
    answer = await client.ask(played(chunk({"content": "I will"}), chunk(call(0, "a", "f", '{"x":')), *ends, DONE))
    assert answer.reply.finish == "length"
    assert answer.reply.tool_calls == ()
    assert answer.reply.text == "I will"


@pytest.mark.parametrize("end", [[chunk({}, "content_filter")], [chunk({"refusal": "No."}), STOP]])
async def test_a_refusal_has_no_calls(client: Client, end: list[bytes]) -> None:
    answer = await client.ask(played(chunk(call(0, "a", "f", "{}")), *end, DONE))
    assert answer.reply.finish == "refusal"
    assert answer.reply.tool_calls == ()


async def test_a_server_that_closes_without_done_is_understood(client: Client) -> None:
    assert (await client.ask(played(chunk({"content": "hi"}), STOP))).reply.text == "hi"


async def test_a_last_event_without_its_blank_line_counts(client: Client) -> None:
    assert (await client.ask(played(chunk({"content": "hi"}), STOP.rstrip()))).reply.text == "hi"


async def test_a_connection_that_drops_after_the_finish_reason_has_lost_nothing(client: Client) -> None:
    answer = await client.ask(played(chunk(call(0, "a", "f", "{}")), CALLS, end="cut"))
    assert answer.calls == [("f", "{}")]


async def test_a_finish_reason_that_nobody_knows_is_enough_for_a_text(client: Client) -> None:
    assert (await client.ask(played(chunk({"content": "hi"}), chunk({}, "eos_token"), DONE))).reply.text == "hi"


@pytest.mark.parametrize("finish", ["eos_token", "insufficient_system_resource"])
async def test_a_finish_reason_that_nobody_knows_is_not_enough_for_calls(client: Client, finish: str) -> None:
    odd = played(chunk(call(0, "a", "f", "{}")), chunk({}, finish), DONE)
    with pytest.raises(StreamBroken, match=finish):
        await client.ask(odd, odd)


async def test_a_reply_that_is_one_json_document_is_understood(client: Client) -> None:
    message = {
        "content": "hi",
        "tool_calls": call(None, "a", "f", "{}")["tool_calls"] + call(None, "b", "g", "{}")["tool_calls"],
    }
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3}}
    whole = Played((json.dumps(body).encode(),), headers={"Content-Type": "application/json; charset=utf-8"})
    answer = await client.ask(whole)
    assert answer.shown == "hi"
    assert answer.calls == [("f", "{}"), ("g", "{}")]
    assert answer.reply.usage.input_tokens == 3


async def test_a_name_repeated_beside_an_inner_end_is_still_one_call(client: Client) -> None:
    deltas = (call(0, None, "f", '{"x":{}'), call(0, None, "f", ',"y":1}'), call(0, None, "f", ""))
    answer = await client.ask(played(*map(chunk, deltas), CALLS))
    assert answer.calls == [("f", '{"x":{},"y":1}')]


async def test_a_name_in_pieces_is_one_name(client: Client) -> None:
    deltas = (call(0, "a", "search_"), call(0, None, "replace"), call(0, None, None, "{}"))
    assert (await client.ask(played(*map(chunk, deltas), CALLS))).calls == [("search_replace", "{}")]


async def test_ids_may_be_numbers(client: Client) -> None:
    two: Any = (call(0, 1, "f", "{}"), call(0, 2, "g", "{}"))  # type: ignore[arg-type]
    answer = await client.ask(played(*map(chunk, two), CALLS))
    assert [(item.id, item.name) for item in answer.reply.tool_calls] == [("1", "f"), ("2", "g")]


async def test_a_document_that_is_not_utf_8_is_a_broken_reply(client: Client) -> None:
    broken = Played((b'{"choices":"\xff"}',), headers={"Content-Type": "application/json"})
    with pytest.raises(StreamBroken, match="not UTF-8"):
        await client.ask(broken, broken)


async def test_a_web_page_in_place_of_a_reply_names_the_base_url(client: Client) -> None:
    page = Played((b"<!doctype html><p>Welcome</p>",), headers={"Content-Type": "text/html"})
    with pytest.raises(ModelRefused, match=r"web page. Check model\.baseUrl"):
        await client.ask(page)


# ------------------------------------------------------------------ usage


@pytest.mark.parametrize("last", [{"choices": []}, {}, {"choices": None}, {"choices": [{"delta": {}}]}])
async def test_usage_comes_with_any_shape_of_last_chunk(client: Client, last: dict[str, Any]) -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}
    answer = await client.ask(played(chunk({"content": "hi"}), STOP, event(json.dumps({**last, "usage": usage})), DONE))
    assert answer.reply.usage == Usage(12, 5, 8, 1)


async def test_usage_of_a_provider_with_a_cache_field_of_its_own(client: Client) -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "prompt_cache_hit_tokens": 8}
    assert (await client.ask(played(STOP, chunk(None, usage=usage), DONE))).reply.usage == Usage(12, 5, 8, 1)


@pytest.mark.parametrize(
    "usage", [None, 5, {"prompt_tokens": "many", "completion_tokens": -1, "prompt_tokens_details": None}]
)
async def test_usage_that_makes_no_sense_counts_nothing(client: Client, usage: Any) -> None:
    assert (await client.ask(played(chunk({"content": "x"}, usage=usage), STOP))).reply.usage == Usage(0, 0, 0, 1)


async def test_the_reply_says_how_large_its_request_was(client: Client) -> None:
    answer = await client.ask(played(STOP, DONE))
    assert answer.reply.request_bytes == len(client.server.bodies[0])


# ------------------------------------------------------------------ content


async def test_content_may_be_a_list_of_parts_beside_calls(client: Client) -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "thinking", "thinking": "!"},
        {"type": "text", "text": "hi"},
    ]
    answer = await client.ask(played(chunk({"content": parts, **call(0, "a", "f", "{}")}), CALLS))
    assert answer.reply.text == "hi"
    assert answer.reply.reasoning == "hm!"
    assert answer.calls == [("f", "{}")]


@pytest.mark.parametrize(("content", "text"), [(6, "6"), (1.5, "1.5"), (None, ""), (["a", {"text": "b"}], "ab")])
async def test_content_may_be_no_string(client: Client, content: Any, text: str) -> None:
    assert (await client.ask(played(chunk({"content": content}), STOP))).reply.text == text


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_shown_as_reasoning(client: Client, field: str) -> None:
    answer = await client.ask(played(chunk({field: "let me "}), chunk({field: "see"}), chunk({"content": "7"}), STOP))
    assert [item.text for item in answer.events if isinstance(item, ReasoningDelta)] == ["let me ", "see"]
    assert answer.reply.reasoning == "let me see"
    assert answer.reply.text == answer.shown == "7"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\f", "\x1c"])
async def test_only_a_line_feed_ends_a_line(client: Client, separator: str) -> None:
    raw = f'{{"choices":[{{"delta":{{"content":"a{separator}b"}}}}]}}'
    if separator in "\f\x1c":
        raw = raw.replace(separator, f"\\u{ord(separator):04x}")
    assert (await client.ask(played(event(raw), STOP))).reply.text == f"a{separator}b"


async def test_a_character_in_two_halves_becomes_one(client: Client) -> None:
    halves = (
        event(r'{"choices":[{"delta":{"content":"a\ud83d"}}]}'),
        event(r'{"choices":[{"delta":{"content":"\ude00b"}}]}'),
    )
    answer = await client.ask(played(*halves, STOP))
    assert answer.shown == answer.reply.text == "a😀b"


async def test_a_half_character_alone_is_replaced_in_text_and_refused_in_arguments(client: Client) -> None:
    alone = event(r'{"choices":[{"delta":{"content":"a\ud83dz"}}]}')
    assert (await client.ask(played(alone, STOP))).reply.text == "a\ufffdz"
    broken = played(event(json.dumps({"choices": [{"delta": call(0, "a", "f", '"\ud83d"')}]})), CALLS)
    with pytest.raises(StreamBroken, match="half a character"):
        await client.ask(broken, broken)


async def test_comments_keep_alives_and_unknown_fields_are_skipped(client: Client) -> None:
    noise = b": OPENROUTER PROCESSING\n\n:\n\nid: 7\nretry: 100\n\ndata:\n\ndata: null\n\n"
    answer = await client.ask(played(b"\xef\xbb\xbf" + noise, chunk({"content": "hi"}), noise, STOP, noise, DONE))
    assert answer.reply.text == "hi"


async def test_data_over_several_lines_and_carriage_returns_are_one_event(client: Client) -> None:
    answer = await client.ask(played(b'data: {"choices":\r\ndata: [{"delta":{"content":"hi"}}]}\r\n\r\n', STOP))
    assert answer.reply.text == "hi"


# ------------------------------------------------------------------ errors inside a stream


@pytest.mark.parametrize(
    "data",
    [
        '{"error":{"message":"quota is used up"}}',
        '{"error":"quota is used up"}',
        '{"object":"error","message":"quota is used up"}',
        '{"error":{"message":"quota is used up","code":429},"choices":[{"finish_reason":"error"}]}',
    ],
)
async def test_an_error_inside_a_stream_is_the_providers_message(client: Client, data: str) -> None:
    with pytest.raises(ModelRefused, match="quota is used up") as caught:
        await client.ask(played(chunk({"content": "Well"}), chunk(call(0, "a", "f", "{}")), event(data), CALLS, DONE))
    assert not isinstance(caught.value, PromptTooLong)


@pytest.mark.parametrize("data", ["overloaded", '{"message":"overloaded"}', '"overloaded"'])
async def test_an_error_event_is_the_providers_message(client: Client, data: str) -> None:
    with pytest.raises(ModelRefused, match="overloaded"):
        await client.ask(played(f"event: error\ndata: {data}\n\n".encode()))
