"""What is sent again, when, and what is given up, over a real connection; the waits are counted and not slept."""

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from hel_lsp.errors import ModelRefused, ModelUnavailable, PromptTooLong, StreamBroken
from hel_lsp.models.retry import retry_after
from hel_lsp.ports import ReasoningDelta, Retrying, TextDelta
from tests.models.played import DONE, HELLO, SILENT, Client, Played, call, chunk, event, played, refused

STOP = chunk({}, "stop")
HI = played(chunk({"content": "hi"}), STOP, DONE)
NOW = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)

# ------------------------------------------------------------------ before the first byte


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
async def test_an_endpoint_that_is_busy_is_asked_again(client: Client, status: int) -> None:
    answer = await client.ask(refused(status, {"error": {"message": "busy, sorry"}}), HI)
    assert answer.reply.text == "hi"
    assert client.waits == [0.5]
    assert answer.retries[0].delay == 0.5
    assert "busy, sorry" in answer.retries[0].reason
    assert isinstance(answer.events[0], Retrying)


async def test_the_waits_double_and_the_fifth_failure_is_the_last(client: Client) -> None:
    with pytest.raises(ModelUnavailable, match=r"busy.* Gave up after 5 tries"):
        await client.ask(*[refused(503, "busy")] * 5)
    assert client.waits == [0.5, 1, 2, 4]
    assert len(client.server.bodies) == 5


async def test_each_request_has_tries_of_its_own(client: Client) -> None:
    for _ in range(3):
        assert (await client.ask(*[refused(503, "busy")] * 4, HI)).reply.text == "hi"


async def test_a_connection_that_ends_before_an_answer_is_tried_again(client: Client) -> None:
    answer = await client.ask(None, HI)
    assert answer.reply.text == "hi"
    assert len(answer.retries) == 1


async def test_a_server_that_is_not_there_is_named_with_the_reason(client: Client) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        says = f"{url} cannot be reached: .*refused.*Is the server running"
        with pytest.raises(ModelUnavailable, match=says):
            _ = [item async for item in client.make(base_url=url).stream(HELLO)]
        assert len(client.waits) == 4
        try:
            raise PromptTooLong("so it was made shorter, and is sent again")
        except PromptTooLong:
            with pytest.raises(ModelUnavailable, match=says):
                _ = [item async for item in client.make(base_url=url).stream(HELLO)]


@pytest.mark.parametrize(
    ("header", "wait"),
    [("7", 7), ("1.5", 1.5), ("0", 0), ("99999", 60), ("abc", 0.5), ("", 0.5), ("-3", 0.5), ("nan", 0.5),
     ("1e999", 0.5), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.5), ("Wed, 99 Oct 99999 07:28:00 GMT", 0.5)],
)  # fmt: skip
async def test_retry_after_is_followed_within_reason(client: Client, header: str, wait: float) -> None:
    answer = await client.ask(refused(429, "slow down", Retry_After=header), HI)
    assert client.waits == [wait]
    assert answer.retries[0].delay == wait


async def test_retry_after_may_be_a_date_to_come(client: Client) -> None:
    for ahead, least, most in ((30, 20, 30), (7200, 60, 60)):
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=ahead), usegmt=True)
        await client.ask(refused(429, "slow down", Retry_After=date), HI)
        assert least <= client.waits.pop() <= most


def test_a_date_without_a_zone_is_utc() -> None:
    assert retry_after("Sun, 01 Jun 2025 12:00:10 -0000", NOW) == 10


async def test_other_headers_about_limits_are_not_taken_for_seconds(client: Client) -> None:
    await client.ask(refused(429, "slow down", X_RateLimit_Reset="6m0s"), HI)
    assert client.waits == [0.5]


async def test_a_cancel_ends_the_wait_between_tries(client: Client) -> None:
    model = client.make(sleep=asyncio.sleep)
    client.plays(refused(429, "slow down", Retry_After="60"))
    waiting = asyncio.Event()

    async def ask() -> None:
        async for item in model.stream(HELLO):
            assert isinstance(item, Retrying)
            waiting.set()

    task = asyncio.create_task(ask())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert len(client.server.bodies) == 1


async def test_a_used_up_quota_is_not_waited_for(client: Client) -> None:
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    with pytest.raises(ModelRefused, match=r"exceeded your current quota.*account that the key in HEL_API_KEY"):
        await client.ask(refused(429, body))
    assert client.waits == []


# ------------------------------------------------------------------ refused at once


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, {"error": {"message": "bad tools"}}, r"bad tools.*model\.extraBody"),
        (401, {"error": {"message": "Invalid key"}}, r"Invalid key.*variable HEL_API_KEY"),
        (403, {"message": "Not yours"}, r"Not yours.*variable HEL_API_KEY"),
        (402, {"error": "Insufficient Balance"}, r"Insufficient Balance.*account"),
        (404, {"detail": "no such model"}, r'no such model.*model\.baseUrl.*model\.name \("test-model"\)'),
        (404, "<html><h1>Not Found</h1></html>", r": Not Found\. Check model\.baseUrl"),
        (404, "", r"\(404\)\. Check model\.baseUrl"),
        (418, '["odd"]', r"refused the request \(418\)"),
        (422, {"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}, "Field required"),
        (302, "", r"\(302\)\. Check model\.baseUrl"),
    ],
)
async def test_a_refusal_is_final_and_says_what_to_check(client: Client, status: int, body: object, says: str) -> None:
    with pytest.raises(ModelRefused, match=says):
        await client.ask(refused(status, body))
    assert client.waits == []
    assert len(client.server.bodies) == 1


async def test_a_refusal_without_a_key_says_that_none_was_sent(client: Client) -> None:
    client.plays(refused(401, "who are you"))
    with pytest.raises(ModelRefused, match="No key was sent: set the environment variable HEL_API_KEY"):
        _ = [item async for item in client.make(key="").stream(HELLO)]
    assert "authorization" not in client.server.headers[0]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "too big", "code": "context_length_exceeded"}}),
        (400, {"error": {"message": "This model's maximum context length is 8192 tokens. max_tokens was 8192."}}),
        (400, {"error": {"message": "the request exceeds the available context size, try increasing it"}}),
        (400, {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        (413, "Payload Too Large"),
    ],
)
async def test_a_prompt_that_is_too_long_is_told_from_other_refusals(client: Client, status: int, body: object) -> None:
    with pytest.raises(PromptTooLong):
        await client.ask(refused(status, body))
    assert len(client.server.bodies) == 1


async def test_a_prompt_that_is_too_long_may_be_told_inside_the_stream(client: Client) -> None:
    with pytest.raises(PromptTooLong):
        await client.ask(played(event('{"error":{"message":"x","code":"context_length_exceeded"}}')))


async def test_an_answer_that_repeats_the_request_is_not_read_as_a_complaint(client: Client) -> None:
    echo = {
        "detail": [{"loc": ["body"], "msg": "Invalid", "input": "max_tokens and the context length, in the prompt"}]
    }
    with pytest.raises(ModelRefused) as caught:
        await client.ask(refused(422, echo))
    assert not isinstance(caught.value, PromptTooLong)


async def test_an_endless_error_body_is_not_read_to_its_end(client: Client) -> None:
    page = Played(tuple([b"x" * 60_000] * 3), end="open", status=400)
    with pytest.raises(ModelRefused) as caught:
        await asyncio.wait_for(client.ask(page), 5)
    assert len(caught.value.message) < 1000


async def test_an_error_body_that_does_not_come_is_not_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hel_lsp.models.connection.ERROR_BODY_TIME", 0.05)
    with pytest.raises(ModelRefused, match="the beginning"):
        await client.ask(Played((b"the beginning",), end="open", status=400))


async def test_a_host_name_that_cannot_be_one_is_an_error(client: Client) -> None:
    with pytest.raises(ModelUnavailable, match="cannot be asked"):
        _ = [item async for item in client.make(base_url="http://xn--/v1").stream(HELLO)]


async def test_the_key_is_in_no_message_and_no_repr(client: Client) -> None:
    with pytest.raises(ModelRefused) as caught:
        await client.ask(refused(401, {"error": {"message": "Incorrect API key provided: sk-secret-key."}}))
    assert "[key]" in caught.value.message
    with pytest.raises(ModelRefused) as inside:
        await client.ask(played(event('{"error":{"message":"sk-secret-key is bad"}}')))
    for text in (
        repr(caught.value),
        repr(inside.value),
        repr(vars(client.model)),
        repr(vars(client.model)["_endpoint"]),
    ):
        assert "sk-secret" not in text


# ------------------------------------------------------------------ fields that an endpoint does not take


async def test_max_tokens_changes_its_name_when_the_endpoint_says_so(client: Client) -> None:
    complaint = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    await client.ask(refused(400, {"error": {"message": complaint}}), HI)
    await client.ask(HI)
    fields = [[name for name in request if name.startswith("max_")] for request in client.server.requests]
    assert fields == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]


async def test_stream_options_are_left_out_for_an_endpoint_that_forbids_them(client: Client) -> None:
    body = {
        "detail": [
            {"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}
        ]
    }
    await client.ask(refused(422, body), HI)
    assert ["stream_options" in request for request in client.server.requests] == [True, False]


async def test_several_fields_are_mended_one_after_another(client: Client) -> None:
    await client.ask(refused(400, "no max_tokens"), refused(400, "no stream_options"), HI)
    assert client.waits == []
    last = client.server.requests[-1]
    assert "max_tokens" not in last
    assert "stream_options" not in last


async def test_a_complaint_that_stays_is_an_error_and_changes_nothing_for_later(client: Client) -> None:
    with pytest.raises(ModelRefused, match="at most 4096"):
        await client.ask(refused(400, "max_tokens: at most 4096"), refused(400, "max_completion_tokens: at most 4096"))
    await client.ask(HI)
    assert "max_tokens" in client.server.requests[-1]


async def test_an_endpoint_that_never_stops_complaining_is_not_asked_for_ever(client: Client) -> None:
    with pytest.raises(ModelRefused):
        await client.ask(*[refused(400, "reasoning_content max_tokens stream_options")] * 2)


# ------------------------------------------------------------------ streams that break

CUT = played(chunk(call(0, "a", "write_file", '{"path":"a","new":"ha')), end="cut")


async def test_a_stream_that_breaks_before_any_text_is_asked_for_once_more(client: Client) -> None:
    answer = await client.ask(CUT, HI)
    assert answer.reply.text == "hi"
    assert answer.reply.tool_calls == ()
    assert "dropped" in answer.retries[0].reason
    assert client.waits == [0]


async def test_a_stream_that_breaks_twice_says_that_the_connection_dropped(client: Client) -> None:
    with pytest.raises(StreamBroken, match="dropped before the reply was complete; nothing of it ran"):
        await client.ask(CUT, CUT)


async def test_a_stream_that_breaks_after_text_is_not_asked_for_again(client: Client) -> None:
    client.plays(played(chunk({"content": "I will"}), *CUT.pieces, end="cut"))
    events = client.model.stream(HELLO)
    assert await anext(events) == TextDelta("I will")
    with pytest.raises(StreamBroken, match="dropped"):
        await anext(events)
    assert len(client.server.bodies) == 1


async def test_reasoning_alone_does_not_stop_the_second_try(client: Client) -> None:
    answer = await client.ask(played(chunk({"reasoning_content": "hm"}), end="cut"), HI)
    assert isinstance(answer.events[0], ReasoningDelta)
    assert answer.reply.reasoning == ""


@pytest.mark.parametrize("pieces", [(), (DONE,), (*CUT.pieces, DONE), (chunk({}, ""), DONE)])
async def test_a_stream_without_a_finish_reason_is_broken(client: Client, pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(StreamBroken, match="without a finish reason"):
        await client.ask(played(*pieces), played(*pieces))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"data: {\n\n", "not JSON"),
        (b"data: 5\n\n", "not an object"),
        (b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n', "not UTF-8"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "not JSON"),
        (b'data: {"x": ' + b"9" * 5000 + b"}\n\n", "not JSON"),
    ],
)
async def test_a_mangled_event_breaks_the_stream_even_after_its_calls(client: Client, raw: bytes, says: str) -> None:
    mangled = played(chunk(call(0, "a", "f", "{}")), chunk({}, "tool_calls"), raw, DONE)
    with pytest.raises(StreamBroken, match=says):
        await client.ask(mangled, mangled)


async def test_a_line_without_an_end_does_not_fill_the_memory(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hel_lsp.models.sse.MAX_EVENT", 1000)
    endless = Played((b"data: " + b"x" * 600, b"x" * 600), end="open")
    client.plays(endless, endless)
    with pytest.raises(StreamBroken, match="without an end"):
        await client.ask()


# ------------------------------------------------------------------ silence


async def test_an_endpoint_that_says_nothing_is_given_up(client: Client) -> None:
    client.plays(Played(status=SILENT))
    with pytest.raises(ModelUnavailable, match=r"sent nothing for 0\.2 s.*model\.timeout"):
        _ = [item async for item in client.make(timeout=0.2).stream(HELLO)]
    assert client.waits == []


async def test_a_stream_that_falls_silent_is_given_up(client: Client) -> None:
    client.plays(Played((chunk(call(0, "a", "f", "{}")),), end="open"))
    with pytest.raises(ModelUnavailable, match=r"sent nothing for 0\.2 s"):
        _ = [item async for item in client.make(timeout=0.2).stream(HELLO)]


async def test_a_stream_that_falls_silent_after_its_finish_reason_is_whole(client: Client) -> None:
    client.plays(Played((chunk({"content": "hi"}), STOP), end="open"))
    items = [item async for item in client.make(timeout=0.2).stream(HELLO)]
    assert items[-1].text == "hi"  # type: ignore[union-attr]


# ------------------------------------------------------------------ leaving early


async def test_leaving_a_stream_hangs_up(client: Client) -> None:
    client.plays(Played((chunk({"content": "hi"}),), end="open"))
    async with aclosing(client.model.stream(HELLO)) as events:
        async for _ in events:
            break
    await asyncio.wait_for(client.server.hung_up.wait(), 5)


async def test_a_cancel_in_the_middle_of_a_stream_hangs_up(client: Client) -> None:
    client.plays(Played((chunk({"content": "hi"}),), end="open"))
    task = asyncio.create_task(client.ask())
    await client.server.stalled.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(client.server.hung_up.wait(), 5)
    assert (await client.ask(HI)).reply.text == "hi"
