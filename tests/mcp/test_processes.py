"""Which processes are left when servers, the host, or what they started end: looked at from the outside."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hel_lsp.mcp import process
from tests.mcp.workspace import Workspace, scripted, until

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and the parent-death signal")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups of POSIX")


def running(pids: list[int]) -> list[int]:
    """Those that still run; a zombie has ended."""
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


def pids(file: Path) -> list[int]:
    return json.loads(file.read_text())


async def test_a_server_ends_when_its_input_closes(workspace: Workspace, tmp_path: Path, era: str) -> None:
    host = await workspace.started({"s": scripted(era=era, pids=str(tmp_path / "pids"))})
    assert len(running(pids(tmp_path / "pids"))) == 1
    began = time.monotonic()
    await host.aclose()
    assert running(pids(tmp_path / "pids")) == []
    assert time.monotonic() - began < 1
    assert host.servers()[0].status == "stopped"


@pytest.mark.parametrize("own_group", [False, pytest.param(True, marks=ON_LINUX)])
async def test_what_a_server_started_ends_with_it_even_when_it_leaves_by_itself(
    workspace: Workspace, tmp_path: Path, own_group: bool, era: str
) -> None:
    host = await workspace.started(
        {"s": scripted(era=era, pids=str(tmp_path / "pids"), children=2, own_group=own_group)}
    )
    assert len(running(pids(tmp_path / "pids"))) == 3
    await host.aclose()
    assert running(pids(tmp_path / "pids")) == []


async def test_all_stubborn_servers_are_killed_at_the_same_time(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.3)
    names = ["a", "b", "c", "d"]
    host = await workspace.started(
        {name: scripted(era=era, pids=str(tmp_path / name), stays=True, deaf=True, children=1) for name in names}
    )
    all_pids = [pid for name in names for pid in pids(tmp_path / name)]
    assert len(running(all_pids)) == 8
    began = time.monotonic()
    await host.aclose()
    assert running(all_pids) == []
    assert 0.6 <= time.monotonic() - began < 1.5


async def test_a_server_that_is_still_starting_is_ended_too(workspace: Workspace, tmp_path: Path, era: str) -> None:
    behaviour = scripted(era=era, pids=str(tmp_path / "pids"), start_when=str(tmp_path / "never"), children=1)
    host = workspace.host({"s": behaviour}, start_wait=0)
    await host.start()
    await until((tmp_path / "pids").exists)
    await host.aclose()
    assert running(pids(tmp_path / "pids")) == []


async def test_a_crashed_servers_children_do_not_stay(workspace: Workspace, tmp_path: Path, era: str) -> None:
    host = await workspace.started(
        {
            "s": scripted(
                era=era, pids=str(tmp_path / "pids"), children=1, calls={"echo": [{"signal": int(signal.SIGKILL)}]}
            )
        }
    )
    result = await host.call("mcp__s__echo", {})
    assert (result.status, "ended by signal 9 during the call" in result.text) == ("failed", True)
    await until(lambda: not running(pids(tmp_path / "pids")))


async def test_a_server_that_fails_to_start_leaves_nothing(workspace: Workspace, tmp_path: Path, era: str) -> None:
    server = {
        **scripted(era=era, pids=str(tmp_path / "pids"), children=1, stays=True, start_when=str(tmp_path / "never")),
        "startTimeout": 0.5,
    }
    host = await workspace.started({"s": server})
    assert host.servers()[0].status == "failed"
    await until(lambda: not running(pids(tmp_path / "pids")))


HOST = """
import asyncio, os, sys
from pathlib import Path
from hel_lsp.mcp.host import McpHost
from hel_lsp.settings import McpSettings

class Log:
    def write(self, kind, **fields): pass

async def yes(request): return True

async def main():
    host = McpHost(Path(sys.argv[1]), lambda: McpSettings(start_wait=20), yes, Log(), notify=print)
    await host.start()
    print(os.getpid(), [server.status for server in host.servers()], flush=True)
    if sys.argv[2] == "calling":
        await host.call("mcp__s__echo", {})
    await asyncio.Event().wait()

asyncio.run(main())
"""


@ON_LINUX
@pytest.mark.parametrize("state", ["idle", "calling"])
async def test_no_server_outlives_a_host_that_is_killed(
    workspace: Workspace, tmp_path: Path, state: str, era: str
) -> None:
    record = tmp_path / "record"
    workspace.declare(
        {
            "s": scripted(
                era=era,
                pids=str(tmp_path / "pids"),
                record=str(record),
                stays=True,
                deaf=True,
                calls={"echo": [{"wait": "/no"}]},
            )
        }
    )
    arguments = [sys.executable, "-c", HOST, str(workspace.folder), state]
    host = await asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE)
    assert host.stdout is not None
    line = (await host.stdout.readline()).decode()
    assert "ready" in line
    if state == "calling":
        await until(lambda: workspace.received(record, "tools/call"))
    os.kill(int(line.split()[0]), signal.SIGKILL)
    await host.wait()
    await until(lambda: not running(pids(tmp_path / "pids")), 5)


async def test_a_server_that_is_stopped_before_it_began_does_not_start(workspace: Workspace, tmp_path: Path) -> None:
    host = workspace.host({"s": scripted(pids=str(tmp_path / "pids"))}, start_wait=0)
    await host.start()
    await host.aclose()
    assert host.servers()[0].status == "stopped"
    assert not (tmp_path / "pids").exists() or not running(pids(tmp_path / "pids"))
