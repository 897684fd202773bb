"""What every command does to a terminal, and where what it needs is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hel_lsp.demo.scripted_model import ScriptedModel
from tests.cli.test_ask import ask, end_of, started
from tests.cli.test_doctor import NOTHING, doctor
from tests.lsp.agent import say

ENVIRONMENT = os.environ | NOTHING | {"PYTHONPATH": str(Path(__file__).parents[2])}
SEQUENCES = "a\x1b[31mred\x1b[0m\x1b]0;title\x07\x08\x9b2Jz"


async def test_an_answer_cannot_command_the_terminal(workspace):
    ended, _ = await ask(workspace, [say(f"{SEQUENCES}\n\tdone")])
    assert ended.out == "ared\\x08z\n\tdone\n"


async def test_an_error_of_the_model_cannot_command_the_terminal(workspace):
    body = json.dumps({"error": {"message": SEQUENCES}})
    async with ScriptedModel([{"status": 401, "body": body}]) as model, started(workspace, model) as process:
        ended = await end_of(process)
    assert ended.code == 1
    assert "\x1b" not in ended.err
    assert "red" in ended.err


async def test_the_name_of_a_server_cannot_command_the_terminal(workspace):
    (workspace / ".hel").mkdir()
    skill = workspace / ".hel" / "skills" / "a\x1b[31mb"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("nothing")
    report = await doctor(workspace)
    assert not any(ord(sign) < 32 for line in report.lines for sign in line)


def test_what_is_logged_has_no_secrets(workspace):
    script = (
        "import logging; from hel_lsp.cli import main; main(['verify', 'gone'])\n"
        "try: raise ValueError({'access_token': 'opaque-1'})\n"
        "except ValueError: logging.getLogger('library').exception('sent %s', ['Bearer opaque-2', 'from-outside'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=ENVIRONMENT | {"SOME_TOKEN": "from-outside"},
        cwd=workspace,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "library: sent ['Bearer [hidden]', '[hidden]']" in ran.stderr
    assert "ValueError" in ran.stderr
    assert "opaque" not in ran.stderr


def test_modules_of_the_current_folder_are_not_taken_for_ours(workspace):
    for name in ("httpx", "mcp", "platformdirs", "pydantic", "pygls", "yaml"):
        (workspace / name).mkdir()
        (workspace / name / "__init__.py").write_text("open('ran', 'w')")
    (workspace / ".mcp.json").write_text('{"mcpServers": {"s": {"command": "nothing"}}}')
    ran = subprocess.run(
        [sys.executable, "-m", "hel_lsp", "doctor"],
        env=ENVIRONMENT | {"HEL_STATE_DIR": str(workspace.parent / "state")},
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "MCP server s: not started" in ran.stdout
    assert not (workspace / "ran").exists()


@pytest.mark.skipif(os.name == "nt", reason="a pipe that nobody reads")
def test_output_that_nobody_reads_ends_the_command_without_a_word(workspace):
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-m", "hel_lsp", "doctor", "--workspace", str(workspace)],
        env=ENVIRONMENT | {"HEL_STATE_DIR": str(workspace.parent / "state")},
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (1, b"")


@pytest.mark.skipif(os.name == "nt", reason="a folder that is in use cannot be deleted there")
@pytest.mark.parametrize("command", [["doctor"], ["ask", "go on"]])
def test_a_current_folder_that_is_gone_is_said(workspace, command):
    script = f"import os, sys; from hel_lsp.cli import main; os.rmdir(os.getcwd()); sys.exit(main({command!r}))"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=ENVIRONMENT,
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr == "hel-lsp: --workspace: . cannot be used: No such file or directory.\n"
