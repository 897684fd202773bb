"""Compaction: when it starts, what it leaves, and that a summary which is no good changes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hel_lsp.agent.compaction import _cut, limit
from hel_lsp.demo import task
from hel_lsp.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from hel_lsp.settings import ModelSettings
from tests.lsp.agent import agent, assert_valid, call, calls, records, say, tool_names, tool_results

ASK = {"prompt": "go", "wait": True}
LONG = " ".join(["lorem ipsum"] * 300)
SUMMARY = "## Goal\nport 8437\n## Next step\nnone"
TOO_LONG = {"status": 400, "body": '{"error": {"code": "context_length_exceeded", "message": "too long"}}'}
HEADINGS = ("Goal", "Decisions", "Files and edits", "Findings", "Open work", "Constraints", "Next step")


def full(reply: dict[str, Any], count: int) -> dict[str, Any]:
    """A reply whose provider counts so many tokens of input."""
    return {**reply, "usage": {"prompt_tokens": count, "completion_tokens": 10, "total_tokens": count + 10}}


def texts(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in request["messages"]]


async def test_a_request_for_a_summary_right_after_a_result_is_one_that_no_provider_refuses(workspace):
    (workspace / "a.txt").write_text(LONG * 4)
    async with agent(workspace, [call("read_file", path="a.txt"), say(LONG), say(SUMMARY)]) as (editor, model):
        await editor.command("hel.ask", ASK)
        await editor.command("hel.compact")
    asked = model.requests[2]
    assert [message["role"] for message in asked["messages"][-3:]] == ["tool", "assistant", "user"]
    assert_valid(asked)


async def test_a_summary_under_fixed_headings_takes_the_place_of_all_but_the_newest(workspace):
    replies = [say(f"{LONG}{number}") for number in range(8)]
    async with agent(workspace, [*replies, say(SUMMARY), say("next")]) as (editor, model):
        for number in range(8):
            await editor.command("hel.ask", {"prompt": f"prompt {number}", "wait": True})
        done = await editor.command("hel.compact")
        assert set(done) == {"before", "after"}
        assert done["after"] < done["before"] / 2
        await editor.command("hel.ask", ASK)

    last, asked, following = (texts(request) for request in model.requests[7:10])
    assert asked[: len(asked) - 1] == last[: len(asked) - 1]
    assert all(f"## {heading}\n" in f"{asked[-1][1]}\n" for heading in HEADINGS)
    assert model.requests[8]["tools"] == model.requests[7]["tools"]
    assert following[0] == last[0]
    assert SUMMARY in following[1][1]
    assert following[-3:-1] == [("user", "prompt 7"), ("assistant", f"{LONG}7")]
    assert "prompt 3" not in json.dumps(following)
    assert_valid(model.requests[9])


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        (say("  \n"), "wrote no summary"),
        ({**say(SUMMARY), "finish": "length"}, "cut off"),
        (call("read_file", path="a.txt"), "called a tool"),
        (say(LONG * 40), "longer than what it would replace"),
        ({"status": 400, "body": '{"error": {"message": "not today"}}'}, "not today"),
        ({**say(SUMMARY), "finish": "content_filter"}, "wrote no summary"),
    ],
)
async def test_a_summary_that_is_no_good_is_rejected_and_the_conversation_stays(workspace, summary, reason):
    async with agent(workspace, [*[say(LONG)] * 4, summary, say("next")]) as (editor, model):
        for _ in range(4):
            await editor.command("hel.ask", ASK)
        done = await editor.command("hel.compact")
        assert done["before"] == done["after"]
        assert reason in done["reason"]
        await editor.command("hel.ask", ASK)
    assert texts(model.requests[5])[: len(texts(model.requests[3]))] == texts(model.requests[3])
    assert len(texts(model.requests[5])) == 10


async def test_there_may_be_nothing_to_compact(workspace):
    async with agent(workspace) as (editor, model):
        await editor.command("hel.newSession")
        done = await editor.command("hel.compact")
    assert done["before"] == done["after"]
    assert "nothing yet" in done["reason"]
    assert model.requests == []


async def test_it_starts_by_itself_when_the_provider_counts_more_than_eight_tenths(workspace):
    options = {"model": {"contextWindow": 10_000, "maxOutputTokens": 1_000}}
    replies = [full(say(LONG), 7_100), full(say(LONG), 7_200), say(SUMMARY), full(say("small"), 500), say("last")]
    async with agent(workspace, replies, options=options) as (editor, model):
        for _ in range(2):
            await editor.command("hel.ask", ASK)
        result = await editor.command("hel.ask", {"prompt": "the third", "wait": True})
        assert (result["text"], result["usage"]["requests"]) == ("small", 2)
        await editor.command("hel.ask", ASK)
    assert "## Goal" in texts(model.requests[2])[-1][1]
    assert SUMMARY in texts(model.requests[3])[1][1]
    assert texts(model.requests[3])[-1] == ("user", "the third")
    assert texts(model.requests[4])[:-2] == texts(model.requests[3])
    for request in model.requests:
        assert_valid(request)


async def test_a_context_that_is_no_larger_than_the_answer_may_be_still_has_room(workspace):
    assert limit(ModelSettings(context_window=8192, max_output_tokens=8192)) == 4915
    options = {"model": {"contextWindow": 8192, "maxOutputTokens": 8192}}
    async with agent(workspace, [say("one"), say("two")], options=options) as (editor, model):
        assert (await editor.command("hel.ask", ASK))["text"] == "one"
        assert (await editor.command("hel.ask", ASK))["text"] == "two"
    assert len(model.requests) == 2


async def test_large_old_results_shrink_first_and_a_summary_may_not_be_needed(workspace):
    (workspace / "big.txt").write_text("begin\n" + "nineteen characters\n" * 5_000)
    (workspace / "small.txt").write_text("small\n" * 1_000)
    read = calls(("read_file", {"path": "big.txt"}), ("read_file", {"path": "small.txt"}))
    options = {"model": {"contextWindow": 20_000, "maxOutputTokens": 1_000}}
    replies = [read, full(say(LONG * 4), 15_500), full(say("after"), 6_000), say("last")]
    async with agent(workspace, [*replies], options=options) as (editor, model):
        for _ in range(3):
            await editor.command("hel.ask", ASK)
    assert len(model.requests) == 4
    big, small = tool_results(model.requests[2])
    assert len(big) < 5_000
    assert "characters of this old result were left out" in big
    assert big.startswith("lines 1-2000 of 5001\nbegin\n")
    assert small == tool_results(model.requests[1])[1]
    assert "This summary" not in json.dumps(model.requests[2])
    assert texts(model.requests[3])[: len(texts(model.requests[2]))] == texts(model.requests[2])


async def test_a_request_that_is_refused_as_too_long_is_compacted_and_sent_once_more(workspace):
    replies = [say(LONG), say(LONG), TOO_LONG, say(SUMMARY), say("fits"), TOO_LONG, say(SUMMARY), TOO_LONG]
    async with agent(workspace, replies) as (editor, model):
        for _ in range(2):
            await editor.command("hel.ask", ASK)
        assert (await editor.command("hel.ask", {"prompt": "third", "wait": True}))["text"] == "fits"
        failed = await editor.command("hel.ask", {"prompt": LONG * 3, "wait": True})
        assert failed["error"]["code"] == "prompt_too_long"
    assert SUMMARY in texts(model.requests[4])[1][1]
    assert texts(model.requests[4])[-1] == ("user", "third")
    assert len(model.requests) in (7, 8)


async def test_what_was_loaded_stays_loaded_and_the_conversation_is_resumed_as_compacted(workspace):
    task.lay_out(workspace)
    load = call("load_mcp_tool", names=[task.LOOKUP_PORT])
    replies = [load, say(LONG), say(LONG), say(SUMMARY), say("next")]
    async with agent(workspace, replies) as (editor, model):
        editor.answers = ["Trust"]
        for _ in range(2):
            await editor.command("hel.ask", ASK)
        await editor.command("hel.compact")
        await editor.command("hel.ask", ASK)
    assert task.LOOKUP_PORT in tool_names(model.requests[4])
    async with agent(workspace, [say("again")]) as (editor, again):
        resumed = await editor.command("hel.resume")
        assert SUMMARY in resumed["messages"][0]["text"]
        await editor.command("hel.ask", ASK)
    assert texts(again.requests[0])[1:-2] == texts(model.requests[4])[1:]


async def test_instructions_of_skills_are_put_back_the_latest_first_and_within_bounds(workspace):
    for name, body in (("one", "First.\n"), ("two", "y" * 30_000), ("never", "Never loaded.\n")):
        file = workspace / ".hel" / "skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"---\nname: {name}\ndescription: d\n---\n{body}")
    loads = [call("load_skill", name="one"), call("load_skill", name="two")]
    replies = [*loads, say(LONG), say(LONG * 40), say(SUMMARY), say("next"), say(LONG * 30), say(SUMMARY), say("last")]
    async with agent(workspace, replies) as (editor, model):
        for _ in range(2):
            await editor.command("hel.ask", ASK)
        assert "reason" not in await editor.command("hel.compact")
        for _ in range(2):
            await editor.command("hel.ask", ASK)
        await editor.command("hel.compact")
        await editor.command("hel.ask", ASK)
    for request in (model.requests[5], model.requests[8]):
        summary = texts(request)[1][1]
        assert summary.index("Skill two") < summary.index("Skill one")
        assert summary.count("y" * 20_000) == 1
        assert "y" * 20_001 not in summary
        assert summary.endswith("First.")
        assert "Never loaded." not in summary


async def test_a_compaction_can_be_cancelled_and_nothing_else_runs_beside_it(workspace):
    async with agent(workspace, [say(LONG), {"text": "half", "hold": True}, say("next")]) as (editor, model):
        asked = await editor.command("hel.ask", ASK)
        compacting = editor.start_command("hel.compact")
        await model.wait_for_requests(2)
        with pytest.raises(Exception, match="still at turn 1"):
            await editor.command("hel.ask", ASK)
        assert await editor.command("hel.cancel") == {"cancelled": True}
        with pytest.raises(Exception, match="the conversation is as it was"):
            await compacting.result
        assert (await editor.command("hel.ask", ASK))["text"] == "next"
        log = workspace.parent / "workspace-state" / "logs" / f"{asked['session']}.jsonl"
        assert "compaction" not in [entry["kind"] for entry in records(log)]
    assert texts(model.requests[2])[1:3] == [("user", "go"), ("assistant", LONG)]


# ------------------------------------------------------------------ where the history is cut


@st.composite
def histories(draw: st.DrawFn) -> Sequence[Message]:
    """Turns of prompts, calls with their results, and answers; the last one may still be running."""
    history: list[Message] = []
    text = st.integers(0, 3_000).map("x".__mul__)
    for _ in range(draw(st.integers(1, 6))):
        history.append(UserMessage(draw(text)))
        for step in range(draw(st.integers(0, 4))):
            ids = [f"{step}.{number}" for number in range(draw(st.integers(1, 3)))]
            history.append(AssistantMessage(draw(text), tuple(ToolCall(name, "t", "{}") for name in ids)))
            history += [ToolMessage(name, draw(text)) for name in ids]
        history.append(AssistantMessage(draw(text)))
    if draw(st.booleans()):
        while isinstance(history[-1], AssistantMessage) and len(history) > 1:
            history.pop()
    return history


@given(histories())
def test_a_cut_parts_no_call_from_its_result_and_no_prompt_from_what_follows_it(history):
    cut = _cut(history)
    if cut < len(history):
        assert not isinstance(history[cut], ToolMessage)
    if cut > 0:
        assert not isinstance(history[cut - 1], UserMessage)
    if isinstance(history[-1], UserMessage):
        assert cut < len(history)


def test_of_even_turns_the_newest_sixth_stays():
    history: list[Message] = []
    for _ in range(50):
        history += [UserMessage("x" * 4_000), AssistantMessage("y" * 4_000)]
    assert len(history) - _cut(history) == 16


def test_of_one_result_that_is_most_of_the_conversation_nothing_stays_but_the_summary():
    call = AssistantMessage("", (ToolCall("1", "t", "{}"),))
    history = [UserMessage("go"), call, ToolMessage("1", "x" * 40_000)]
    assert _cut(history) == 3
