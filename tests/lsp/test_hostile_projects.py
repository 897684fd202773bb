"""A repository or a model that tries what it should not: nothing leaves, nothing lasts, the turn goes on."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.lsp.agent import agent, call, calls, say, tool_results

ASK = {"prompt": "go", "wait": True}
SANDBOXES = ["auto"] if shutil.which("bwrap") else []


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
    kept = {name: f'{{"{name}": "needle"}}' for name in ("trust.json", "mcp-auth/tokens.json")}
    for name, text in kept.items():
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).write_text(text)
    inside = [f".local/state/{name}" for name in kept]
    wanted: list[tuple[str, dict[str, str]]] = [
        *(("read_file", {"path": path}) for path in inside),
        *(("list_files", where) for where in ({}, {"path": ".local"}, {"path": ".local/state"}, {"pattern": "*.json"})),
        *(("search_files", {"pattern": "needle", "path": path}) for path in (".", ".local", ".local/state", *inside)),
        *(("search_files", {"pattern": "needle", "glob": glob}) for glob in ("*.json", "**/state/**", inside[0])),
        *(("search_replace", {"path": path, "search": "needle", "replace": "x"}) for path in inside),
        *(("write_file", {"path": path, "content": "x"}) for path in (*inside, ".local/state/new.json")),
    ]
    if SANDBOXES:
        attempts = [f"cat {path}; echo x > {path}" for path in inside]
        wanted += [("bash", {"command": command}) for command in (*attempts, "grep -r needle .", "rm -r .local")]
    options = {"access": "auto", "tools": {"disabled": [] if SANDBOXES else ["bash"]}}
    (workspace / "AGENTS.md").symlink_to(inside[1])
    environment = {"HEL_STATE_DIR": str(state)}
    async with agent(workspace, [calls(*wanted), say("done")], options=options, environment=environment) as (
        editor,
        model,
    ):
        editor.answers = lambda message, actions: "Allow once"
        refused = await editor.command("hel.ask", ASK)
        (workspace / "AGENTS.md").unlink()
        result = await editor.command("hel.ask", ASK)
        offered = await editor.command("hel.tools")
    assert "AGENTS.md" in refused["error"]["message"]
    assert {name for name, _ in wanted} == {tool["name"] for tool in offered["builtin"]}
    assert result["text"] == "done"
    shown = tool_results(model.requests[-1])
    assert not any("needle" in text for text in shown)
    done = [text for report, text in zip(result["toolCalls"], shown, strict=True) if report["status"] == "completed"]
    assert set(done) <= {"No files.", "No matches."}
    assert {name: (state / name).read_text() for name in kept} == kept
    assert not (state / "new.json").exists()


@pytest.mark.parametrize("absent", [{}, {"url": None}, {"url": None, "headers": {"X": "y"}, "cwd": None}])
async def test_what_trust_starts_is_what_the_question_showed(workspace, absent):
    server = {**absent, "command": sys.executable, "args": ["-c", "open('ran', 'w')"]}
    (workspace / ".hel").mkdir()
    (workspace / ".hel" / "mcp.json").write_text(json.dumps({"servers": {"s": server}}))
    async with agent(workspace, [say("done")]) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", ASK)
        [question] = editor.questions
    assert shlex.join([server["command"], *server["args"]]) in question.message
    assert (workspace / "ran").exists()


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


async def test_no_reading_tool_shows_what_is_closed_by_whichever_name_it_has(workspace):
    state = workspace / "state"
    environment = {"HEL_STATE_DIR": str(state)}
    for name in (".hel/mcp.json", "a.json"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text('{"servers": {}, "needle": 1}\n')
    os.link(workspace / ".hel" / "mcp.json", workspace / "hard.json")
    (workspace / "soft.json").symlink_to(".hel/mcp.json")
    (workspace / "folder").symlink_to(".hel")
    for name in (".hel/made.json", ".HEL/made.json", "state/made.json"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("needle\n")
    named = [".hel/mcp.json", "hard.json", "soft.json", "folder/mcp.json", ".hel/new.json", "state/made.json"]
    wanted = [("read_file", {"path": path}) for path in named]
    wanted += [("search_files", {"pattern": "needle", "path": path}) for path in [*named, ".hel", "folder", "state"]]
    wanted += [("list_files", {"path": path}) for path in [*named, ".hel", "folder", "state"]]
    closed = len(wanted)
    wanted += [("search_files", {"pattern": "needle", "glob": glob}) for glob in ("", "**", "*.json", "**/*.json")]
    wanted += [("list_files", {"pattern": pattern}) for pattern in ("", "**", "*.json", "**/*.json")]
    for opened in ([], [*named, "new.json"]):
        async with agent(workspace, [calls(*wanted), say("done")], environment=environment) as (editor, model):
            for name in opened:
                editor.open_untitled((workspace / name).as_uri(), "needle\n")
            result = await editor.command("hel.ask", ASK)
        shown = tool_results(model.requests[1])
        assert {report["status"] for report in result["toolCalls"][:closed]} == {"failed"}
        assert not any("needle" in text for text in shown[:closed])
        lines = ['a.json:1: {"servers": {}, "needle": 1}', *(["new.json:1: needle"] if opened else [])]
        assert [text.splitlines() for text in shown[closed:]] == [lines] * 4 + [["a.json"]] * 4


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_a_sandboxed_command_makes_no_harness_folder_where_there_is_none(workspace, sandbox):
    plant = call("bash", command="mkdir -p .hel/skills/x; echo x > .hel/permissions.json; ls -a; touch made")
    options = {"access": "auto", "tools": {"bash": {"sandbox": sandbox}}}
    async with agent(workspace, [plant, say("done")], options=options) as (editor, model):
        await editor.command("hel.ask", ASK)
    assert [path.name for path in workspace.iterdir()] == ["made"]
