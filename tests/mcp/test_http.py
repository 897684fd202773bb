"""Servers over Streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.mcp.http_server import HttpServer, with_sign_in
from tests.mcp.workspace import Person, Workspace, until

KINDS = pytest.mark.parametrize(("era", "streams"), [("new", False), ("new", True), ("old", False), ("old", True)])


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEL_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@KINDS
async def test_a_server_is_called_with_the_headers_of_its_entry(workspace: Workspace, era: str, streams: bool) -> None:
    async with HttpServer(era=era, streams=streams) as server:
        host = await workspace.started({"s": {"url": server.url, "headers": {"X-Team": "blue"}}})
        assert host.servers()[0].protocol_version == ("2026-07-28" if era == "new" else "2025-11-25")
        result = await host.call("mcp__s__echo", {"a": 1})
        assert (result.status, json.loads(result.text)) == ("completed", {"a": 1})
        assert {post.headers.get("x-team") for post in server.posts} == {"blue"}
        await host.aclose()


@KINDS
async def test_results_against_the_rules_and_bad_tools_cost_only_themselves(
    workspace: Workspace, era: str, streams: bool
) -> None:
    async def called(params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "hologram", "text": "there"}]}

    tools = [{"name": "bad"}, {"name": "echo", "inputSchema": {}}]
    async with HttpServer(era=era, streams=streams, tools=tools, called=called) as server:
        host = await workspace.started({"s": {"url": server.url}})
        assert list(host.tools()) == ["mcp__s__echo"]
        assert (await host.call("mcp__s__echo", {})).text.startswith("there")
        await host.aclose()


async def test_cancelling_closes_the_response_stream(workspace: Workspace) -> None:
    begun = asyncio.Event()

    async def called(params: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        await asyncio.Event().wait()
        return {}

    async with HttpServer(called=called) as server:
        host = await workspace.started({"s": {"url": server.url}})
        call = asyncio.create_task(host.call("mcp__s__echo", {}))
        await begun.wait()
        began = time.monotonic()
        call.cancel()
        await asyncio.wait({call})
        assert time.monotonic() - began < 1
        async with asyncio.timeout(5):
            await server.hung_up.wait()
        assert "notifications/cancelled" not in server.methods()
        await host.aclose()


async def test_a_lost_server_is_an_error_of_the_call_and_found_again_at_the_next(workspace: Workspace) -> None:
    begun = asyncio.Event()

    async def called(params: dict[str, Any]) -> dict[str, Any]:
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return {"content": [{"type": "text", "text": "back"}]}

    async with HttpServer(called=called) as server:
        host = await workspace.started({"s": {"url": server.url}})
        call = asyncio.create_task(host.call("mcp__s__echo", {}))
        await begun.wait()
        for connection in tuple(server._connections):
            connection.cancel()
        result = await call
        assert result.status == "failed"
        assert (await host.call("mcp__s__echo", {})).text == "back"
        await host.aclose()


async def test_a_server_that_is_not_there_fails_and_says_so(workspace: Workspace) -> None:
    async with HttpServer() as server:
        url = server.url
    host = await workspace.started({"s": {"url": url}})
    (state,) = host.servers()
    assert state.status == "failed"
    assert "connection" in state.diagnostics[-1].lower()


async def test_a_session_that_the_server_forgot_is_made_anew_once(workspace: Workspace) -> None:
    async with HttpServer(era="old", session="abc") as server:
        host = await workspace.started({"s": {"url": server.url}})
        assert server.of("tools/list")[0].headers["mcp-session-id"] == "abc"
        server.forget = True
        result = await host.call("mcp__s__echo", {"a": 1})
        assert (result.status, json.loads(result.text)) == ("completed", {"a": 1})
        assert len(server.of("initialize")) == 2
        await host.aclose()


async def test_a_message_of_more_than_a_megabyte_comes_through(workspace: Workspace) -> None:
    async def called(params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "x" * 5_000_000}]}

    async with HttpServer(streams=True, called=called) as server:
        host = await workspace.started({"s": {"url": server.url}})
        assert len((await host.call("mcp__s__echo", {})).text) == 5_000_000
        await host.aclose()


async def test_arguments_that_belong_into_headers_are_sent_there(workspace: Workspace) -> None:
    schema = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": True}}
    async with HttpServer(tools=[{"name": "echo", "inputSchema": schema}]) as server:
        host = await workspace.started({"s": {"url": server.url}})
        await host.call("mcp__s__echo", {"region": "eu"})
        (post,) = server.of("tools/call")
        assert post.headers["mcp-param-region"] == "eu"
        assert (post.headers["mcp-method"], post.headers["mcp-name"]) == ("tools/call", "echo")
        await host.aclose()


async def test_a_refused_key_is_reported_with_the_status(workspace: Workspace) -> None:
    async with HttpServer(token="right") as server:
        host = await workspace.started({"s": {"url": server.url, "headers": {"Authorization": "Bearer wrong"}}})
        (state,) = host.servers()
        assert (state.status, "HTTP 401" in state.diagnostics[-1]) == ("failed", True)


class Browser(Person):
    """Signs in as soon as the page is shown, after others have tried to be let in."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[int] = []

    async def open(self, url: str) -> bool:
        await super().open(url)
        self.task = asyncio.create_task(self._sign_in(url))
        return True

    async def _sign_in(self, url: str) -> None:
        query = parse_qs(urlsplit(url).query)
        back, state = query["redirect_uri"][0], query["state"][0]
        async with httpx.AsyncClient(trust_env=False) as client:
            for parameters, headers in (
                ({"code": "c0", "state": state}, {"Host": "evil.example"}),
                ({"code": "c0", "state": "guessed"}, {}),
            ):
                self.refused.append((await client.get(back, params=parameters, headers=headers)).status_code)
            await client.get(back, params={"code": "c0", "state": state})


async def test_a_person_signs_in_once_and_the_token_stays_on_disk_for_them_alone(
    workspace: Workspace, state: Path
) -> None:
    async with HttpServer() as server:
        asked = with_sign_in(server)
        workspace.person = browser = Browser()
        host = await workspace.started({"s": {"url": server.url}})
        assert host.servers()[0].status == "ready", host.servers()[0].diagnostics
        assert (await host.call("mcp__s__echo", {})).status == "completed"
        assert browser.refused == [400, 400]
        assert [ask["code"] for ask in asked] == [["c0"]]
        (file,) = (state / "mcp-auth").iterdir()
        if sys.platform != "win32":
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        await host.aclose()
        again = await workspace.started()
        assert again.servers()[0].status == "ready"
        assert (len(browser.opened), len(asked)) == (1, 1)
        await again.aclose()


async def test_where_nothing_can_be_shown_signing_in_fails_with_a_reason(workspace: Workspace) -> None:
    async with HttpServer() as server:
        with_sign_in(server)
        host = await workspace.started({"s": {"url": server.url}})
        (state,) = host.servers()
        assert (state.status, "sign in" in state.diagnostics[-1]) == ("failed", True)


async def test_a_client_that_is_registered_by_hand_is_used(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "shh")
    async with HttpServer() as server:
        asked = with_sign_in(server)
        workspace.person = browser = Browser()
        auth = {"clientId": "ours", "clientSecretEnv": "OUR_SECRET", "scopes": ["read", "write"]}
        host = await workspace.started({"s": {"url": server.url, "auth": auth}})
        assert host.servers()[0].status == "ready", host.servers()[0].diagnostics
        query = parse_qs(urlsplit(browser.opened[0]).query)
        assert (query["client_id"], query["scope"]) == (["ours"], ["read write"])
        assert asked[0]["client_id"] == ["ours"]
        await until(lambda: browser.task.done())
        await host.aclose()


async def test_what_a_server_was_sent_in_secret_is_not_in_what_is_told_of_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Now and when the tokens come from the disk: here it has tools that are dropped, named like what it got."""
    secrets = ["token-of-a-sign-in", "known-by-both-sides"]
    monkeypatch.setenv("OURS", secrets[1])
    async with HttpServer() as server:
        with_sign_in(server, secrets[0])
        server.listed = lambda post: {"tools": [{"name": f"{post.headers['authorization']} {secrets[1]}"}]}
        for _ in range(2):
            workspace.person = browser = Browser()
            auth = {"clientId": "ours", "clientSecretEnv": "OURS"}
            host = await workspace.started({"s": {"url": server.url, "auth": auth}})
            (state,) = host.servers()
            assert "[hidden]" in " ".join(state.diagnostics)
            told = json.dumps([state.diagnostics, workspace.log.entries])
            assert not any(secret in told for secret in secrets)
            if browser.opened:
                await browser.task
            await host.aclose()
        assert browser.opened == []


@pytest.mark.parametrize("variable", ["THE_KEY", "${NOWHERE:-THE_KEY}"])
async def test_the_models_key_is_no_secret_of_a_client(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("THE_KEY", "sk-of-the-model")
    async with HttpServer() as server:
        asked = with_sign_in(server)
        workspace.person = Browser()
        entry = {"url": server.url, "auth": {"clientId": "theirs", "clientSecretEnv": variable}}
        host = await workspace.started({"s": entry}, refused={"THE_KEY"})
        (state,) = host.servers()
        assert (state.status, asked, server.posts) == ("disabled", [], [])
        assert "auth.clientSecretEnv" in state.diagnostics[0]
        assert "THE_KEY" in state.diagnostics[0]
