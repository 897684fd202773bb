"""Several calls in one reply: which run at the same time, and that the model may learn from those that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.agent import agent, call, calls, say, tool_results
from tests.lsp.meeting import Meeting
from tests.lsp.test_hooks import hook, trusting
from tests.lsp.test_mcp_servers import declare
from tests.mcp.workspace import ECHO, scripted

ASK = {"prompt": "go", "wait": True}
BROKEN = ("read_file", "{")
FINE = ("list_files", {})


async def test_two_reads_of_built_in_tools_can_wait_for_each_other(workspace, tmp_path):
    names = ["a.txt", "b.txt"]
    for name in names:
        (workspace / name).write_text(f"{name}\n")
    wanted = calls(*(("read_file", {"path": name}) for name in names))
    async with Meeting() as meeting, agent(workspace, [wanted, say("done")]) as (editor, model):
        hook(workspace, PreToolUse=("read_file", meeting.command(tmp_path)))
        editor.answers = trusting
        asked = editor.start_command("hel.ask", ASK)
        async with asyncio.timeout(30):
            both = [await meeting.arrived(), await meeting.arrived()]
        for guest in both:
            guest.let_go()
        await asked.result
    assert [text.partition("\n")[2] for text in tool_results(model.requests[1])] == ["a.txt\n", "b.txt\n"]


def waiting(meeting: Meeting, **hints: Any) -> Mapping[str, Any]:
    """A server whose calls come to the meeting, with a tool that is always loaded and is trusted to be as it says."""
    server = scripted(tools=[{**ECHO, "annotations": hints}], calls={"echo": [{"meet": meeting.port}, {"fill": 1}]})
    return {**server, "alwaysLoad": True, "trustAnnotations": True}


async def test_two_reads_of_mcp_servers_can_wait_for_each_other(workspace):
    wanted = calls(("mcp__a__echo", {}), ("mcp__b__echo", {}))
    async with Meeting() as meeting, agent(workspace, [wanted, say("done")]) as (editor, model):
        declare(workspace, a=waiting(meeting, readOnlyHint=True), b=waiting(meeting, readOnlyHint=True))
        editor.answers = ["Trust"]
        asked = editor.start_command("hel.ask", ASK)
        async with asyncio.timeout(30):
            both = [await meeting.arrived(), await meeting.arrived()]
        for guest in both:
            guest.let_go()
        await asked.result
    assert tool_results(model.requests[1]) == ["x", "x"]


@pytest.mark.parametrize("hints", [{}, {"readOnlyHint": True, "destructiveHint": True}], ids=["plain", "destructive"])
async def test_a_call_that_may_change_something_waits_for_the_one_before_it(workspace, hints):
    wanted = calls(("mcp__a__echo", {}), ("mcp__b__echo", {}))
    events = {"hel": {"events": True}}
    async with Meeting() as meeting, agent(workspace, [wanted, say("done")], experimental=events) as (editor, model):
        declare(workspace, a=waiting(meeting, **hints), b=waiting(meeting, **hints))
        editor.answers = trusting
        asked = editor.start_command("hel.ask", ASK)
        first = await meeting.arrived()
        await editor.command("hel.pending")
        begun = [event["name"] for event in editor.sent("hel/event") if event["kind"] == "toolCall"]
        first.let_go()
        (await meeting.arrived()).let_go()
        await asked.result
    assert set(begun) == {"mcp__a__echo"}
    assert tool_results(model.requests[1]) == ["x", "x"]


@pytest.mark.parametrize(
    "wanted",
    [
        [("mcp__s__echo", {"n": number}) for number in range(3)],
        [BROKEN] * 4,
        [("read_file", {"wrong": number}) for number in range(3)],
        [("no_such_tool", {})] * 3,
        [("read_file", {"path": "gone.txt"})] * 3,
        [("search_replace", {"path": "a.txt", "search": "x", "replace": "y"})] * 3,
    ],
    ids=["not loaded", "no JSON", "do not fit", "unknown", "missing file", "no match"],
)
async def test_equal_calls_that_fail_in_one_reply_are_the_first_that_the_model_hears_of_it(
    workspace: Path, wanted: list[tuple[str, Any]]
) -> None:
    (workspace / "a.txt").write_text("alpha\n")
    declare(workspace, s=scripted())
    async with agent(workspace, [calls(*wanted), calls(*wanted), say("I see")]) as (editor, model):
        editor.answers = trusting
        result = await editor.command("hel.ask", ASK)
    assert (result["stopReason"], result["text"]) == ("end_turn", "I see")
    assert len(tool_results(model.requests[1])) == len(wanted)


@pytest.mark.parametrize(
    ("replies", "ends_after"),
    [
        ([[BROKEN]] * 3, 3),
        ([[BROKEN, BROKEN]] * 3, 3),
        ([[BROKEN, ("no_such_tool", {})]] * 3, 3),
        ([[FINE, BROKEN], [BROKEN], [BROKEN]], 3),
        ([[FINE, BROKEN]] * 4, None),
        ([[BROKEN], [BROKEN], [BROKEN, FINE], [BROKEN], [BROKEN]], None),
        ([[BROKEN], [BROKEN], [FINE], [BROKEN], [BROKEN]], None),
        ([[BROKEN], [("read_file", {"wrong": 1})], [BROKEN]], 3),
        ([[BROKEN], [BROKEN], [("no_such_tool", {})], [BROKEN], [BROKEN]], None),
    ],
    ids=[
        "one call",
        "two calls",
        "of two kinds",
        "the first after a good one",
        "each after a good one",
        "one before a good one",
        "a good one between",
        "with other arguments",
        "another kind between",
    ],
)
async def test_a_turn_ends_when_three_replies_in_a_row_fail_in_the_same_way(workspace, replies, ends_after):
    script = [calls(*reply) for reply in replies]
    async with agent(workspace, [*script, say("done")]) as (editor, model):
        result = await editor.command("hel.ask", ASK)
    if ends_after is None:
        assert (result["stopReason"], len(model.requests)) == ("end_turn", len(replies) + 1)
    else:
        assert (result["error"]["code"], len(model.requests)) == ("repeated_failure", ends_after)


async def test_after_a_call_that_was_not_loaded_the_same_call_works(workspace):
    declare(workspace, s=scripted())
    use = call("mcp__s__echo", n=1)
    async with agent(workspace, [calls(*[("mcp__s__echo", {"n": 1})] * 3), use, say("done")]) as (editor, model):
        editor.answers = trusting
        await editor.command("hel.ask", ASK)
    assert tool_results(model.requests[2])[-1] == '{"n": 1}'
