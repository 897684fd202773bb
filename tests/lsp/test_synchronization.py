"""What pygls 2.1 needs mending in notifications, and what is agreed on at the start."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from hel_lsp.lsp.guard import GuardedServer
from tests.lsp.memory import ask, both, connect, make_server

# -------------------------------------------------------------------- notifications and documents


@both
async def test_an_error_in_a_notification_is_logged_and_not_shown(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    server = make_server(kind)

    def handler(params: Any) -> None:
        raise ZeroDivisionError("by zero")

    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(handler)
    wire = await connect(server)
    wire.notify("workspace/didChangeConfiguration", {"settings": {}})
    await wire.everything_handled()
    assert len(wire.popups()) == (0 if kind == "hel" else 1)
    assert kind == "pygls" or "ZeroDivisionError" in caplog.text
    await wire.close()


@both
async def test_an_async_notification_handler_leaves_nothing_behind(kind: str) -> None:
    server = make_server(kind)
    handled = asyncio.Event()

    async def handler(params: Any) -> None:
        handled.set()

    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(handler)
    wire = await connect(server)
    wire.notify("workspace/didChangeConfiguration", {"settings": {}})
    await handled.wait()
    await wire.everything_handled()
    assert (len(server.protocol._request_futures) == 0) == (kind == "hel")
    await wire.close()


@both
async def test_a_change_of_a_document_that_is_not_open_is_ignored(kind: str) -> None:
    server = make_server(kind)
    wire = await connect(server)
    change = {"textDocument": {"uri": "file:///a", "version": 2}, "contentChanges": [{"text": "x"}]}
    wire.notify("textDocument/didChange", change)
    await wire.everything_handled()
    assert len(wire.popups()) == (0 if kind == "hel" else 1)
    await wire.close()


@both
async def test_an_untitled_document_is_not_read_from_the_current_folder(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.ini").write_text("port=7000\n")
    monkeypatch.chdir(tmp_path)
    server = make_server(kind)
    wire = await connect(server)
    if isinstance(server, GuardedServer):
        assert server.documents.find("untitled:config.ini") is None
    else:
        assert server.workspace.get_text_document("untitled:config.ini").source == "port=7000\n"
    await wire.close()


@both
async def test_a_document_is_held_once_and_lines_end_where_the_protocol_says(kind: str) -> None:
    server = make_server(kind)
    wire = await connect(server)
    item = {"uri": "file:///a", "languageId": "c", "version": 1, "text": "a\fb\nc\n"}
    wire.notify("textDocument/didOpen", {"textDocument": item})
    span = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 1}}
    change = {"textDocument": {"uri": "file:///a", "version": 2}, "contentChanges": [{"range": span, "text": "d"}]}
    wire.notify("textDocument/didChange", change)
    await wire.everything_handled()
    if isinstance(server, GuardedServer):
        assert server.workspace.text_documents == {}
        assert [document.text for document in server.documents] == ["a\fb\nd\n"]
    else:
        assert server.workspace.get_text_document("file:///a").source == "a\fd\nc\n"
    await wire.close()


async def test_a_command_sees_the_change_that_was_sent_just_before() -> None:
    server = GuardedServer("test", "1")

    async def handler(argument: dict[str, Any] | None) -> list[str]:
        return [document.text for document in server.documents]

    server.commands["ask"] = handler
    wire = await connect(server)
    item = {"uri": "file:///a", "languageId": "c", "version": 1, "text": "old"}
    wire.notify("textDocument/didOpen", {"textDocument": item})
    change = {"textDocument": {"uri": "file:///a", "version": 2}, "contentChanges": [{"text": "new"}]}
    wire.notify("textDocument/didChange", change)
    ask(wire, 2)
    assert (await wire.answer(2))["result"] == ["new"]


# -------------------------------------------------------------------- capabilities


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [
        (["utf-8", "utf-16"], "utf-8"),
        (["utf-32", "utf-16"], "utf-32"),
        (["utf-16"], "utf-16"),
        (["utf-7", "utf-32"], "utf-32"),
        (["utf-7"], "utf-16"),
        ([], "utf-16"),
        (None, "utf-16"),
    ],
)
async def test_the_position_encoding_is_the_clients_first_preference(offered: Any, agreed: str) -> None:
    server = GuardedServer("test", "1")
    wire = await connect(server, capabilities={"general": {"positionEncodings": offered}})
    assert wire.answers("init")[0]["result"]["capabilities"]["positionEncoding"] == agreed
    assert server.documents.encoding == agreed


async def test_whole_texts_opening_closing_and_saving_are_asked_for() -> None:
    server = GuardedServer("test", "1")

    async def handler(argument: dict[str, Any] | None) -> None: ...

    server.commands["hel.ask"] = handler
    wire = await connect(server)
    capabilities = wire.answers("init")[0]["result"]["capabilities"]
    assert capabilities["textDocumentSync"] == {"openClose": True, "change": 1, "save": {"includeText": False}}
    assert capabilities["executeCommandProvider"] == {"commands": ["hel.ask"]}
    assert "notebookDocumentSync" not in capabilities
