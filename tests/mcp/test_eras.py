from __future__ import annotations

import json
from pathlib import Path

import pytest

from hel_lsp.mcp import connection, transport
from tests.mcp.workspace import Workspace, scripted


async def methods(workspace: Workspace, record: Path, **behaviour: object) -> list[str]:
    """What a server hears that is started and called once."""
    host = await workspace.started({"s": scripted(record=str(record), **behaviour)})
    (server,) = host.servers()
    assert server.status == "ready", server.diagnostics
    result = await host.call("mcp__s__echo", {"a": 1})
    assert (result.status, json.loads(result.text)) == ("completed", {"a": 1})
    return [message["method"] for message in workspace.received(record)]


async def test_a_server_of_the_new_era_is_greeted_by_discover_alone(workspace: Workspace, tmp_path: Path) -> None:
    heard = await methods(workspace, tmp_path / "record", era="new")
    assert heard == ["server/discover", "tools/list", "subscriptions/listen", "tools/call"]
    assert workspace.hosts[0].servers()[0].protocol_version == "2026-07-28"
    (call,) = workspace.received(tmp_path / "record", "tools/call")
    assert call["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] == "hel-lsp"


async def test_a_server_of_the_old_era_is_initialized(workspace: Workspace, tmp_path: Path) -> None:
    heard = await methods(workspace, tmp_path / "record")
    assert heard == ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]
    assert workspace.hosts[0].servers()[0].protocol_version == "2025-11-25"


async def test_an_older_version_that_the_server_prefers_is_accepted(workspace: Workspace, tmp_path: Path) -> None:
    await methods(workspace, tmp_path / "record", version="2024-11-05")
    assert workspace.hosts[0].servers()[0].protocol_version == "2024-11-05"


async def test_a_version_that_nobody_knows_is_a_failure_that_names_it(workspace: Workspace) -> None:
    host = await workspace.started({"s": scripted(version="1999-01-01")})
    (server,) = host.servers()
    assert server.status == "failed"
    assert "1999-01-01" in server.diagnostics[-1]


async def test_a_server_that_dies_on_discover_is_started_afresh_the_old_way(
    workspace: Workspace, tmp_path: Path
) -> None:
    heard = await methods(workspace, tmp_path / "record", probe="dies")
    assert heard == ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]


@pytest.mark.parametrize("probe", [None, "dies"])
async def test_the_era_is_remembered_when_the_server_is_started_again(
    workspace: Workspace, tmp_path: Path, probe: str | None
) -> None:
    record = tmp_path / "record"
    host = await workspace.started({"s": scripted(probe=probe, record=str(record), calls={"echo": [{"exit": 3}]})})
    for _ in range(2):
        assert (await host.call("mcp__s__echo", {})).status == "failed"
    assert [message["method"] for message in workspace.received(record)].count("server/discover") == 1


async def test_a_server_that_is_silent_on_discover_is_initialized_after_a_bounded_probe(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "PROBE", 0.2)
    heard = await methods(workspace, tmp_path / "record", probe="silent")
    assert heard == ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]


@pytest.mark.parametrize("probe", ["dies", "silent"])
async def test_a_server_of_the_new_era_alone_that_cannot_say_so_fails_and_costs_only_itself(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: str
) -> None:
    monkeypatch.setattr(transport, "PROBE", 0.2)
    record = tmp_path / "record"
    behaviour = scripted(era="new", probe=probe, record=str(record))
    host = await workspace.started({"bad": behaviour, "good": scripted(era="new")})
    assert [server.status for server in host.servers()] == ["failed", "ready"]
    assert [message["method"] for message in workspace.received(record)] == ["server/discover", "initialize"]
    assert list(host.tools()) == ["mcp__good__echo"]


async def test_a_server_that_answers_discover_later_than_it_is_waited_for_is_used(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(transport, "PROBE", 0.1)
    await methods(workspace, tmp_path / "record", era=era, probe=0.4)
    assert workspace.hosts[0].servers()[0].protocol_version == ("2025-11-25" if era == "old" else "2026-07-28")


async def test_all_pages_of_the_list_are_read(workspace: Workspace, era: str) -> None:
    pages = [[{"name": f"t{n}", "inputSchema": {}}] for n in range(5)]
    host = await workspace.started({"s": scripted(era=era, pages=pages)})
    assert list(host.tools()) == [f"mcp__s__t{n}" for n in range(5)]


async def test_a_list_that_goes_in_circles_is_cut_off_with_a_diagnostic(workspace: Workspace, era: str) -> None:
    first = [{"name": "a", "inputSchema": {}}]
    second = {"tools": [{"name": "b", "inputSchema": {}}], "nextCursor": "1"}
    host = await workspace.started({"s": scripted(era=era, pages=[first, second])})
    (server,) = host.servers()
    assert list(host.tools()) == ["mcp__s__a", "mcp__s__b"]
    assert "cut off" in server.diagnostics[0]


async def test_a_list_without_an_end_is_cut_off_with_a_diagnostic(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(connection, "PAGES", 20)
    record = tmp_path / "record"
    pages = [[{"name": f"t{n}", "inputSchema": {}}] for n in range(3)]
    host = await workspace.started({"s": scripted(era=era, pages=pages, endless=True, record=str(record))})
    (server,) = host.servers()
    assert (server.status, list(host.tools())) == ("ready", [f"mcp__s__t{n}" for n in range(3)])
    assert len(workspace.received(record, "tools/list")) == 20
    assert "the list of tools was cut off: it has more than 20 pages" in server.diagnostics


async def test_answers_that_lack_what_the_era_asks_for_are_understood(workspace: Workspace, era: str) -> None:
    bare = scripted(era=era, bare=True, calls={"echo": [{"result": {"content": [{"text": "there"}]}}]})
    host = await workspace.started({"s": bare})
    (server,) = host.servers()
    assert (server.status, list(host.tools())) == ("ready", ["mcp__s__echo"])
    result = await host.call("mcp__s__echo", {})
    assert (result.status, result.text.split("\n")[0]) == ("completed", "there")


async def test_one_bad_tool_never_costs_the_others(workspace: Workspace, era: str) -> None:
    tools = [
        {"name": "no_schema"},
        {"name": "wrong", "inputSchema": {"type": "string"}},
        5,
        {"name": "odd", "inputSchema": {"properties": {"a": True}, "required": "a"}, "icons": 7, "outputSchema": 3},
        {"name": "good", "inputSchema": {"type": "object"}, "annotations": {"title": 5}, "description": None},
        {"name": "good", "inputSchema": {"type": "object"}},
    ]
    host = await workspace.started({"s": scripted(era=era, tools=tools)})
    (server,) = host.servers()
    assert list(host.tools()) == ["mcp__s__odd", "mcp__s__good"]
    assert len(server.diagnostics) == 4
    assert (await host.call("mcp__s__good", {})).status == "completed"


async def test_a_tool_that_asks_for_forbidden_headers_is_dropped_in_the_new_era(workspace: Workspace) -> None:
    def tool(name: str, header: str) -> dict[str, object]:
        return {"name": name, "inputSchema": {"properties": {"a": {"type": "string", "x-mcp-header": header}}}}

    host = await workspace.started({"s": scripted(era="new", tools=[tool("bad", "a b\n"), tool("fine", "Region")])})
    assert list(host.tools()) == ["mcp__s__fine"]
    assert "bad" in host.servers()[0].diagnostics[0]


@pytest.mark.parametrize("page", [{"tools": "none"}, {}, {"tools": None, "nextCursor": 5}])
async def test_a_list_that_is_no_list_is_an_empty_one(workspace: Workspace, page: object, era: str) -> None:
    host = await workspace.started({"s": scripted(era=era, pages=[page])})
    (server,) = host.servers()
    assert (server.status, list(host.tools())) == ("ready", [])
    assert server.diagnostics
