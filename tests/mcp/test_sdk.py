"""What the SDK's own client makes of servers that this package gets along with: the reason for each part around it.

A test that fails here says that the SDK has learnt something, so that the part of this package that covers it can go.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, MCPError
from mcp.client import session
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT
from pydantic import ValidationError

from hel_lsp.mcp import transport
from tests.mcp.http_server import HttpServer, Reply
from tests.mcp.workspace import ECHO, Workspace, scripted, until

DEEP: Any = json.loads("[" * 300 + "]" * 300)

PATIENCE = 0.3
"""Seconds after which an answer that has been sent is taken to be lost."""


@asynccontextmanager
async def plain(era: str, **behaviour: Any) -> AsyncGenerator[Client]:
    """The SDK's client over its own transport, connected to a server that behaves as servers/scripted.py describes."""
    entry = scripted(era=era, **behaviour)
    server = StdioServerParameters(command=entry["command"], args=entry["args"])
    async with Client(stdio_client(server), mode="legacy" if era == "old" else "auto") as client:
        yield client


async def called(client: Client) -> Any:
    return await client.call_tool("echo", {}, read_timeout_seconds=PATIENCE)


@pytest.mark.parametrize(
    "step",
    [
        {"result": "just text"},
        {"result": None},
        {"error": "broken"},
        {"line": '{"jsonrpc":"2.0","id":%ID%,"result":{"content":[{"type":"text","text":"\\ud800"}]}}'},
        {"line": '[{"jsonrpc":"2.0","id":%ID%,"result":{"content":[]}}]'},
    ],
    ids=["text", "null", "error", "surrogate", "batch"],
)
async def test_an_answer_that_is_malformed_never_reaches_its_call(era: str, step: dict[str, Any]) -> None:
    async with plain(era, calls={"echo": [step]}) as client:
        with pytest.raises(MCPError) as caught:
            await called(client)
    assert caught.value.code == REQUEST_TIMEOUT


async def test_one_byte_of_invalid_utf_8_ends_the_connection(era: str) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with plain(era, calls={"echo": [{"bytes": "fffe"}]}) as client:
            await called(client)
    assert caught.group_contains(UnicodeDecodeError)


async def test_one_bad_tool_costs_the_whole_list(era: str) -> None:
    async with plain(era, tools=[ECHO, {"name": "no_schema"}]) as client:
        with pytest.raises(ValidationError):
            await client.list_tools()


async def test_one_unknown_block_costs_the_whole_result(era: str) -> None:
    content = [{"type": "text", "text": "done"}, {"type": "hologram"}]
    async with plain(era, calls={"echo": [{"result": {"content": content}}]}) as client:
        with pytest.raises(ValidationError):
            await called(client)


async def test_a_result_that_breaks_its_schema_is_lost(era: str) -> None:
    tool = {**ECHO, "outputSchema": {"type": "object", "required": ["port"]}}
    answer: dict[str, Any] = {"content": [{"type": "text", "text": "done"}], "structuredContent": {}}
    async with plain(era, tools=[tool], calls={"echo": [{"result": answer}]}) as client:
        with pytest.raises(RuntimeError, match="Invalid structured content"):
            await called(client)


async def test_a_greeting_that_lacks_a_field_is_no_greeting(era: str) -> None:
    with pytest.raises(ExceptionGroup):
        async with plain(era, bare=True):
            pass


async def test_an_error_of_the_server_looks_like_the_end_of_the_connection(era: str) -> None:
    codes: list[int] = []
    for step in ({"error": {"code": -32000, "message": "no such city"}}, {"exit": 1}):
        async with plain(era, calls={"echo": [step]}) as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("echo", {})
            codes.append(caught.value.code)
    assert codes == [CONNECTION_CLOSED, CONNECTION_CLOSED]


async def test_only_the_first_page_is_kept_and_for_its_own_lifetime_alone(workspace: Workspace, tmp_path: Path) -> None:
    record = tmp_path / "record"
    pages: list[dict[str, Any]] = [
        {"tools": [ECHO], "ttlMs": 60_000, "cacheScope": "public", "resultType": "complete", "nextCursor": "1"},
        {"tools": [], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"},
    ]
    async with plain("new", pages=pages, record=str(record)) as client:
        for _ in range(2):
            await client.list_tools(cursor=(await client.list_tools()).next_cursor)
    asked = [message["params"].get("cursor") for message in workspace.received(record, "tools/list")]
    assert asked == [None, "1", "1"]  # where the whole list had a lifetime of 0


def test_a_server_that_is_silent_on_discover_is_waited_for_longer() -> None:
    assert session.DISCOVER_TIMEOUT_SECONDS > 2 * transport.PROBE


async def test_a_long_message_takes_time_that_grows_with_its_square() -> None:
    spent: list[float] = []
    sizes = (2_000_000, 16_000_000)
    for size in sizes:
        async with plain("old", calls={"echo": [{"fill": size}]}) as client:
            began = time.process_time()
            await client.call_tool("echo", {})
            spent.append(time.process_time() - began)
    assert spent[1] > 16 * spent[0]  # eight times as long: 8 where it is linear


@pytest.mark.skipif(sys.platform == "win32", reason="a job ends all of them there")
async def test_what_a_server_started_outlives_one_that_leaves_by_itself(era: str, tmp_path: Path) -> None:
    async with plain(era, children=1, pids=str(tmp_path / "pids")):
        pass
    server, child = json.loads((tmp_path / "pids").read_text())
    assert not psutil.pid_exists(server)
    assert psutil.pid_exists(child)
    os.kill(child, signal.SIGKILL)


async def test_an_event_of_more_than_a_megabyte_is_refused() -> None:
    async def large(params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "x" * 2_000_000}]}

    async with HttpServer(streams=True, called=large) as server, Client(streamable_http_client(server.url)) as client:
        with pytest.raises(MCPError):
            await client.call_tool("echo", {})


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("result", ["text", {"structuredContent": DEEP}], ids=["text", "deep"])
async def test_an_answer_over_http_that_fits_no_type_is_lost(result: Any, streams: bool) -> None:
    def replies(message: dict[str, Any]) -> Reply | None:
        if message["method"] != "tools/call":
            return None
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        kind = "text/event-stream" if streams else "application/json"
        return 200, {"Content-Type": kind}, (f"data: {text}\n\n" if streams else text).encode()

    async with HttpServer(replies=replies) as server, Client(streamable_http_client(server.url)) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("echo", {})
    assert caught.value.code == PARSE_ERROR


async def test_an_answer_over_http_without_its_id_is_waited_for_in_vain() -> None:
    def replies(message: dict[str, Any]) -> Reply | None:
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "no"}}
        called = message["method"] == "tools/call"
        return (200, {"Content-Type": "application/json"}, json.dumps(error).encode()) if called else None

    async with HttpServer(replies=replies) as server, Client(streamable_http_client(server.url)) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("echo", {}, read_timeout_seconds=PATIENCE)
    assert caught.value.code == REQUEST_TIMEOUT


async def test_an_event_that_is_no_message_costs_the_answer_behind_it() -> None:
    def replies(message: dict[str, Any]) -> Reply | None:
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}})
        called = message["method"] == "tools/call"
        events = f"data: junk\n\ndata: {answer}\n\n".encode()
        return (200, {"Content-Type": "text/event-stream"}, events) if called else None

    async with HttpServer(replies=replies) as server, Client(streamable_http_client(server.url)) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("echo", {})
    assert caught.value.code == PARSE_ERROR


@pytest.mark.parametrize("arguments", [{"a": DEEP}, {"a": "\ud83d"}], ids=["deep", "half a character"])
async def test_arguments_that_cannot_be_written_are_no_error_of_the_call(arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, BaseExceptionGroup)):
        async with plain("old") as client:
            await client.call_tool("echo", arguments, read_timeout_seconds=PATIENCE)


async def test_a_refused_key_is_reported_without_the_status() -> None:
    async with HttpServer(token="right") as server:
        with pytest.raises(ExceptionGroup) as caught:
            async with Client(streamable_http_client(server.url)):
                pass
    assert caught.group_contains(MCPError, match="^Server returned an error response$")


async def test_a_server_that_reads_nothing_holds_up_a_cancel(workspace: Workspace, era: str, tmp_path: Path) -> None:
    record, gate = tmp_path / "record", tmp_path / "gate"
    async with plain(era, record=str(record), calls={"echo": [{"wait": str(gate)}, {"fill": 3}]}) as client:
        big = {"text": "x" * 1_000_000}
        calls = [asyncio.create_task(client.call_tool("echo", big)) for _ in range(2)]
        await until(lambda: workspace.received(record, "tools/call"))
        for call in calls:
            call.cancel()
        assert (await asyncio.wait(calls, timeout=2 * PATIENCE))[1]
        gate.touch()
        await asyncio.wait(calls)
