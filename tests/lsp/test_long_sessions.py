"""A long session: neither a turn's time nor its memory grows, and what was sent is sent again unchanged.

`HEL_LONG_TURNS=500` makes it as long as the promise is; a multiple of FULL_EVERY, 120 at least.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
import tracemalloc
from pathlib import Path
from typing import Any

from hel_lsp.agent.agent import Agent, Ask
from hel_lsp.agent.runlog import verify
from hel_lsp.agent.store import seals
from hel_lsp.cli.compose import Composition
from hel_lsp.demo.scripted_model import ScriptedModel
from hel_lsp.local.approver import TerminalApprover
from hel_lsp.local.workspace import FileWorkspace
from hel_lsp.messages import TurnResult
from hel_lsp.ports import Event
from hel_lsp.settings import ModelSettings, Settings

TURNS = int(os.environ.get("HEL_LONG_TURNS", "160"))
FULL_EVERY = 20
"""Turns after which the provider counts so many tokens that the next request is for a summary."""

WINDOW = 2 * FULL_EVERY
"""Turns whose median counts: two compactions are among them."""

RESULT = 4_000
"""Bytes that an ended turn may leave: its result, which can be waited for as long as the session lives."""

ANSWER = "an answer of some length " * 20


class Silent:
    """An EventSink that nobody looks at."""

    def emit(self, session: str, turn: int, event: Event) -> None:
        pass

    def warn(self, message: str) -> None:
        raise AssertionError(message)


def replies() -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for turn in range(1, TURNS + 1):
        count = 15_000 if turn % FULL_EVERY == 0 else 1_000
        said.append({"text": ANSWER, "usage": {"prompt_tokens": count, "completion_tokens": 100}})
        if count == 15_000:
            said.append({"text": "## Goal\nto go on"})
    return said


async def test_a_late_turn_costs_what_turn_20_did_and_each_request_starts_with_the_one_before(workspace, monkeypatch):
    state = workspace.parent / "state"
    monkeypatch.setenv("HEL_STATE_DIR", str(state))
    settings = Settings(model=ModelSettings(context_window=16_000, max_output_tokens=1_000))
    async with ScriptedModel(replies()) as model:
        monkeypatch.setenv("HEL_BASE_URL", model.base_url)
        monkeypatch.setenv("HEL_MODEL", "scripted")
        agent = Agent(FileWorkspace(workspace), TerminalApprover(), Silent(), Composition(), settings, state)
        times: list[float] = []
        sizes: list[int] = []
        for number in range(TURNS):
            began = time.process_time()
            assert (await turn(agent, workspace, number)).stop_reason == "end_turn"
            times.append(time.process_time() - began)
            sizes.append(len(agent.current.history) if agent.current else 0)
        name = agent.current.id if agent.current else ""
        await agent.aclose()

    assert max(sizes[TURNS // 2 :]) <= max(sizes[: TURNS // 2])
    assert statistics.median(times[-WINDOW:]) < 1.5 * statistics.median(times[20 : 20 + WINDOW])
    breaks = 0
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        breaks += after["messages"][: len(before["messages"])] != before["messages"]
        assert after["messages"][0] == before["messages"][0]
    # Of each compaction the request for the summary leaves out the newest part, and the next one has the summary.
    assert breaks == 2 * (TURNS // FULL_EVERY - 1)
    (file,) = state.glob("sessions/*/*.jsonl")
    verdict = verify((state / "logs" / f"{name}.jsonl").read_bytes(), seals(file))
    assert (verdict.problems, verdict.unsealed) == ((), 0)


async def turn(agent: Agent, root: Path, number: int) -> TurnResult:
    session, started = agent.ask(Ask(f"prompt {number}", root))
    return await agent.wait(session, started)


async def test_an_ended_turn_leaves_no_more_memory_than_its_result(workspace, monkeypatch):
    state = workspace.parent / "state"
    monkeypatch.setenv("HEL_STATE_DIR", str(state))
    settings = Settings(model=ModelSettings(context_window=16_000, max_output_tokens=1_000))
    async with ScriptedModel(replies()) as model:
        monkeypatch.setenv("HEL_BASE_URL", model.base_url)
        monkeypatch.setenv("HEL_MODEL", "scripted")
        agent = Agent(FileWorkspace(workspace), TerminalApprover(), Silent(), Composition(), settings, state)
        held: list[int] = []
        tracemalloc.start()
        try:
            for number in range(TURNS):
                await turn(agent, workspace, number)
                # The test itself keeps every request.
                for kept in (model.requests, model.bodies, model.headers):
                    kept[-2:] = [type(kept[-1])() for _ in kept[-2:]]
                if number % FULL_EVERY == FULL_EVERY - 2:
                    gc.collect()
                    held.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
            await agent.aclose()
    late, early = (statistics.median(window) for window in (held[-3:], held[1:4]))
    assert late - early < (len(held) - 4) * FULL_EVERY * RESULT
