"""Lists of tools that change or run out, in both eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hel_lsp.mcp import connection
from tests.mcp.http_server import HttpServer, Post, Reply
from tests.mcp.workspace import ECHO, Workspace, scripted, until

OTHER = {**ECHO, "name": "other"}
CHANGE = [{"tools": [OTHER]}, {"notify": "notifications/tools/list_changed"}, {"fill": 1}]


def lists(workspace: Workspace, record: Path) -> int:
    return len(workspace.received(record, "tools/list"))


async def test_a_change_is_asked_for_when_it_is_needed_and_not_before(workspace: Workspace, tmp_path: Path) -> None:
    record = tmp_path / "record"
    host = await workspace.started({"s": scripted(record=str(record), calls={"echo": CHANGE})})
    await host.refresh()
    assert lists(workspace, record) == 1
    await host.call("mcp__s__echo", {})
    assert list(host.tools()) == ["mcp__s__echo"]
    assert lists(workspace, record) == 1
    await host.refresh()
    assert list(host.tools()) == ["mcp__s__other"]
    await host.refresh()
    assert lists(workspace, record) == 2
    assert "gone" in (await host.call("mcp__s__echo", {})).text


async def test_in_the_new_era_the_change_comes_on_a_stream(workspace: Workspace, tmp_path: Path) -> None:
    record = tmp_path / "record"
    host = await workspace.started({"s": scripted(era="new", listen=True, record=str(record), calls={"echo": CHANGE})})
    await until(lambda: workspace.received(record, "subscriptions/listen"))
    await host.refresh()
    assert lists(workspace, record) == 1
    await host.call("mcp__s__echo", {})
    await host.refresh()
    assert list(host.tools()) == ["mcp__s__other"]


async def test_a_stream_that_ends_is_opened_again_and_the_list_read_again(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PAUSES", (0.01, 0.05))
    record = tmp_path / "record"
    steps = [{"tools": [OTHER]}, {"hang_up": True}, {"fill": 1}]
    host = await workspace.started({"s": scripted(era="new", listen=True, record=str(record), calls={"echo": steps})})
    await until(lambda: workspace.received(record, "subscriptions/listen"))
    await host.call("mcp__s__echo", {})
    await until(lambda: len(workspace.received(record, "subscriptions/listen")) == 2)
    await host.refresh()
    assert list(host.tools()) == ["mcp__s__other"]


@pytest.mark.parametrize("code", [-32603, -32602, -32000])  # the SDK says the last for a connection that has ended
async def test_a_stream_that_is_refused_for_a_while_is_asked_for_until_it_is_there(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(connection, "_PAUSES", (0.01, 0.02))
    record, gate = tmp_path / "record", tmp_path / "gate"
    refusal = {"grant_when": str(gate), "refusal": {"code": code, "message": "busy"}}
    calls = {"echo": [{"hang_up": True}, {"fill": 1}], "change": [{"tools": [OTHER]}, {"fill": 1}]}
    tools = [ECHO, {**ECHO, "name": "change"}]
    server = scripted(era="new", listen=True, tools=tools, calls=calls, record=str(record), **refusal)
    host = await workspace.started({"s": server})

    async def listed(count: int) -> bool:
        await host.refresh()
        return lists(workspace, record) == count

    await until(lambda: workspace.received(record, "subscriptions/listen"))
    await host.call("mcp__s__echo", {})
    await until(lambda: listed(2))
    await until(lambda: len(workspace.received(record, "subscriptions/listen")) > 4)
    await host.call("mcp__s__change", {})
    assert list(host.tools()) == ["mcp__s__echo", "mcp__s__change"]
    gate.touch()
    await until(lambda: listed(3))
    assert list(host.tools()) == ["mcp__s__other"]


async def test_the_list_is_read_again_once_the_stream_is_there_again(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PAUSES", (0.01, 0.02))
    record, gate = tmp_path / "record", tmp_path / "gate"
    calls = {"echo": [{"hang_up": True}, {"fill": 1}], "change": [{"tools": [OTHER]}, {"fill": 1}]}
    tools = [ECHO, {**ECHO, "name": "change"}]
    server = scripted(era="new", listen=True, tools=tools, calls=calls, record=str(record), grant_when=str(gate))
    host = await workspace.started({"s": server})
    await until(lambda: workspace.received(record, "subscriptions/listen"))
    await host.call("mcp__s__echo", {})
    await until(lambda: len(workspace.received(record, "subscriptions/listen")) == 2)
    await host.refresh()
    await host.call("mcp__s__change", {})
    await host.refresh()
    assert (lists(workspace, record), "mcp__s__echo" in host.tools()) == (2, True)
    gate.touch()
    await host.call("mcp__s__change", {})

    async def renewed() -> bool:
        await host.refresh()
        return list(host.tools()) == ["mcp__s__other"]

    await until(renewed)


async def test_a_stream_over_http_survives_a_server_that_is_busy(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PAUSES", (0.01, 0.02))

    def replies(message: dict[str, Any]) -> Reply | None:
        if message["method"] == "server/discover":
            about = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", **about}}
            return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()
        if message["method"] != "subscriptions/listen":
            return None
        if len(server.of("subscriptions/listen")) in (2, 3):
            return 503, {}, b"busy"
        stamp = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        params = {"_meta": stamp, "notifications": {"toolsListChanged": True}}
        granted = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}
        return 200, {"Content-Type": "text/event-stream"}, f"data: {json.dumps(granted)}\n\n".encode()

    async with HttpServer(replies=replies) as server:
        host = await workspace.started({"s": {"url": server.url}})
        await until(lambda: len(server.of("subscriptions/listen")) > 4)
        assert (await host.call("mcp__s__echo", {})).status == "completed"
        await host.aclose()


@pytest.mark.parametrize("listen", [{}, {"listen": False}])
async def test_a_server_without_a_stream_serves_all_the_same(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listen: dict[str, bool]
) -> None:
    monkeypatch.setattr(connection, "_PAUSES", (0.001, 0.002))
    record = tmp_path / "record"
    host = await workspace.started({"s": scripted(era="new", record=str(record), **listen)})
    for _ in range(30):
        assert (await host.call("mcp__s__echo", {})).status == "completed"
    assert len(workspace.received(record, "subscriptions/listen")) == 1
    assert host.servers()[0].status == "ready"


async def test_a_lifetime_of_the_list_is_honoured_by_the_shortest_of_its_pages(
    workspace: Workspace, tmp_path: Path
) -> None:
    def page(name: str, ttl: int, **more: str) -> dict[str, object]:
        return {"tools": [{**ECHO, "name": name}], "ttlMs": ttl, "cacheScope": "public", **more}

    records = {name: tmp_path / name for name in ("lasting", "short", "wrong")}
    pages = {
        "lasting": [page("a", 60_000, nextCursor="1"), page("b", 50_000)],
        "short": [page("a", 60_000, nextCursor="1"), page("b", 0, cacheScope="private")],
        "wrong": [{**page("a", 0), "ttlMs": "soon"}],
    }
    host = await workspace.started(
        {name: scripted(era="new", record=str(records[name]), pages=pages[name]) for name in pages}
    )
    await host.refresh()
    assert {name: lists(workspace, record) for name, record in records.items()} == {
        "lasting": 2,
        "short": 4,
        "wrong": 1,
    }


@pytest.mark.parametrize("scopes", [("private", "public"), ("public", "private"), ("public", "public")])
async def test_a_list_is_kept_for_those_alone_whose_credentials_it_was_given_for(
    workspace: Workspace, scopes: tuple[str, str]
) -> None:
    def listed(post: Post) -> dict[str, Any]:
        key, last = post.headers["authorization"].split()[1], "cursor" in post.message.get("params", {})
        more: dict[str, Any] = {} if last else {"nextCursor": "1"}
        tool = {**ECHO, "name": f"{key}-{int(last)}"}
        return {"tools": [tool], "ttlMs": 60_000 - last, "cacheScope": scopes[last], **more}

    def asked(key: str) -> int:
        return sum(post.headers["authorization"] == f"Bearer {key}" for post in server.of("tools/list"))

    async with HttpServer(listed=listed) as server:

        def entry(key: str) -> dict[str, Any]:
            return {"url": server.url, "headers": {"Authorization": f"Bearer {key}"}}

        host = await workspace.started({"a": entry("ann"), "b": entry("bob"), "again": entry("ann")})
        assert set(host.tools()) == {
            *("mcp__a__ann-0", "mcp__a__ann-1", "mcp__again__ann-0", "mcp__again__ann-1"),
            *("mcp__b__bob-0", "mcp__b__bob-1"),
        }
        await host.refresh()
        assert (asked("ann"), asked("bob")) == (4, 2)
        workspace.declare({"a": entry("eve"), "b": entry("bob")})
        await host.reload()
        assert set(host.tools()) == {"mcp__a__eve-0", "mcp__a__eve-1", "mcp__b__bob-0", "mcp__b__bob-1"}
        assert (asked("eve"), asked("bob")) == (2, 2)
        await host.aclose()


async def test_a_list_that_cannot_be_renewed_stays_as_it_was(workspace: Workspace, era: str) -> None:
    broken = [{"tools": "gone"}, {"notify": "notifications/tools/list_changed"}, {"exit": 1}]
    host = await workspace.started({"s": scripted(era=era, calls={"echo": broken})})
    await host.call("mcp__s__echo", {})
    await host.refresh()
    assert list(host.tools()) == ["mcp__s__echo"]
