"""The sandbox of `bash` at the wire: what a command reaches with it, and what is done where there is none.

Where bubblewrap is missing or cannot run, the tests that need it are not collected.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lsp.agent import agent, call, calls, say, tool_results

ASK = {"prompt": "go", "wait": True}


def works() -> bool:
    trial = ["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(trial, capture_output=True, check=False).returncode == 0


HERE = ["require", "off"] if works() else ["off"]
"""The values of tools.bash.sandbox that can be tried: in the sandbox, and out of it."""


async def results(workspace: Path, *commands: str, sandbox: str = "require", **more: Any) -> list[str]:
    """What the model reads of each command."""
    bash = {"sandbox": sandbox, **more.pop("bash", {})}
    options = {"access": "auto", "tools": {"bash": bash}}
    wanted = calls(*(("bash", {"command": command}) for command in commands))
    async with agent(workspace, [wanted, say("done")], options=options, **more) as (editor, model):
        await editor.command("hel.ask", ASK)
    return tool_results(model.requests[1])


@pytest.mark.parametrize("sandbox", HERE)
async def test_a_command_writes_in_the_workspace_and_its_temporary_folder_and_nowhere_else(workspace, sandbox):
    home = workspace.parent / "home"
    home.mkdir()
    (workspace.parent / "outside.txt").write_text("outside\n")
    inside, temporary, beside, at_home, reading = await results(
        workspace,
        "echo one > inside.txt && cat inside.txt",
        'file="$(mktemp)" && echo two > "$file" && cat "$file"',
        "echo three > ../new.txt",
        "echo four >> ~/.bashrc",
        "cat ../outside.txt",
        sandbox=sandbox,
        environment={"HOME": str(home)},
    )
    assert inside == "exit code 0\none"
    assert temporary == "exit code 0\ntwo"
    assert (workspace / "inside.txt").read_text() == "one\n"
    assert reading == "exit code 0\noutside"
    written = [(workspace.parent / "new.txt").exists(), (home / ".bashrc").exists()]
    if sandbox == "off":
        assert written == [True, True]
    else:
        assert written == [False, False]
        assert "Read-only file system" in beside
        assert "Read-only file system" in at_home


@pytest.mark.parametrize("sandbox", HERE)
async def test_the_commands_of_a_session_share_a_temporary_folder_which_ends_with_it(workspace, sandbox):
    temporary = workspace.parent / "temporary"
    temporary.mkdir()
    write, read = (call("bash", command=f'{command} "${{TMPDIR:-/tmp}}/kept"') for command in ("echo kept >", "cat"))
    options = {"access": "auto", "tools": {"bash": {"sandbox": sandbox}}}
    replies = [write, say("done"), read, say("done"), read, say("done")]
    async with agent(workspace, replies, options=options, environment={"TMPDIR": str(temporary)}) as (editor, model):
        for _ in range(2):
            await editor.command("hel.ask", ASK)
        await editor.command("hel.newSession")
        await editor.command("hel.ask", ASK)
    _, same, other = (tool_results(model.requests[index])[-1] for index in (1, 3, 5))
    assert same == "exit code 0\nkept"
    if sandbox == "require":
        assert "No such file" in other
        assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("sandbox", HERE)
async def test_a_command_does_not_see_credentials_the_state_folder_the_harness_or_other_processes(workspace, sandbox):
    home = workspace.parent / "home"
    secrets = [home / ".ssh" / "id_ed25519", home / ".netrc", home / ".config" / "gcloud" / "tokens"]
    secrets += [workspace.parent / f"{workspace.name}-state" / "trust.json", workspace / ".hel" / "notes"]
    for secret in secrets:
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text('{"a": "secret-text"}')
    (home / ".aws").symlink_to(home / "elsewhere")
    (home / "elsewhere").mkdir()
    (home / "elsewhere" / "credentials").write_text("secret-text")
    *read, harness, others = await results(
        workspace,
        *(
            f"cat '{secret}'"
            for secret in (*secrets, home / ".aws" / "credentials", home / "elsewhere" / "credentials")
        ),
        "echo changed > .hel/notes",
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c secret-key",
        sandbox=sandbox,
        environment={"HOME": str(home), "HEL_API_KEY": "secret-key"},
    )
    seen = ["secret-text" in text for text in read]
    kept = (workspace / ".hel" / "notes").read_text() != "changed\n"
    if sandbox == "off":
        assert (all(seen), kept) == (True, False)
    else:
        assert (any(seen), kept) == (False, True)
        assert "Read-only" in harness
        assert others == "exit code 1\n0"


def repository(folder: Path, *, hooks: bool) -> Path:
    """A new repository's own folder, with that for hooks or without."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for name, value in (("user.name", "U"), ("user.email", "u@localhost")):
        subprocess.run(["git", "-C", str(folder), "config", name, value], check=True)
    shutil.rmtree(folder / ".git" / "hooks", ignore_errors=True)
    if hooks:
        (folder / ".git" / "hooks").mkdir()
    return folder / ".git"


@pytest.mark.parametrize("sandbox", HERE)
@pytest.mark.parametrize("hooks", [True, False])
async def test_a_command_can_commit_and_cannot_leave_anything_that_git_would_run(workspace, sandbox, hooks):
    git = repository(workspace, hooks=hooks)
    commit, *_ = await results(
        workspace,
        "echo one > one.txt && git add one.txt && git commit -q -m one && git log --oneline",
        "mkdir -p .git/hooks; echo 'touch ran' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        "git config core.fsmonitor 'touch ran'",
        sandbox=sandbox,
    )
    assert commit.startswith("exit code 0")
    planted = [(git / "hooks" / "post-commit").exists(), "fsmonitor" in (git / "config").read_text()]
    assert planted == [sandbox == "off"] * 2
    assert (git / "hooks").exists() == (hooks or sandbox == "off")


@pytest.mark.parametrize("network", [True, False])
@pytest.mark.parametrize("sandbox", HERE)
async def test_a_command_reaches_the_network_only_where_the_setting_lets_it(workspace, sandbox, network):
    arrived = asyncio.Event()

    def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        writer.write(b"hello\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        [text] = await results(
            workspace, f"bash -c 'cat < /dev/tcp/127.0.0.1/{port}'", sandbox=sandbox, bash={"network": network}
        )
    reached = network or sandbox == "off"
    assert (arrived.is_set(), "hello" in text) == (reached, reached)


@pytest.mark.parametrize("sandbox", HERE)
async def test_a_command_over_its_time_is_ended_with_what_left_its_group(workspace, sandbox):
    mark = f"{time.time():.6f}"
    wanted = call("bash", command=f"setsid sleep 1{mark} & sleep 1{mark}", timeout=1)
    options = {"access": "auto", "tools": {"bash": {"sandbox": sandbox}}}
    async with agent(workspace, [wanted, say("done")], options=options) as (editor, model):
        await editor.command("hel.ask", ASK)
        [text] = tool_results(model.requests[1])
        assert text.startswith("stopped after 1 s")
        left = [
            process for process in psutil.process_iter(["cmdline"]) if f"1{mark}" in (process.info["cmdline"] or [])
        ]
        psutil.wait_procs(left, 5)
        assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in left)


# ------------------------------------------------------------------ where there is none


def path_of(folder: Path, bubblewrap: str | None) -> dict[str, str]:
    """A PATH with a few programs, among them a `bwrap` that does this, or none."""
    folder.mkdir()
    for name in ("bash", "sh", "cat"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    if bubblewrap is not None:
        (folder / "bwrap").write_text(f"#!/bin/sh\n{bubblewrap}\n")
        (folder / "bwrap").chmod(0o755)
    return {"PATH": str(folder)}


BROKEN = "echo 'bwrap: No permissions to create new namespace' >&2; exit 1"


@pytest.mark.parametrize(
    ("bubblewrap", "why"), [(None, "not installed"), (BROKEN, "cannot run here (bwrap: No permissions")]
)
async def test_without_a_sandbox_auto_says_so_in_the_question_and_require_refuses(workspace, tmp_path, bubblewrap, why):
    environment = path_of(tmp_path / "bin", bubblewrap)
    run = call("bash", command="echo ran > ran")
    async with agent(workspace, [run, say("done"), run, say("done")], environment=environment) as (editor, model):
        editor.answers = ["Allow once"]
        await editor.command("hel.ask", ASK)
        [question] = editor.questions
    assert "not sandboxed" in question.message
    assert why in question.message
    assert (workspace / "ran").exists()

    options = {"tools": {"bash": {"sandbox": "require"}}}
    async with agent(workspace, [run, say("done")], environment=environment, options=options) as (editor, model):
        result = await editor.command("hel.ask", ASK)
        assert editor.questions == []
    [text] = tool_results(model.requests[1])
    assert "require" in text
    assert why in text
    assert result["toolCalls"][0]["status"] == "failed"


@pytest.mark.parametrize("sandbox", HERE)
async def test_the_question_says_how_the_command_would_run(workspace, sandbox):
    options = {"tools": {"bash": {"sandbox": sandbox, "network": False}}}
    async with agent(workspace, [call("bash", command="true"), say("done")], options=options) as (editor, model):
        await editor.command("hel.ask", ASK)
        [question] = editor.questions
    expected = "run (sandboxed: it can change the workspace alone, no network) ⏎ true"
    assert (expected in question.message) == (sandbox == "require")
    assert ("not sandboxed" in question.message) == (sandbox == "off")
    assert os.linesep not in question.message
