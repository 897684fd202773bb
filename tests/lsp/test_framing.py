"""What pygls 2.1 needs mending in the framing of messages."""

from __future__ import annotations

import io
import json

import pytest
from pygls.lsp.server import LanguageServer

from hel_lsp.lsp.wire import read_messages
from tests.lsp.memory import Wire, both

# -------------------------------------------------------------------- framing


@both
@pytest.mark.parametrize(
    "header",
    [
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH:%d\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length: %d \r\n\r\n",
        b"Content-Length: %d\n\n",
    ],
)
async def test_headers_are_understood_in_any_spelling(kind: str, header: bytes) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).encode()
    data = header % len(body) + body
    if kind == "hel":
        assert list(read_messages(io.BytesIO(data))) == [body]
    else:
        server = LanguageServer("test", "1")
        wire = Wire(server)
        wire._reader.feed_data(data)
        await wire.close()
        assert wire.received == []


def test_a_broken_block_of_headers_costs_one_message_at_most() -> None:
    data = b"Content-Type: x\r\n\r\n" + b"Content-Length: many\r\n\r\n" + b"\r\n" + b"Content-Length: 2\r\n\r\n{}"
    assert list(read_messages(io.BytesIO(data))) == [b"{}"]


def test_a_message_that_is_cut_off_is_dropped_and_a_false_length_allocates_nothing() -> None:
    data = b"Content-Length: 2\r\n\r\n{}" + b"Content-Length: 99999999999999\r\n\r\n{}"
    assert list(read_messages(io.BytesIO(data))) == [b"{}"]


def test_lengths_count_bytes_in_both_directions() -> None:
    body = json.dumps({"text": "käse 😀"}, ensure_ascii=False).encode()
    assert list(read_messages(io.BytesIO(b"Content-Length: %d\r\n\r\n%b" % (len(body), body)))) == [body]
