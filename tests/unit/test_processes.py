"""Commands and what they leave behind: neither holds up the end."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import psutil
import pytest

from hel_lsp import processes

pytestmark = pytest.mark.skipif(os.name == "nt", reason="runs a POSIX shell")


async def run(command: str, folder: Path) -> processes.Finished:
    return await processes.run(["/bin/sh", "-c", command], folder=folder, environment=os.environ, timeout=60)


async def test_what_a_command_leaves_in_the_background_does_not_hold_up_its_end(tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        finished = await run("echo begun; sleep 1000 & exit 3", tmp_path)
    assert (finished.code, finished.stdout.text()) == (3, "begun")


@pytest.mark.parametrize("moments", range(1, 12))
async def test_a_cancel_while_a_command_is_starting_ends_what_it_has_started_by_then(
    tmp_path: Path, moments: int
) -> None:
    running = asyncio.create_task(run(f"echo {tmp_path} > /dev/null; sleep 1000 & sleep 1000", tmp_path))
    for _ in range(moments):
        await asyncio.sleep(0)
    # The loop is busy, as it is on a busy machine, and the command is not.
    time.sleep(0.1)  # noqa: ASYNC251
    running.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait({running})
    assert running.cancelled()
    mine = [child for child in psutil.Process().children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    _, alive = await asyncio.to_thread(psutil.wait_procs, mine, 10)
    assert alive == []
