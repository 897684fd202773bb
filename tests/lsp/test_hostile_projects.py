"""A repository or a model that tries what it should not: nothing leaves, nothing lasts, the turn goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.lsp.agent import agent, call, calls, say, tool_results

ASK = {"prompt": "go", "wait": True}


@pytest.mark.parametrize("target", ["secret.txt", "/proc/self/environ", "/dev/zero"])
async def test_instructions_that_lead_out_of_the_workspace_reach_no_model(workspace, tmp_path, target):
    (tmp_path / "secret.txt").write_text("outside\n")
    (workspace / "AGENTS.md").symlink_to(tmp_path / target)
    async with agent(workspace, [say("hi")], environment={"HEL_API_KEY": "sk-secret"}) as (editor, model):
        result = await editor.command("hel.ask", ASK)
    assert model.requests == []
    assert result["error"]["code"] == "config_error"
    assert "AGENTS.md" in result["error"]["message"]


@pytest.mark.parametrize("name", [".hel/mcp.json", ".mcp.json", ".hel/permissions.json", ".hel/hooks.json"])
async def test_a_project_file_without_end_is_reported_and_counts_as_absent(workspace, name):
    (workspace / name).parent.mkdir(exist_ok=True)
    (workspace / name).symlink_to("/dev/zero")
    async with agent(workspace, [say("hi")]) as (editor, model):
        assert (await editor.command("hel.ask", ASK))["text"] == "hi"
        said = " ".join(params["message"] for params in editor.sent("window/showMessage"))
    assert f"{name} is not a regular file" in said


async def test_no_tool_touches_the_state_folder_when_it_lies_in_the_workspace(workspace):
    state = workspace / ".local" / "state"
    write = call("write_file", path=".local/state/trust.json", content="{}")
    read = call("read_file", path=".local/state/trust.json")
    options = {"access": "auto"}
    environment = {"HEL_STATE_DIR": str(state)}
    async with agent(workspace, [write, read, say("done")], options=options, environment=environment) as (
        editor,
        model,
    ):
        result = await editor.command("hel.ask", ASK)
    assert [report["status"] for report in result["toolCalls"]] == ["failed", "failed"]
    assert not (state / "trust.json").exists()


LONG = "x" * 300
BAD_CALLS = [
    ("write_file", {"path": LONG, "content": "x"}),
    ("write_file", {"path": "a.txt/below", "content": "x"}),
    ("list_files", {"pattern": "\0"}),
    ("search_files", {"pattern": "\ud800"}),
    ("search_files", {"pattern": "x" * 200_000}),
    ("bash", {"command": "echo \ud800"}),
    ("bash", {"command": "true " + "x" * 200_000}),
]


async def test_what_the_system_refuses_fails_the_call_and_not_the_turn(workspace):
    (workspace / "a.txt").write_text("alpha\n")
    async with agent(workspace, [calls(*BAD_CALLS), say("done")], options={"access": "auto"}) as (editor, model):
        result = await editor.command("hel.ask", ASK)
    assert (result["stopReason"], result["text"]) == ("end_turn", "done")
    assert [report["status"] for report in result["toolCalls"]] == ["failed"] * len(BAD_CALLS)
    assert len(tool_results(model.requests[1])) == len(BAD_CALLS)


async def test_a_damaged_record_of_grants_grants_nothing(workspace):
    state = Path(f"{workspace}-state")
    state.mkdir()
    (state / "grants.json").write_text(json.dumps({str(workspace): 5}))
    async with agent(workspace, [call("bash", command="true"), say("done")]) as (editor, model):
        editor.answers = ["Reject"]
        result = await editor.command("hel.ask", ASK)
    assert result["toolCalls"] == [{"name": "bash", "status": "rejected", "decision": "reject"}]


async def test_a_uri_with_a_nul_is_no_document(workspace):
    async with agent(workspace, [say("hi")]) as (editor, model):
        result = await editor.command("hel.ask", {**ASK, "textDocument": {"uri": "file:///tmp/%00x"}})
    assert result["text"] == "hi"


async def test_a_glob_of_the_model_does_not_open_the_closed_folders(workspace):
    for name in (".git/config", ".hel/mcp.json", "a.txt"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("needle\n" if name != ".hel/mcp.json" else "{}")
    wanted = calls(("list_files", {"pattern": "**"}), ("search_files", {"pattern": "needle", "glob": "**"}))
    async with agent(workspace, [wanted, say("done")]) as (editor, model):
        await editor.command("hel.ask", ASK)
    assert tool_results(model.requests[1]) == ["a.txt", "a.txt:1: needle"]


SANDBOXES = ["auto"] if shutil.which("bwrap") else []


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_a_sandboxed_command_makes_no_harness_folder_where_there_is_none(workspace, sandbox):
    plant = call("bash", command="mkdir -p .hel/skills/x; echo x > .hel/permissions.json; ls -a; touch made")
    options = {"access": "auto", "tools": {"bash": {"sandbox": sandbox}}}
    async with agent(workspace, [plant, say("done")], options=options) as (editor, model):
        await editor.command("hel.ask", ASK)
    assert [path.name for path in workspace.iterdir()] == ["made"]
