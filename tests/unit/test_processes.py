"""Commands and what they leave behind: neither holds up the end."""

from __future__ import annotations

import asyncio
import gc
import os
import time
import warnings
from pathlib import Path

import psutil
import pytest

from hel_lsp import processes
from tests.lsp.meeting import Meeting

pytestmark = pytest.mark.skipif(os.name == "nt", reason="runs a POSIX shell")


async def run(command: str, folder: Path) -> processes.Finished:
    return await processes.run(["/bin/sh", "-c", command], folder=folder, environment=os.environ, timeout=60)


async def test_what_a_command_leaves_in_the_background_does_not_hold_up_its_end(tmp_path: Path) -> None:
    async with asyncio.timeout(20):
        finished = await run("echo begun; sleep 1000 & exit 3", tmp_path)
    assert (finished.code, finished.stdout.text()) == (3, "begun")


@pytest.mark.parametrize("cancels", [1, 3])
@pytest.mark.parametrize("moments", range(1, 12))
async def test_a_cancel_while_a_command_is_starting_ends_what_it_has_started_by_then(
    tmp_path: Path, moments: int, cancels: int
) -> None:
    running = asyncio.create_task(run(f"echo {tmp_path} > /dev/null; sleep 1000 & sleep 1000", tmp_path))
    for _ in range(moments):
        await asyncio.sleep(0)
    # The loop is busy, as it is on a busy machine, and the command is not.
    time.sleep(0.1)  # noqa: ASYNC251
    for _ in range(cancels):
        running.cancel()
        await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await asyncio.wait({running})
    assert running.cancelled()
    mine = [child for child in psutil.Process().children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
    _, alive = await asyncio.to_thread(psutil.wait_procs, mine, 10)
    assert alive == []


def test_a_cancel_of_a_running_command_comes_back_when_that_is_gone(tmp_path: Path) -> None:
    async def cancel() -> None:
        async with Meeting() as meeting:
            running = asyncio.create_task(run(f"sleep 1000 & {meeting.command(tmp_path)}", tmp_path))
            guest = await meeting.arrived()
            running.cancel()
            await asyncio.wait({running})
            guest.let_go()

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(cancel())
        gc.collect()
    assert [str(warning.message) for warning in warned] == []
