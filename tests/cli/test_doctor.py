"""`hel-lsp doctor`: each line says what is wrong and what to do."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hel_lsp.demo import task
from hel_lsp.demo.scripted_model import Reply, ScriptedModel
from tests.lsp.agent import agent, say

NOTHING = dict.fromkeys(
    ("HEL_BASE_URL", "HEL_MODEL", "HEL_API_KEY", "OPENAI_API_KEY", "DEEPSEEK_API_KEY", "ANTHROPIC_API_KEY"), ""
)


class Report:
    def __init__(self, code: int, out: str, errors: str) -> None:
        self.code = code
        self.lines = out.splitlines()
        self.errors = errors

    def line(self, what: str) -> str:
        """The one line about `what`."""
        (found,) = [line for line in self.lines if line[9:].startswith(f"{what}:")]
        return found


async def doctor(
    workspace: Path,
    replies: Sequence[Reply] | None = (say("ready"),),
    *,
    options: Sequence[str] = (),
    **environment: str,
) -> Report:
    """What it says where the model gives `replies`; None is no model."""
    async with ScriptedModel(replies or ()) as model:
        named = {"HEL_BASE_URL": model.base_url, "HEL_MODEL": "scripted"} if replies is not None else {}
        state = {"HEL_STATE_DIR": str(workspace.parent / "workspace-state")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hel_lsp", "doctor", "--workspace", str(workspace), *options),
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])} | NOTHING | state | named | environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            out, errors = await process.communicate()
    assert process.returncode is not None
    return Report(process.returncode, out.decode(), errors.decode())


async def test_where_everything_works_each_line_is_ok_and_the_code_is_0(workspace):
    report = await doctor(workspace)
    assert report.code == 0
    assert "problem" not in "".join(report.lines)
    assert report.line("model key").startswith("ok       model key: none")
    assert report.line("model answer").startswith("ok")
    assert report.line("project files").startswith("ok")


async def test_without_a_model_the_choices_are_named(workspace):
    report = await doctor(workspace, None)
    assert report.code == 1
    assert report.line("model").startswith("problem")
    for choice in ("model.baseUrl", "OPENAI_API_KEY", "Ollama"):
        assert choice in report.line("model")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"status": 401, "body": '{"error": {"message": "bad key 42"}}'}, "bad key 42"),
        ({"status": 404, "body": '{"error": {"message": "no such model"}}'}, 'model.name ("scripted")'),
        ({"status": 503, "body": "{}"}, "has a fault"),
    ],
)
async def test_what_the_endpoint_objects_to_is_said_with_what_to_check(workspace, reply, said):
    report = await doctor(workspace, [reply])
    assert report.code == 1
    assert report.line("model answer").startswith("problem")
    assert said in report.line("model answer")


async def test_an_endpoint_that_nobody_listens_at_is_said_at_once(workspace):
    report = await doctor(workspace, None, HEL_BASE_URL="http://127.0.0.1:9/v1", HEL_MODEL="m")
    assert "Is the server running?" in report.line("model answer")


async def test_the_settings_of_a_file_count_and_a_fault_in_them_is_named(workspace, tmp_path):
    file = tmp_path / "settings.json"
    file.write_text('{"model": {"name": "other"}, "tools": {"bash": {"sandbox": "off"}}}')
    report = await doctor(workspace, options=["--settings", str(file)])
    assert report.line("settings") == f"ok       settings: {file}"
    assert "model other" in report.line("model endpoint")
    file.write_text('{"model": {"nam": "other"}}')
    report = await doctor(workspace, options=["--settings", str(file)])
    assert report.code == 2
    assert "model.nam" in report.errors


async def test_a_key_is_never_shown_only_where_it_comes_from(workspace):
    report = await doctor(workspace, HEL_API_KEY="very-secret-key")
    assert "HEL_API_KEY" in report.line("model key")
    assert "very-secret-key" not in "".join(report.lines)


async def test_files_that_cannot_be_used_are_named_with_their_place(workspace):
    (workspace / ".hel").mkdir()
    (workspace / ".hel" / "mcp.json").write_text('{"servers": {,}}')
    (workspace / ".hel" / "hooks.json").write_text('{"hooks": [}')
    (workspace / ".hel" / "permissions.json").write_text('{"allow": 5}')
    (workspace / ".hel" / "skills" / "a").mkdir(parents=True)
    (workspace / ".hel" / "skills" / "a" / "SKILL.md").write_text("no front matter")
    (workspace / "AGENTS.md").write_bytes(b"\xff\xfe")
    report = await doctor(workspace)
    assert report.code == 1
    for name in (".hel/mcp.json", ".hel/hooks.json", ".hel/permissions.json", "skill"):
        assert report.line(name).startswith("problem")
        assert "line 1, column" in report.line(name)
    assert "UTF-16" in report.line("AGENTS.md")


async def test_a_server_that_is_not_trusted_is_not_started_and_the_way_to_trust_it_is_named(workspace):
    record = workspace.parent / "record.jsonl"
    task.lay_out(workspace, record)
    report = await doctor(workspace)
    assert report.code == 1
    assert "answer Trust" in report.line(".hel/mcp.json")
    assert report.line("MCP server inventory").startswith("note")
    assert not record.exists()


async def test_a_trusted_server_is_started_and_one_that_fails_says_why(workspace):
    task.lay_out(workspace)
    file = workspace / ".hel" / "mcp.json"
    declared = json.loads(file.read_text())
    declared["servers"]["broken"] = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no luck 7')"]}
    file.write_text(json.dumps(declared))
    async with agent(workspace, [say("done")]) as (editor, _):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", {"prompt": "go", "wait": True})
    report = await doctor(workspace)
    assert report.line(".hel/mcp.json") == "ok       .hel/mcp.json: trusted"
    assert "ready, 2 tools" in report.line("MCP server inventory")
    assert report.line("MCP server broken").startswith("problem")
    assert "no luck 7" in report.line("MCP server broken")


async def test_a_state_folder_that_cannot_be_used_is_said_with_the_variable_that_moves_it(workspace):
    (workspace.parent / "workspace-state").write_text("in the way")
    report = await doctor(workspace)
    assert report.code == 1
    assert "HEL_STATE_DIR" in report.line("state folder")
