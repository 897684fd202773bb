"""`kill -9` of the editor, of hel-lsp and of an MCP server, in each state of a call: who is left, what comes next."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from hel_lsp.demo.scripted_model import ScriptedModel
from tests.lsp.agent import agent, call, say, tool_results
from tests.lsp.editor import FRESH, Command, Editor
from tests.lsp.personalities import NEVER
from tests.mcp.workspace import scripted, until

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups of POSIX"),
    pytest.mark.timeout(180),
]

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs the parent-death signal")

STATES = ("starting", "idle", "waiting", "calling")
ASK = {"prompt": "go", "wait": True}
ECHO = "mcp__s__echo"
LOAD = call("load_mcp_tool", names=[ECHO])
TIME = 5.0  # seconds after which nobody may be left


@dataclass
class Scene:
    """A workspace whose server starts and answers once it may."""

    folder: Path
    scratch: Path

    def lay_out(self, **behaviour: object) -> None:
        answer = {"result": {"content": [{"type": "text", "text": "pong"}]}}
        server = scripted(
            start_when=str(self.scratch / "may start"),
            calls={"echo": [{"wait": str(self.scratch / "may answer")}, answer]},
            record=str(self.scratch / "record"),
            pids=str(self.scratch / "pids"),
            **behaviour,
        )
        (self.folder / ".hel").mkdir()
        (self.folder / ".hel" / "mcp.json").write_text(json.dumps({"servers": {"s": server}}), encoding="utf-8")

    def may(self, *what: str) -> None:
        for name in what:
            (self.scratch / f"may {name}").touch()

    async def processes(self) -> list[psutil.Process]:
        """The server and what it started."""
        file = self.scratch / "pids"
        await until(file.exists, 60)
        return [psutil.Process(pid) for pid in json.loads(file.read_text())]

    def called(self) -> bool:
        record = self.scratch / "record"
        return record.exists() and '"tools/call"' in record.read_text()


@pytest.fixture
def scene(workspace: Path, tmp_path: Path) -> Scene:
    return Scene(workspace, tmp_path)


def replies(state: str) -> list[dict[str, object]]:
    return [LOAD, say("loaded")] if state == "idle" else [LOAD, call(ECHO), say("done")]


async def reach(state: str, scene: Scene, editor: Editor) -> Command:
    """Ask, and come back when the server is in the state."""
    editor.answers = ["Trust", NEVER if state == "waiting" else "Allow once"]
    if state != "starting":
        scene.may("start")
    asked = editor.start_command("hel.ask", ASK)
    if state == "idle":
        await asked.result
    elif state == "waiting":
        await editor.question(1)
    elif state == "calling":
        await until(scene.called, 60)
    return asked


async def gone(processes: Sequence[psutil.Process]) -> None:
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, TIME)
    left = [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
    for process in left:
        process.kill()
    assert left == []


async def works(scene: Scene) -> None:
    """A fresh start on the same workspace loads the tool and calls it, without a question of trust."""
    scene.may("start", "answer")
    async with agent(scene.folder, [LOAD, call(ECHO), say("done")]) as (editor, model):
        editor.answers = ["Allow once"]
        await editor.command("hel.ask", ASK)
        assert len(editor.questions) == 1
    assert tool_results(model.requests[-1])[-1] == "pong"


def hang_up(editor: Editor) -> None:
    """What is left of an editor that was killed: the closed ends of its pipes."""
    transport = editor.process._transport  # type: ignore[attr-defined]
    for number in (0, 1):
        transport.get_pipe_transport(number).close()


@pytest.mark.parametrize("state", STATES)
async def test_nobody_outlives_an_editor_that_is_killed(scene: Scene, state: str) -> None:
    scene.lay_out(children=1)
    async with agent(scene.folder, replies(state), command=FRESH) as (editor, _):
        asked = await reach(state, scene, editor)
        processes = [psutil.Process(editor.process.pid), *await scene.processes()]
        assert len(processes) == 3
        hang_up(editor)
        await gone(processes)
        asked.result.cancel()
    await works(scene)


@ON_LINUX
@pytest.mark.parametrize("state", STATES)
async def test_no_server_outlives_the_agent_that_is_killed(scene: Scene, state: str) -> None:
    scene.lay_out(stays=True, deaf=True)
    async with agent(scene.folder, replies(state), command=FRESH) as (editor, _):
        asked = await reach(state, scene, editor)
        processes = await scene.processes()
        editor.process.kill()
        await gone(processes)
        asked.result.cancel()
    await works(scene)


@pytest.mark.parametrize("state", STATES)
async def test_a_server_that_is_killed_leaves_nothing_and_the_next_call_starts_it(scene: Scene, state: str) -> None:
    scene.lay_out(children=1)
    async with agent(scene.folder, [*replies(state), call(ECHO), say("again")]) as (editor, model):
        asked = await reach(state, scene, editor)
        server, *others = await scene.processes()
        server.kill()
        await gone([server, *others])
        scene.may("start", "answer")
        if state == "waiting":
            editor.questions[1].answer("Allow once")
        await end_of_first(asked, state, model)
        editor.answers = ["Allow once"]
        await editor.command("hel.ask", ASK)
    assert tool_results(model.requests[-1])[-1] == "pong"


async def end_of_first(asked: Command, state: str, model: ScriptedModel) -> None:
    """The turn in which the server was killed goes on to its end."""
    async with asyncio.timeout(60):
        result = await asked.result
    assert result["stopReason"] == "end_turn"
    last = tool_results(model.requests[-1])[-1]
    if state == "calling":
        assert "ended by signal 9 during the call" in last
    elif state != "idle":
        assert last == "pong"
