"""What pygls 2.1 needs mending in the replies of the editor: every request to it comes to an end."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from hel_lsp.errors import EditorError
from hel_lsp.lsp.guard import GuardedServer
from tests.lsp.memory import ask, both, connect, make_server

# -------------------------------------------------------------------- replies that are not what they should be


def ask_user(server: LanguageServer) -> Future[Any]:
    return server.protocol.send_request(
        "window/showMessageRequest", types.ShowMessageRequestParams(types.MessageType.Info, "Well?")
    )


@both
@pytest.mark.parametrize("result", [{}, [], "Yes", 5])
async def test_a_malformed_reply_ends_the_wait(kind: str, result: Any) -> None:
    server = make_server(kind)
    wire = await connect(server)
    future = ask_user(server)
    wire.reply((await wire.asked("window/showMessageRequest"))["id"], result=result)
    await wire.everything_handled()
    if kind == "pygls":
        assert not future.done()
    else:
        assert isinstance(future.exception(), JsonRpcInvalidParams)
    await wire.close()


@pytest.mark.parametrize(
    "reply",
    [
        {"error": {"code": -32800, "message": "Canceled"}},
        {"error": {"code": -32800}},
        {"error": "no"},
        {"error": 5, "result": {"title": "Allow once"}},
    ],
)
async def test_an_error_reply_is_an_editor_error(reply: dict[str, Any]) -> None:
    server = GuardedServer("test", "1")
    wire = await connect(server)
    request = asyncio.create_task(server.request("window/showMessageRequest", {"type": 3, "message": "Well?"}))
    wire.reply((await wire.asked("window/showMessageRequest"))["id"], **reply)
    with pytest.raises(EditorError, match="window/showMessageRequest"):
        await request


@pytest.mark.parametrize("result", [None, {}, {"title": "Yes", "more": [1]}, "text", 5])
async def test_a_request_gives_the_result_as_the_editor_sent_it(result: Any) -> None:
    server = GuardedServer("test", "1")
    wire = await connect(server)
    request = asyncio.create_task(server.request("hel/anything", {"a": 1}))
    message = await wire.asked("hel/anything")
    assert message["params"] == {"a": 1}
    wire.reply(message["id"], result=result)
    assert await request == result


async def test_a_reply_without_a_result_counts_as_null() -> None:
    server = GuardedServer("test", "1")
    wire = await connect(server)
    request = asyncio.create_task(server.request("window/showMessageRequest"))
    wire.reply((await wire.asked("window/showMessageRequest"))["id"])
    assert await request is None


async def test_no_reply_in_time_is_an_editor_error_and_the_editor_is_told() -> None:
    server = GuardedServer("test", "1")
    wire = await connect(server)
    with pytest.raises(EditorError, match=r"no reply within 0.01 s"):
        await server.request("workspace/applyEdit", {}, 0.01)
    number = (await wire.asked("workspace/applyEdit"))["id"]
    assert (await wire.asked("$/cancelRequest"))["params"] == {"id": number}
    wire.reply(number, result={"applied": True})
    await wire.everything_handled()
    assert wire.popups() == []


@both
async def test_a_late_reply_is_no_error_for_the_user(kind: str) -> None:
    server = make_server(kind)
    wire = await connect(server)
    future = ask_user(server)
    number = (await wire.asked("window/showMessageRequest"))["id"]
    future.cancel()
    wire.reply(number, result={"title": "Yes"})
    wire.reply("never asked", result={"title": "Yes"})
    await wire.everything_handled()
    assert len(wire.popups()) == (0 if kind == "hel" else 1)
    await wire.close()


async def test_a_request_ends_when_the_connection_does() -> None:
    server = GuardedServer("test", "1")
    wire = await connect(server)
    request = asyncio.create_task(server.request("workspace/applyEdit", {}))
    await wire.asked("workspace/applyEdit")
    server.protocol.detach()
    with pytest.raises(EditorError, match="closed the connection"):
        await request
    with pytest.raises(EditorError, match="no connection"):
        await server.request("workspace/applyEdit", {})


async def test_a_reply_cannot_end_a_request_of_the_editor() -> None:
    server, running = GuardedServer("test", "1"), asyncio.Event()

    async def handler(argument: dict[str, Any] | None) -> str:
        await running.wait()
        return "done"

    server.commands["ask"] = handler
    wire = await connect(server)
    ask(wire, 2)
    wire.reply(2, result="forged")
    await wire.everything_handled()
    running.set()
    assert (await wire.answer(2))["result"] == "done"
