"""What pygls 2.1 needs mending in what the editor asks, fault by fault."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lsprotocol import types

from hel_lsp.errors import CommandError, ConfigError
from hel_lsp.lsp.guard import GuardedServer
from tests.lsp.memory import Wire, add_command, ask, both, connect, make_server

# -------------------------------------------------------------------- requests that are not what they should be


@both
async def test_initialize_with_an_unknown_trace_value_is_answered(kind: str) -> None:
    wire = Wire(make_server(kind))
    params = {"processId": None, "rootUri": None, "capabilities": {}, "trace": "compact"}
    wire.request(1, "initialize", params)
    await wire.everything_handled()
    answers = wire.answers(1)
    if kind == "pygls":
        assert answers == []
    else:
        assert answers[0]["result"]["serverInfo"]["name"] == "test"
    await wire.close()


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"capabilities": None},
        {"capabilities": {"textDocument": 5, "general": {"positionEncodings": ["utf-8"]}}},
        {"capabilities": {}, "processId": "me", "rootUri": {}, "workspaceFolders": [{"uri": "file:///a"}, 7]},
        {"capabilities": {"textDocument": {"hover": {"contentFormat": ["markdown", {}]}}}, "clientInfo": {}},
    ],
)
async def test_initialize_is_answered_whatever_the_client_gets_wrong(params: Any) -> None:
    wire = Wire(GuardedServer("test", "1"))
    wire.request(1, "initialize", params)
    assert "capabilities" in (await wire.answer(1))["result"]


async def test_what_is_right_in_a_partly_wrong_initialize_is_kept() -> None:
    server = GuardedServer("test", "1")
    folders = [{"uri": "file:///a", "name": "a"}, {"uri": "file:///b"}]
    general = {"positionEncodings": ["utf-8"], "regularExpressions": 5}
    wire = await connect(server, workspaceFolders=folders, capabilities={"general": general})
    assert list(server.workspace.folders) == ["file:///a"]
    assert wire.answers("init")[0]["result"]["capabilities"]["positionEncoding"] == "utf-8"


@both
@pytest.mark.parametrize("params", [None, {}, {"textDocument": {"uri": "file:///a"}, "position": {"line": "x"}}])
async def test_a_malformed_request_is_answered_with_the_name_of_the_field(kind: str, params: Any) -> None:
    server = make_server(kind)
    server.feature(types.TEXT_DOCUMENT_HOVER)(lambda params: None)
    wire = await connect(server)
    wire.request(2, "textDocument/hover", params)
    await wire.everything_handled()
    answers = wire.answers(2)
    if kind == "pygls":
        assert answers == []
    else:
        assert [answer["error"]["code"] for answer in answers] == [-32602]
        assert params is None or "osition" in answers[0]["error"]["message"] or "textDocument" in str(answers)
    await wire.close()


async def test_what_is_no_json_or_no_message_is_answered_without_an_id() -> None:
    wire = await connect(GuardedServer("test", "1"))
    for body in (b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"5", b'{"id": 3, "method": 7}'):
        wire.send(body)
    await wire.everything_handled()
    assert [answer["error"]["code"] for answer in wire.answers(None)] == [-32700, -32700, -32700, -32600, -32600]
    assert wire.answers(3)[0]["error"]["code"] == -32600


async def test_requests_outside_of_a_session_are_refused() -> None:
    server = GuardedServer("test", "1")
    wire = Wire(server)
    wire.request(1, "shutdown")
    assert (await wire.answer(1))["error"]["code"] == -32002
    wire.request(2, "initialize", {"capabilities": {}})
    wire.request(3, "initialize", {"capabilities": {}})
    assert (await wire.answer(3))["error"]["code"] == -32600
    wire.request(4, "shutdown")
    await wire.answer(4)
    wire.request(5, "workspace/executeCommand", {"command": "ask"})
    assert (await wire.answer(5))["error"]["code"] == -32600


@both
async def test_an_argument_with_a_jsonrpc_key_reaches_the_command_as_it_is(kind: str) -> None:
    server, seen = make_server(kind), list[Any]()

    async def handler(*arguments: Any) -> None:
        seen.append(arguments[0])

    argument = {"jsonrpc": "2.0", "id": 7, "method": "x", "params": {}}
    add_command(server, handler)
    wire = await connect(server)
    ask(wire, 2, {"quoted": argument})
    await wire.answer(2)
    assert (seen == [{"quoted": argument}]) == (kind == "hel")
    await wire.close()


# -------------------------------------------------------------------- commands


@both
async def test_a_null_argument_stays_null(kind: str) -> None:
    server, seen = make_server(kind), list[Any]()

    async def handler(argument: str) -> None:
        seen.append(argument)

    add_command(server, handler)
    wire = await connect(server)
    ask(wire, 2, None)
    await wire.answer(2)
    assert seen == ([None] if kind == "hel" else ["None"])
    await wire.close()


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"command": "nothing"}, "command"),
        ({"command": ["ask"]}, "command"),
        ({}, "command"),
        (None, "command"),
        ({"command": "ask", "arguments": [{}, {}]}, "arguments"),
        ({"command": "ask", "arguments": "text"}, "arguments"),
        ({"command": "ask", "arguments": {"prompt": "x"}}, "arguments"),
        ({"command": "ask", "arguments": ["text"]}, "arguments[0]"),
        ({"command": "ask", "arguments": [{"prompt": 5}]}, "prompt"),
    ],
)
async def test_a_malformed_command_gets_invalid_params_naming_the_field(params: Any, field: str) -> None:
    server = GuardedServer("test", "1")

    async def handler(argument: dict[str, Any] | None) -> None:
        raise CommandError("prompt: a string is expected")

    server.commands["ask"] = handler
    wire = await connect(server)
    wire.request(2, "workspace/executeCommand", params)
    error = (await wire.answer(2))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith(field)


async def test_a_command_without_arguments_gets_none_and_its_progress_token() -> None:
    server, seen = GuardedServer("test", "1"), list[Any]()

    async def handler(argument: dict[str, Any] | None) -> str:
        seen.append((argument, server.work_done_token))
        return "done"

    server.commands["ask"] = handler
    wire = await connect(server)
    wire.request(2, "workspace/executeCommand", {"command": "ask", "workDoneToken": "t1"})
    wire.request(3, "workspace/executeCommand", {"command": "ask", "arguments": None})
    assert (await wire.answer(2))["result"] == "done"
    await wire.answer(3)
    assert seen == [(None, "t1"), (None, None)]


async def test_a_command_that_fails_says_why_and_shows_no_traceback() -> None:
    server = GuardedServer("test", "1")

    async def refused(argument: dict[str, Any] | None) -> None:
        raise ConfigError("a turn is running in this session")

    async def broken(argument: dict[str, Any] | None) -> None:
        raise ZeroDivisionError("by zero")

    server.commands["refused"], server.commands["broken"] = refused, broken
    wire = await connect(server)
    wire.request(2, "workspace/executeCommand", {"command": "refused"})
    wire.request(3, "workspace/executeCommand", {"command": "broken"})
    assert (await wire.answer(2))["error"] == {"code": -32803, "message": "a turn is running in this session"}
    assert (await wire.answer(3))["error"] == {"code": -32603, "message": "ZeroDivisionError: by zero"}
    assert wire.popups() == []


@both
async def test_cancel_ends_the_command_and_is_answered_once(kind: str) -> None:
    server, running, ended = make_server(kind), asyncio.Event(), asyncio.Event()
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def handler(*arguments: Any) -> None:
        running.set()
        try:
            await never
        finally:
            ended.set()

    add_command(server, handler)
    wire = await connect(server)
    ask(wire, 2)
    await running.wait()
    wire.notify("$/cancelRequest", {"id": 2})
    answer = await wire.answer(2)
    assert answer["error"]["code"] == -32800
    assert ended.is_set() == (kind == "hel")
    never.cancel()
    await ended.wait()
    await wire.everything_handled()
    assert len(wire.answers(2)) == 1
    await wire.close()


async def test_a_cancel_of_nothing_is_ignored() -> None:
    wire = await connect(GuardedServer("test", "1"))
    for params in (None, [], {}, {"id": None}, {"id": 99}, {"id": [1]}, {"id": "init"}):
        wire.notify("$/cancelRequest", params)
    await wire.everything_handled()
    assert {message["id"] for message in wire.received} == {"init", "barrier 1", "barrier 2"}


@both
async def test_shutdown_with_a_command_running_ends_both(kind: str) -> None:
    server, running = make_server(kind), asyncio.Event()
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def handler(*arguments: Any) -> None:
        running.set()
        await never

    add_command(server, handler)
    wire = await connect(server)
    ask(wire, 2)
    await running.wait()
    wire.request(3, "shutdown")
    answer = await wire.answer(3)
    never.cancel()
    if kind == "pygls":
        assert "dictionary changed size" in answer["error"]["message"]
    else:
        assert answer == {"jsonrpc": "2.0", "id": 3, "result": None}
        assert (await wire.answer(2))["error"]["code"] == -32800
    await wire.close()


@both
async def test_a_result_that_is_no_json_is_answered_with_an_error(kind: str) -> None:
    server = make_server(kind)

    async def handler(*arguments: Any) -> Any:
        return {"what": object()}

    add_command(server, handler)
    wire = await connect(server)
    ask(wire, 2)
    await wire.everything_handled()
    assert [answer["error"]["code"] for answer in wire.answers(2)] == ([-32603] if kind == "hel" else [])
    await wire.close()


async def test_a_request_id_in_use_is_refused() -> None:
    server = GuardedServer("test", "1")
    release = asyncio.Event()

    async def handler(argument: dict[str, Any] | None) -> str:
        await release.wait()
        return "first"

    server.commands["ask"] = handler
    wire = await connect(server)
    ask(wire, 2)
    ask(wire, 2)
    assert (await wire.answer(2))["error"]["code"] == -32600
    release.set()
    assert (await wire.wait(lambda message: message.get("result") == "first"))["id"] == 2
