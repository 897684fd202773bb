"""`hel-lsp ask`: the same rules without an editor, and files that keep every byte."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from hel_lsp.demo.scripted_model import Reply, ScriptedModel
from hel_lsp.local.workspace import FileWorkspace
from hel_lsp.messages import FileEdit
from tests.lsp.agent import agent, call, say, tool_results

FIX = {"path": "a.txt", "search": "alpha", "replace": "omega"}
posix_only = pytest.mark.skipif(os.name == "nt", reason="terminals and signals of POSIX")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@asynccontextmanager
async def started(
    workspace: Path, model: ScriptedModel | None, *options: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    variables = {"HEL_STATE_DIR": str(workspace.parent / "workspace-state"), **(environment or {})}
    if model is not None:
        variables |= {"HEL_BASE_URL": model.base_url, "HEL_MODEL": "scripted"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hel_lsp", "ask", "go on", "--workspace", str(workspace), *options),
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])} | variables,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def end_of(process: asyncio.subprocess.Process) -> Ended:
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def ask(workspace: Path, replies: Sequence[Reply], *options: str) -> tuple[Ended, ScriptedModel]:
    async with ScriptedModel(replies) as model, started(workspace, model, *options) as process:
        return await end_of(process), model


@pytest.fixture
def files(workspace: Path) -> Path:
    (workspace / "a.txt").write_text("alpha\n")
    return workspace


async def test_the_answer_alone_is_on_stdout_and_what_happened_on_stderr(files):
    ended, model = await ask(files, [call("read_file", path="a.txt"), say("It says alpha.")])
    assert (ended.code, ended.out) == (0, "It says alpha.\n")
    assert 'read_file {"path": "a.txt"}' in ended.err
    assert tool_results(model.requests[1])[0].endswith("alpha\n")


async def test_json_is_the_turns_result_and_nothing_else(files):
    ended, _ = await ask(files, [call("search_replace", **FIX), say("done")], "--json", "--access", "auto")
    result = json.loads(ended.out)
    assert (ended.code, result["stopReason"], result["text"], result["turn"]) == (0, "end_turn", "done", 1)
    assert result["edits"] == [{"uri": (files / "a.txt").as_uri(), "applied": True, "added": 1, "removed": 1}]
    assert result["unsaved"] == []


async def test_without_a_terminal_what_would_be_asked_is_refused(files):
    ended, model = await ask(files, [call("search_replace", **FIX), say("done")], "--json")
    assert json.loads(ended.out)["toolCalls"][0]["status"] == "rejected"
    assert "no terminal to ask in" in ended.err
    assert "did not allow" in tool_results(model.requests[1])[0]
    assert (files / "a.txt").read_text() == "alpha\n"


async def test_read_only_refuses_without_a_question(files):
    ended, _ = await ask(files, [call("search_replace", **FIX), say("done")], "--json", "--access", "read-only")
    assert json.loads(ended.out)["toolCalls"][0] == {"name": "search_replace", "status": "rejected", "decision": None}
    assert "?" not in ended.err


async def test_the_settings_of_a_file_count_and_an_option_before_them(files, tmp_path):
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"access": "auto", "tools": {"disabled": ["bash"]}}))
    edit = [call("search_replace", **FIX), say("done")]
    ended, model = await ask(files, edit, "--json", "--settings", str(file))
    assert json.loads(ended.out)["edits"][0]["applied"] is True
    assert "bash" not in [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    ended, _ = await ask(files, edit, "--json", "--settings", str(file), "--access", "read-only")
    assert json.loads(ended.out)["edits"] == []


@pytest.mark.parametrize(
    ("text", "said"), [('{"acces": "auto"}', "acces"), ("{", "line 1, column 2"), (None, "does not exist")]
)
async def test_settings_that_cannot_be_used_start_nothing(files, tmp_path, text, said):
    file = tmp_path / "settings.json"
    if text is not None:
        file.write_text(text)
    ended, model = await ask(files, [say("done")], "--settings", str(file))
    assert (ended.code, model.requests) == (2, [])
    assert said in ended.err


async def test_an_edit_keeps_line_ends_byte_order_mark_mode_and_inode(workspace):
    file = workspace / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\nalpha\r\nthree")
    file.chmod(0o640)
    before = file.stat()
    ended, _ = await ask(workspace, [call("search_replace", **FIX), say("done")], "--access", "auto")
    assert ended.code == 0
    assert file.read_bytes() == b"\xef\xbb\xbfone\r\nomega\r\nthree"
    assert (file.stat().st_ino, file.stat().st_mode) == (before.st_ino, before.st_mode)


async def test_the_harness_folder_and_what_lies_outside_are_closed(files):
    wanted = [call("write_file", path=".hel/mcp.json", content="{}"), call("read_file", path="../secret")]
    ended, _ = await ask(files, [*wanted, say("done")], "--json", "--access", "auto")
    assert [made["status"] for made in json.loads(ended.out)["toolCalls"]] == ["failed", "failed"]
    assert not (files / ".hel").exists()


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        ({"status": 401, "body": '{"error": {"message": "bad key 42"}}'}, 1, "bad key 42"),
        ({**say("half"), "finish": "length"}, 3, "max_tokens"),
        ({**say(""), "finish": "content_filter"}, 3, "refusal"),
    ],
)
async def test_the_exit_code_tells_how_the_turn_ended(files, reply, code, said):
    ended, _ = await ask(files, [reply])
    assert ended.code == code
    assert said in ended.err


async def test_what_cannot_be_used_is_said_with_code_2(files):
    async with started(files / "gone", None) as process:
        ended = await end_of(process)
    assert ended.code == 2
    assert "is no folder" in ended.err


async def test_the_session_is_there_for_an_editor_of_the_same_workspace(files):
    ended, _ = await ask(files, [say("from the shell")], "--json")
    async with agent(files, [say("from the editor")]) as (editor, _):
        resumed = await editor.command("hel.resume")
        assert resumed["session"] == json.loads(ended.out)["session"]
        assert resumed["messages"][1]["text"] == "from the shell"


@posix_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_cancels_the_turn_and_ends_what_it_started(files, number):
    script = "touch ran; sleep 1000"
    async with (
        ScriptedModel([call("bash", command=script)]) as model,
        started(files, model, "--access", "auto", "--json") as process,
    ):
        async with asyncio.timeout(30):
            while not (files / "ran").exists():
                await asyncio.to_thread(os.sched_yield)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        ended = await end_of(process)
    assert ended.code == 130
    assert json.loads(ended.out)["stopReason"] == "cancelled"
    assert children
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, 5)
    assert [child for child in alive if child.status() != psutil.STATUS_ZOMBIE] == []


@posix_only
@pytest.mark.parametrize(
    ("ahead", "typed", "text"),
    [
        (b"", b"2\n", "omega\n"),
        (b"", b"1\n", "alpha\n"),
        (b"", b"yes\n", "alpha\n"),
        (b"2\n", b"1\n", "alpha\n"),
        (b"2\n2\n", b"\n", "alpha\n"),
        (b"2", b"\n", "alpha\n"),
        (b"1\n", b"2\n", "omega\n"),
    ],
)
async def test_in_a_terminal_the_number_of_an_action_is_the_answer_and_not_what_was_typed_before(
    files, ahead, typed, text
):
    import pty

    ours, theirs = pty.openpty()
    os.write(ours, ahead)
    try:
        async with ScriptedModel([call("search_replace", **FIX), say("done")]) as model:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hel_lsp", "ask", "go on", "--workspace", str(files)),
                env=os.environ
                | {"PYTHONPATH": str(Path(__file__).parents[2]), "HEL_STATE_DIR": str(files.parent / "state")}
                | {"HEL_BASE_URL": model.base_url, "HEL_MODEL": "scripted"},
                stdin=theirs,
                stdout=asyncio.subprocess.PIPE,
                stderr=theirs,
            )
            seen = b""
            while b"  > " not in seen:
                seen += await asyncio.to_thread(os.read, ours, 4096)
            os.write(ours, typed)
            ended = await end_of_output(process)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"[1] Reject   [2] Allow once" in seen
    assert ended == "done\n"
    assert (files / "a.txt").read_text() == text


async def end_of_output(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        out = await process.stdout.read()
        await process.wait()
    return out.decode()


async def test_an_edit_that_another_program_overtakes_is_made_once_more_on_the_new_text(files):
    file = files / "a.txt"
    texts: list[str | None] = []

    def make(text: str | None) -> FileEdit:
        if not texts:
            file.write_text("first\nalpha\n")
        texts.append(text)
        assert text is not None
        start = text.index("alpha")
        return FileEdit(file, text, start, start + 5, "omega")

    outcome = await FileWorkspace(files).edit(file, make)
    assert texts == ["alpha\n", "first\nalpha\n"]
    assert outcome.report.applied
    assert file.read_text() == "first\nomega\n"
