from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hel_lsp.demo import inventory
from hel_lsp.errors import InvalidArguments
from hel_lsp.ports import TrustRequest
from tests.mcp.workspace import ECHO, Workspace, scripted, until


async def test_the_inventory_is_found_loaded_and_called(workspace: Workspace, tmp_path: Path) -> None:
    copy = workspace.folder / ".hel" / "mcp" / "inventory.py"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(Path(inventory.__file__).read_bytes())
    record = tmp_path / "calls.jsonl"
    host = await workspace.started(
        {
            "inventory": {
                "command": sys.executable,
                "args": [".hel/mcp/inventory.py"],
                "env": {"INVENTORY_RECORD": str(record)},
            }
        }
    )
    (server,) = host.servers()
    assert (server.status, server.protocol_version, server.diagnostics) == ("ready", "2026-07-28", [])
    assert list(host.tools()) == ["mcp__inventory__list_services", "mcp__inventory__lookup_port"]
    assert not record.exists()
    arguments = host.validate("mcp__inventory__lookup_port", {"service": "api"})
    result = await host.call("mcp__inventory__lookup_port", arguments)
    assert (result.status, "8437" in result.text) == ("completed", True)
    assert (await host.call("mcp__inventory__lookup_port", {"service": "nowhere"})).status == "failed"
    with pytest.raises(InvalidArguments):
        host.validate("mcp__inventory__lookup_port", {"servic": "api"})
    assert [json.loads(line) for line in record.read_text().splitlines()] == [
        {"tool": "lookup_port", "arguments": {"service": "api"}},
        {"tool": "lookup_port", "arguments": {"service": "nowhere"}},
    ]


def test_importing_the_host_imports_nothing_heavy() -> None:
    check = "import sys, hel_lsp.mcp.host; print([m for m in ('mcp', 'pydantic', 'jsonschema') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


async def test_without_a_file_nothing_is_asked_and_there_are_no_tools(workspace: Workspace) -> None:
    host = await workspace.started()
    assert (host.tools(), host.servers(), workspace.asked) == ({}, [], [])


async def test_disabled_as_a_whole_nothing_is_read(workspace: Workspace) -> None:
    host = await workspace.started({"s": scripted()}, enabled=False)
    assert (host.servers(), workspace.asked) == ([], [])


async def test_a_look_tells_each_server_as_its_file_stands_and_a_start_reads_it_again(workspace: Workspace) -> None:
    workspace.declare({"s": scripted(), "theirs": scripted()}, file=".mcp.json", key="mcpServers")
    host = workspace.host({"s": scripted(), "off": {**scripted(), "disabled": True}, "a__b": scripted()})
    await host.look(lambda request: request.file.parent.name == ".hel")
    looked_at = {server.name: (server.status, len(server.diagnostics)) for server in host.servers()}
    assert looked_at == {"s": ("stopped", 1), "off": ("disabled", 1), "a__b": ("failed", 1), "theirs": ("untrusted", 0)}
    assert (workspace.asked, workspace.log.entries, list(host.tools()), list(host.pending())) == ([], [], [], [])
    workspace.declare({"other": scripted()})
    await host.start()
    assert [(server.name, server.status) for server in host.servers()] == [
        ("other", "ready"),
        ("s", "ready"),
        ("theirs", "ready"),
    ]
    await host.look(lambda request: False)
    assert len(host.servers()) == 3


async def test_without_trust_nothing_is_started(workspace: Workspace, tmp_path: Path) -> None:
    workspace.trusts = False
    host = await workspace.started({"s": scripted(pids=str(tmp_path / "pids"))})
    await host.start()
    assert [server.status for server in host.servers()] == ["untrusted"]
    assert (host.tools(), len(workspace.asked)) == ({}, 1)
    assert not (tmp_path / "pids").exists()


async def test_what_was_shown_is_what_runs_even_if_the_file_changes_meanwhile(workspace: Workspace) -> None:
    async def trust(request: TrustRequest) -> bool:
        workspace.declare({"evil": scripted()})
        return True

    workspace.trust = trust  # type: ignore[method-assign]
    host = await workspace.started({"good": scripted()})
    assert [server.name for server in host.servers()] == ["good"]
    assert list(host.tools()) == ["mcp__good__echo"]


async def test_a_start_that_is_cancelled_at_the_question_asks_again(workspace: Workspace) -> None:
    asked = asyncio.Event()

    async def never(request: TrustRequest) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    trust = workspace.trust
    workspace.trust = never  # type: ignore[method-assign]
    host = workspace.host({"s": scripted()})
    start = asyncio.create_task(host.start())
    await asked.wait()
    start.cancel()
    await asyncio.wait({start})
    assert host.servers() == []
    host._trust = trust  # pyright: ignore[reportPrivateUsage]
    await host.start()
    assert len(workspace.asked) == 1
    assert list(host.tools()) == ["mcp__s__echo"]


async def test_a_file_that_cannot_be_parsed_is_told_and_starts_nothing(workspace: Workspace) -> None:
    (workspace.folder / ".hel").mkdir()
    file = workspace.folder / ".hel" / "mcp.json"
    file.write_text('{"servers": {\n"s": {"command": "x"},,\n}}')
    workspace.declare({"other": scripted()}, file=".mcp.json", key="mcpServers")
    host = await workspace.started()
    (told,) = workspace.told
    assert told.startswith(f"{file}, line 2, column 23")
    assert [server.name for server in host.servers()] == ["other"]


async def test_a_server_in_both_files_is_that_of_hel_with_a_diagnostic(workspace: Workspace) -> None:
    workspace.declare({"s": scripted(tools=[{**ECHO, "name": "theirs"}])}, file=".mcp.json", key="mcpServers")
    host = await workspace.started({"s": scripted(tools=[{**ECHO, "name": "ours"}])})
    (server,) = host.servers()
    assert list(host.tools()) == ["mcp__s__ours"]
    assert server.diagnostics == ["declared in .mcp.json as well, where it is ignored"]
    assert [request.file.name for request in workspace.asked] == ["mcp.json", ".mcp.json"]


async def test_a_slow_server_holds_up_neither_the_others_nor_the_turn(
    workspace: Workspace, tmp_path: Path, era: str
) -> None:
    gate = tmp_path / "gate"
    servers = {"slow": scripted(era=era, start_when=str(gate)), "quick": scripted(era=era)}
    host = workspace.host(servers, start_wait=0)
    await host.start()
    await until(lambda: "mcp__quick__echo" in host.tools())
    assert list(host.pending()) == ["slow"]
    assert (await host.call("mcp__quick__echo", {})).status == "completed"
    gate.touch()
    await host.settle()
    assert host.pending() == []
    assert list(host.tools()) == ["mcp__slow__echo", "mcp__quick__echo"]


async def test_a_failing_server_says_why_and_costs_itself_alone(workspace: Workspace) -> None:
    host = await workspace.started(
        {
            "missing": {"command": "no-such-command-here"},
            "nowhere": {**scripted(), "cwd": "no/such/folder"},
            "ends": {"command": sys.executable, "args": ["-c", "import sys; sys.exit('out of luck')"]},
            "unset": {"command": "${NO_SUCH_VARIABLE_HERE}"},
            "off": {**scripted(), "disabled": True},
            "silent": {"command": sys.executable, "args": ["-c", "for line in open(0): pass"], "startTimeout": 0.5},
            "good": scripted(),
        }
    )
    servers = {server.name: server for server in host.servers()}
    assert {name: server.status for name, server in servers.items()} == {
        "missing": "failed",
        "nowhere": "failed",
        "ends": "failed",
        "unset": "disabled",
        "off": "disabled",
        "silent": "failed",
        "good": "ready",
    }
    assert "no-such-command-here was not found" in servers["missing"].diagnostics[0]
    assert "exited with status 1" in servers["ends"].diagnostics[-1]
    assert "out of luck" in servers["ends"].diagnostics[-1]
    assert "NO_SUCH_VARIABLE_HERE" in servers["unset"].diagnostics[0]
    assert servers["silent"].diagnostics == ["not ready within 0.5 s"]


async def test_what_is_always_loaded_is_named(workspace: Workspace) -> None:
    tools = [{**ECHO, "name": name} for name in ("a", "b")]
    host = await workspace.started(
        {
            "all": {**scripted(tools=tools), "alwaysLoad": True},
            "some": {**scripted(tools=tools), "alwaysLoad": ["b"]},
            "none": scripted(tools=tools),
        }
    )
    assert list(host.always_loaded()) == ["mcp__all__a", "mcp__all__b", "mcp__some__b"]


async def test_a_server_gets_the_safe_environment_and_what_the_file_names(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEL_API_KEY", "sk-secret")
    monkeypatch.setenv("GREETING", "hello")
    server = {**scripted(calls={"echo": [{"environment": True}]}), "env": {"OWN": "${GREETING}"}}
    host = await workspace.started({"s": server}, refused={"HEL_API_KEY"})
    environment = json.loads((await host.call("mcp__s__echo", {})).text)
    assert environment.pop("OWN") == "hello"
    assert environment.pop("PATH")
    assert set(environment) <= {"HOME", "LOGNAME", "SHELL", "TERM", "USER", "LC_CTYPE"}


async def test_reload_restarts_what_changed_and_leaves_the_rest(workspace: Workspace, tmp_path: Path) -> None:
    def pid(name: str) -> int:
        return json.loads((tmp_path / name).read_text())[0]

    def server(name: str, **more: object) -> dict[str, object]:
        return scripted(pids=str(tmp_path / name), **more)

    host = await workspace.started({name: server(name) for name in ("same", "changes", "goes")})
    before = {name: pid(name) for name in ("same", "changes", "goes")}
    workspace.declare({"same": server("same"), "changes": server("changes", instructions="x"), "new": server("new")})
    await host.reload()
    assert {s.name: s.status for s in host.servers()} == dict.fromkeys(["same", "changes", "new"], "ready")
    assert (pid("same") == before["same"], pid("changes") == before["changes"]) == (True, False)
    assert list(host.tools()) == ["mcp__same__echo", "mcp__changes__echo", "mcp__new__echo"]
    assert len(workspace.asked) == 2
    await host.reload("same")
    assert pid("same") != before["same"]


async def test_standard_error_goes_to_the_log_alone_and_without_secrets(workspace: Workspace, era: str) -> None:
    secrets = {"MY_TOKEN": "hush-hush", "API_KEY": "", "AUTH": "Bearer abc-def", "SHORT_KEY": "a"}
    server = {**scripted(era=era, stderr="\x1b[1mstarting with hush-hush, abc-def\n"), "env": secrets}
    host = await workspace.started({"s": server})
    await until(lambda: workspace.log.of("mcp_stderr"))
    assert [entry["text"] for entry in workspace.log.of("mcp_stderr")] == ["starting with [hidden], [hidden]\n"]
    assert host.servers()[0].diagnostics == []


async def test_at_most_64_kib_of_standard_error_are_kept(workspace: Workspace, era: str) -> None:
    host = await workspace.started({"s": scripted(era=era, stderr="x" * 120_000)})
    assert host.servers()[0].status == "ready"
    await host.aclose()
    assert sum(len(entry["text"]) for entry in workspace.log.of("mcp_stderr")) == 65536


async def test_a_flood_of_standard_error_in_mid_call_stops_nothing(workspace: Workspace, era: str) -> None:
    host = await workspace.started({"s": scripted(era=era, flood=2_000_000)})
    assert (await host.call("mcp__s__echo", {"n": 1})).text == '{"n": 1}'
    await host.aclose()
    assert sum(len(entry["text"]) for entry in workspace.log.of("mcp_stderr")) == 65536
