"""Turns of every kind in random order: each ends, says what is so and leaves nothing behind.

`HEL_SOAK_TURNS=2000` makes a long one of it, `HEL_SOAK_SEED` another one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from hel_lsp.demo.scripted_model import ScriptedModel
from tests.lsp.editor import FRESH, Editor
from tests.lsp.meeting import Meeting
from tests.lsp.soak import Measured, Soak
from tests.lsp.soak_turns import KINDS, killed, mcp_answers

TURNS = int(os.environ.get("HEL_SOAK_TURNS", "150"))
SEED = int(os.environ.get("HEL_SOAK_SEED", "20261130"))
WARM_UP = 20
LIFE = 150
"""Turns after which a server process is killed, on average."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties children to the life of a process"),
    pytest.mark.timeout(120 + TURNS),
]


def lives(random: Random) -> list[int]:
    """How many turns each process gets, the warm-up included: random parts of TURNS, three at least."""
    count = max(3, TURNS // LIFE)
    spare = max(0, TURNS - count * (WARM_UP + 1))
    cuts = sorted(random.randint(0, spare) for _ in range(count - 1))
    return [WARM_UP + 1 + end - start for start, end in zip([0, *cuts], [*cuts, spare], strict=True)]


async def test_no_turn_hangs_lies_or_leaves_anything_behind(
    workspace: Path, record_property: Callable[[str, object], None]
) -> None:
    random = Random(SEED)
    state = workspace.parent / "state"
    async with ScriptedModel([]) as model, Meeting() as meeting:
        soak = Soak(workspace, model, meeting, random)
        environment = {"HEL_BASE_URL": model.base_url, "HEL_MODEL": "scripted", "HEL_STATE_DIR": str(state)}
        try:
            *to_be_killed, last = lives(random)
            for turns in to_be_killed:
                record_property("process", str(await live(soak, turns, environment, kill=True)))
            record_property("process", str(await live(soak, last, environment, kill=False)))
        except BaseException as error:
            error.add_note(f"seed {SEED}, turn {soak.done + 1} of {TURNS}: {soak.doing}; {soak.editor.received[-20:]}")
            raise
    assert left(workspace) == []
    logs = sorted(state.glob("logs/*.jsonl"))
    assert logs
    for log in logs:
        command = (sys.executable, "-m", "hel_lsp", "verify", str(log))
        verified = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        said, _ = await verified.communicate()
        assert verified.returncode == 0, said.decode()


async def live(soak: Soak, turns: int, environment: dict[str, str], *, kill: bool) -> tuple[Measured, Measured]:
    """So many turns with one process, which holds at their end what it held after the warm-up."""
    sandbox = soak.random.choice(["off", "auto"])
    soak.sandboxed = sandbox == "auto" and shutil.which("bwrap") is not None
    options: dict[str, Any] = {"mcp": {"startWait": 60}, "tools": {"bash": {"sandbox": sandbox}}}
    events = {"hel": {"events": True}}
    async with Editor.started(
        command=FRESH, workspace=soak.root, environment=environment, options=options, experimental=events
    ) as editor:
        await soak.begin(editor)
        measured: list[Measured] = []
        for number in range(1, turns + 1):
            soak.fiddle()
            if number in (WARM_UP, turns):
                # With its MCP server up, whatever came before: only like is compared with like.
                await soak.play(mcp_answers)
                measured.append(soak.measure())
            else:
                await soak.play(soak.random.choices(list(KINDS), list(KINDS.values()))[0])
        first, last = measured
        assert last.handles <= first.handles + 2, measured
        assert last.children == first.children, measured
        assert last.memory <= first.memory + 10 + 0.02 * turns, measured
        if kill:
            await soak.play(killed)
    assert "Traceback" not in editor.stderr, editor.stderr
    assert editor.process.returncode == (-9 if kill else 0)
    return first, last


def left(workspace: Path) -> list[str]:
    """The command lines of processes that have to do with this workspace."""
    lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if str(workspace) in line]
