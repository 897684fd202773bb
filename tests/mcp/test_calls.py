from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from hel_lsp.mcp import server
from tests.mcp.workspace import ECHO, Workspace, scripted, scripted_from, until


async def test_a_call_that_takes_too_long_is_cancelled_and_the_server_kept(
    workspace: Workspace, tmp_path: Path, era: str
) -> None:
    record, gate = tmp_path / "record", tmp_path / "gate"
    tools = [ECHO, {**ECHO, "name": "slow"}]
    behaviour = scripted(era=era, tools=tools, record=str(record), calls={"slow": [{"wait": str(gate)}, {"fill": 3}]})
    host = await workspace.started({"s": {**behaviour, "timeout": 0.3}})
    result = await host.call("mcp__s__slow", {})
    assert result.status == "failed"
    assert "No answer from the MCP server s within 0.3 s" in result.text
    assert "unknown" in result.text
    gate.touch()
    late = await host.call("mcp__s__echo", {"n": 1})
    assert (late.status, json.loads(late.text)) == ("completed", {"n": 1})
    (slow, _) = workspace.received(record, "tools/call")
    (cancel,) = workspace.received(record, "notifications/cancelled")
    assert cancel["params"]["requestId"] == slow["id"]


async def test_the_users_cancel_reaches_the_server_at_once(workspace: Workspace, tmp_path: Path, era: str) -> None:
    record, gate = tmp_path / "record", tmp_path / "gate"
    host = await workspace.started(
        {"s": scripted(era=era, record=str(record), calls={"echo": [{"wait": str(gate)}, {"fill": 3}]})}
    )
    call = asyncio.create_task(host.call("mcp__s__echo", {}))
    await until(lambda: workspace.received(record, "tools/call"))
    began = time.monotonic()
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled()
    assert time.monotonic() - began < 1
    gate.touch()
    await until(lambda: workspace.received(record, "notifications/cancelled"))
    assert host.servers()[0].status == "ready"


async def test_a_server_that_reads_nothing_does_not_hold_up_a_cancel(
    workspace: Workspace, tmp_path: Path, era: str
) -> None:
    record = tmp_path / "record"
    host = await workspace.started({"s": scripted(era=era, record=str(record), calls={"echo": [{"wait": "/no/such"}]})})
    big = {"text": "x" * 1_000_000}
    calls = [asyncio.create_task(host.call("mcp__s__echo", big)) for _ in range(2)]
    await until(lambda: workspace.received(record, "tools/call"))
    began = time.monotonic()
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    assert time.monotonic() - began < 1


async def test_progress_extends_the_time_of_a_call(workspace: Workspace, era: str) -> None:
    steps = [{"progress": 6, "every": 0.15}, {"fill": 3}]
    host = await workspace.started({"s": {**scripted(era=era, calls={"echo": steps}), "timeout": 0.4}})
    assert (await host.call("mcp__s__echo", {})).text == "xxx"


async def test_progress_extends_it_to_ten_times_at_the_most(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(server, "EXTENSION", 2)
    steps = [{"progress": 100, "every": 0.05}]
    host = await workspace.started({"s": {**scripted(era=era, calls={"echo": steps}), "timeout": 0.3}})
    began = time.monotonic()
    assert (await host.call("mcp__s__echo", {})).status == "failed"
    assert 0.6 <= time.monotonic() - began < 2


async def test_a_server_that_dies_fails_every_call_in_flight_with_its_exit_status(
    workspace: Workspace, tmp_path: Path, era: str
) -> None:
    record, gate = tmp_path / "record", tmp_path / "gate"
    host = await workspace.started(
        {"s": scripted(era=era, record=str(record), calls={"echo": [{"wait": str(gate)}, {"exit": 3}]})}
    )
    calls = [asyncio.create_task(host.call("mcp__s__echo", {})) for _ in range(3)]
    await until(lambda: workspace.received(record, "tools/call"))
    gate.touch()
    results = await asyncio.gather(*calls)
    assert {result.text for result in results} == {"The MCP server s exited with status 3 during the call."}
    assert {result.status for result in results} == {"failed"}
    (state,) = host.servers()
    assert (state.status, "about to end" in state.diagnostics[-1]) == ("failed", True)
    assert list(host.tools()) == ["mcp__s__echo"]


async def test_the_next_call_starts_a_dead_server_again(workspace: Workspace, tmp_path: Path, era: str) -> None:
    flag = tmp_path / "flag"
    tools = [ECHO, {**ECHO, "name": "die"}]
    host = await workspace.started({"s": scripted(era=era, tools=tools, pids=str(flag), calls={"die": [{"exit": 1}]})})
    first = json.loads(flag.read_text())
    await host.call("mcp__s__die", {})
    result = await host.call("mcp__s__echo", {"a": 1})
    assert (result.status, json.loads(result.text)) == ("completed", {"a": 1})
    assert json.loads(flag.read_text()) != first
    assert host.servers()[0].status == "ready"


async def test_a_server_that_keeps_dying_stays_down_after_three_restarts(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(server, "BACK_OFF", (0.0, 0.01, 0.02))
    record = tmp_path / "record"
    host = await workspace.started({"s": scripted(era=era, record=str(record), calls={"echo": [{"exit": 1}]})})
    results = [await host.call("mcp__s__echo", {}) for _ in range(6)]
    assert len(workspace.received(record, "tools/call")) == 4
    assert "is down" in results[-1].text
    await host.reload()
    assert host.servers()[0].status == "ready"


@pytest.mark.parametrize("code", [-32602, -32000])  # the SDK says the second for a connection that has ended
async def test_an_error_of_the_server_is_a_failed_result_with_its_message(
    workspace: Workspace, era: str, code: int
) -> None:
    error = {"code": code, "message": "No such \x1b[1mcity"}
    host = await workspace.started({"s": scripted(era=era, calls={"echo": [{"error": error}]})})
    result = await host.call("mcp__s__echo", {})
    assert (result.status, result.text) == ("failed", f"The server answered with the error {code}: No such city")


@pytest.mark.parametrize(
    ("result", "status", "text"),
    [
        ({"content": [{"type": "hologram", "text": "there"}]}, "completed", "there"),
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, "failed", "no"),
        ({"structuredContent": {"a": 1}}, "completed", '{"a": 1}'),
        ({"content": "plain", "_meta": 5, "resultType": "other"}, "completed", "plain"),
        ("just text", "completed", "just text"),
        (None, "completed", "(no output)"),
    ],
)
async def test_a_result_against_the_rules_is_never_lost(
    workspace: Workspace, era: str, result: object, status: str, text: str
) -> None:
    host = await workspace.started({"s": scripted(era=era, calls={"echo": [{"result": result}]})})
    came = await host.call("mcp__s__echo", {})
    assert came.status == status
    assert came.text.startswith(text)


async def test_a_result_that_breaks_its_schema_is_delivered_with_a_note(workspace: Workspace, era: str) -> None:
    tool = {**ECHO, "outputSchema": {"type": "object", "required": ["port"]}}
    answer = {"content": [{"type": "text", "text": "done"}], "structuredContent": {}}
    host = await workspace.started({"s": scripted(era=era, tools=[tool], calls={"echo": [{"result": answer}]})})
    result = await host.call("mcp__s__echo", {})
    assert result.status == "completed"
    assert result.text.startswith("done\n[note: the result breaks")


async def test_noise_on_standard_output_is_skipped_and_logged(workspace: Workspace, era: str) -> None:
    answer = '{"jsonrpc":"2.0","id":%ID%,"result":{"content":[{"type":"text","text":"ok"}]}}'
    steps = [{"line": "Debug: calling"}, {"bytes": "fffe"}, {"line": '{"half": '}, {"line": ""}, {"line": answer}]
    host = await workspace.started(
        {"s": scripted(era=era, noise=["Welcome!", "\x1b[32mready\x1b[0m"], calls={"echo": steps})}
    )
    assert (await host.call("mcp__s__echo", {})).text == "ok"
    skipped = [entry["text"] for entry in workspace.log.of("mcp_skipped_line")]
    assert len(skipped) == 5
    assert "Welcome!" in skipped[0]


@pytest.mark.parametrize("levels", [300, 980, 100_000])
async def test_a_result_nested_too_deeply_ends_its_call_at_once(
    workspace: Workspace, tmp_path: Path, era: str, levels: int
) -> None:
    deep = "[" * levels + "]" * levels
    line = f'{{"jsonrpc":"2.0","id":%ID%,"result":{{"content":[{{"type":"text","text":"done"}},{deep}]}}}}'
    entry = scripted_from(tmp_path / "server", era=era, tools=[ECHO], calls={"echo": [{"line": line}]})
    host = await workspace.started({"s": entry})
    result = await host.call("mcp__s__echo", {})
    assert (result.status, result.text.startswith("done\n[content omitted")) == ("completed", True)


async def test_a_response_that_is_cut_off_ends_its_call_at_once(workspace: Workspace, era: str) -> None:
    lines = ['{"jsonrpc":"2.0","id":%ID%,"result":{"content":["one', 'two"]}}']
    host = await workspace.started({"s": scripted(era=era, calls={"echo": [{"line": line} for line in lines]})})
    result = await host.call("mcp__s__echo", {})
    assert result.status == "failed"
    assert "it may have done what it was asked, but its response cannot be read" in result.text
    await until(lambda: len(workspace.log.of("mcp_skipped_line")) == 2)


@pytest.mark.parametrize("levels", [300, 980, 5000])
async def test_a_tool_nested_too_deeply_costs_itself_alone(workspace: Workspace, era: str, levels: int) -> None:
    tools = [ECHO, {"name": "deep", "inputSchema": {"properties": "DEEP"}}]
    host = await workspace.started({"s": scripted(era=era, tools=tools, deep=levels)})
    (state,) = host.servers()
    assert (state.status, [tool.name for tool in state.tools]) == ("ready", ["mcp__s__echo"])
    assert state.diagnostics == ["deep: dropped, its inputSchema is nested more than 100 levels deep"]


async def test_invalid_utf_8_in_an_answer_costs_only_that_character(workspace: Workspace, era: str) -> None:
    line = b'{"jsonrpc":"2.0","id":%ID%,"result":{"content":[{"type":"text","text":"a\xffb"}]}}'
    host = await workspace.started({"s": scripted(era=era, calls={"echo": [{"bytes": line.hex()}]})})
    assert (await host.call("mcp__s__echo", {})).text == "a\ufffdb"


async def test_a_large_message_is_read_in_time_that_grows_with_its_size(workspace: Workspace, era: str) -> None:
    sizes = {"small": 7_500_000, "large": 60_000_000}
    tools = [{**ECHO, "name": name} for name in sizes]
    calls = {name: [{"fill": size}] for name, size in sizes.items()}
    host = await workspace.started({"s": scripted(era=era, tools=tools, calls=calls)})
    spent: dict[str, float] = {}
    for name, size in sizes.items():
        began = time.process_time()
        result = await host.call(f"mcp__s__{name}", {})
        spent[name] = time.process_time() - began
        assert (result.status, len(result.text)) == ("completed", size)
    assert spent["large"] < 30 * spent["small"], spent  # eight times as long: 8 where it is linear, 64 where it is not


async def test_a_message_above_the_limit_fails_its_call_alone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    from hel_lsp.mcp import transport

    monkeypatch.setattr(transport, "MESSAGE_LIMIT", 1_000_000)
    tools = [ECHO, {**ECHO, "name": "small"}]
    host = await workspace.started({"s": scripted(era=era, tools=tools, calls={"echo": [{"fill": 3_000_000}]})})
    result = await host.call("mcp__s__echo", {})
    assert result.status == "failed"
    assert "more than can be read" in result.text
    assert (await host.call("mcp__s__small", {})).status == "completed"


async def test_a_tool_that_is_gone_is_said_to_be_gone(workspace: Workspace) -> None:
    host = await workspace.started({"s": scripted()})
    result = await host.call("mcp__s__other", {})
    assert (result.status, "gone" in result.text) == ("failed", True)
