from __future__ import annotations

from typing import Any

import pytest
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from hel_lsp.mcp.process import OverlongLine
from hel_lsp.mcp.wire import answer_for, answer_for_garbled, parse_line


def parsed(line: bytes) -> Any:
    (message,) = parse_line(line)
    return message


def test_each_kind_of_message_is_read() -> None:
    assert isinstance(parsed(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), JSONRPCRequest)
    assert isinstance(parsed(b'{"jsonrpc":"2.0","method":"notifications/x","params":[1]}'), JSONRPCNotification)
    assert isinstance(parsed(b'{"jsonrpc":"2.0","id":"a","result":{}}'), JSONRPCResponse)
    assert isinstance(parsed(b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}'), JSONRPCError)


def test_a_batch_is_several_messages() -> None:
    assert len(parse_line(b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]')) == 2


@pytest.mark.parametrize("result", ["null", "5", '"text"', "[1]"])
def test_a_result_that_is_no_object_still_answers_its_call(result: str) -> None:
    message = parsed(f'{{"jsonrpc":"2.0","id":1,"result":{result}}}'.encode())
    assert message.id == 1
    assert set(message.result) == {"content"}


@pytest.mark.parametrize("error", ['"broken"', "null", '{"code":"x"}', '{"message":5,"code":1.5}', "[]"])
def test_a_malformed_error_still_answers_its_call(error: str) -> None:
    message = parsed(f'{{"jsonrpc":"2.0","id":1,"error":{error}}}'.encode())
    assert isinstance(message, JSONRPCError)
    assert message.id == 1


def test_what_is_no_message_in_a_batch_costs_only_itself() -> None:
    (message,) = parse_line(b'[7,{"jsonrpc":"2.0"},{"jsonrpc":"2.0","id":1,"result":{}}]')
    assert message == JSONRPCResponse(jsonrpc="2.0", id=1, result={})


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"[{":', "}]"), ('["\\\\\\"[",', "]")])
def test_what_is_nested_too_deeply_costs_only_itself(opening: str, closing: str) -> None:
    deep = opening * 50_000 + "1" + closing * 50_000
    line = f'{{"jsonrpc":"2.0","id":1,"result":{{"a":[{deep},2],"b":{deep},"c":"x"}}}}'
    result = parsed(line.encode()).result
    assert "[omitted: nested too deeply]" in str(result["a"])
    assert (result["a"][1], result["c"]) == (2, "x")


@pytest.mark.parametrize("text", ['"' + '\\"' * 400_000, '"' * 800_001, "[{}" * 400_000, '"\\'])
def test_a_deep_message_without_an_end_is_given_up_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_line(b"[" * 3000 + text.encode())


@pytest.mark.parametrize(
    ("line", "identity"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"content":["cut', 7),
        (b'{"jsonrpc": "2.0", "id": "a", "error": {', "a"),
        (b'{"id":7,"jsonrpc":"2.0","result":{]}', 7),
        (b'{"jsonrpc":"2.0","result":{"id":8,]},"id":7}', 7),
        (b'{"result":{"id":8,]},"id":7,"jsonrpc":"2.0"}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":{"n":' + b"9" * 5000 + b"}}", 7),
    ],
)
def test_a_response_that_is_no_json_fails_the_call_that_it_answers(line: bytes, identity: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_line(line)
    answer = answer_for_garbled(line, "why")
    assert answer is not None
    assert (answer.id, "why" in answer.error.message) == (identity, True)


@pytest.mark.parametrize(
    "line",
    [
        b'got {"jsonrpc":"2.0","id":7,"result":{}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call"',
        b'{"level":"info","id":7,"result":{',
        b'{info} sent {"jsonrpc":"2.0","method":"tools/call","id":7}',
        b'{"jsonrpc":"2.0","result":{"id":7',
    ],
)
def test_what_does_not_begin_as_a_response_fails_no_call(line: bytes) -> None:
    assert answer_for_garbled(line, "why") is None


def test_an_id_that_was_made_a_float_is_the_same_id() -> None:
    assert parsed(b'{"jsonrpc":"2.0","id":7.0,"result":{}}').id == 7


def test_invalid_utf_8_and_lone_surrogates_cost_only_themselves() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{"a":"x\xffy","b":"x\\ud800y","c":"\\ud83c\\udf89"}}'
    result = parsed(line).result
    assert result == {"a": "x\ufffdy", "b": "x?y", "c": "\U0001f389"}


def test_numbers_that_json_does_not_have_become_text() -> None:
    assert parsed(b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN,"b":-Infinity}}').result == {"a": "NaN", "b": "-Infinity"}


@pytest.mark.parametrize(
    "line",
    [
        b"Listening on port 80",
        b"{",
        b"5",
        b"null",
        b'{"id":1,"result":{}}',
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b'{"jsonrpc":"2.0","id":1}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"jsonrpc":"2.0","id":1,"result":{"n":' + b"9" * 5000 + b"}}",
        b"\xff\xfe\x00",
    ],
)
def test_what_is_no_message_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_line(line)


@pytest.mark.parametrize(
    ("head", "tail", "identity"),
    [
        (b'{"jsonrpc":"2.0","id":12,"result":{"content"', b"", 12),
        (b'{"jsonrpc": "2.0", "id" : "a-1", "result":', b"", "a-1"),
        (b'{"jsonrpc":"2.0","result":{"content":"' + b"x" * 2000, b'"},"id":12}', 12),
    ],
)
def test_a_line_too_long_to_be_read_fails_the_call_that_it_answers(head: bytes, tail: bytes, identity: Any) -> None:
    answer = answer_for(OverlongLine(10**9, head, tail))
    assert answer is not None
    assert answer.id == identity
    assert "1000000000 bytes" in answer.error.message


def test_a_line_too_long_that_does_not_show_its_id_answers_nothing() -> None:
    assert answer_for(OverlongLine(10**9, b"x" * 2000, b'"id":12, more')) is None
