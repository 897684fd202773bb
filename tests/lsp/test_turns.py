"""Turns at the wire: steps, results, limits, cancel in every state, sessions beside each other."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import psutil
import pytest
from pygls.exceptions import JsonRpcException

from tests.lsp.agent import agent, call, calls, say, tool_results
from tests.lsp.personalities import NEVER

ASK = {"prompt": "go", "wait": True}


@pytest.fixture
def files(workspace: Path) -> Path:
    (workspace / "a.txt").write_text("alpha\n")
    (workspace / "b.txt").write_text("beta\n")
    return workspace


async def test_an_ask_answers_at_once_and_the_turn_goes_on_by_itself(files):
    async with agent(files, [say("hello")]) as (editor, model):
        started = await editor.command("hel.ask", {"prompt": "go"})
        assert set(started) == {"session", "turn"}
        assert started["turn"] == 1
        result = await editor.command("hel.wait", started)
        assert (result["session"], result["text"]) == (started["session"], "hello")
        assert await editor.command("hel.wait") == result


async def test_results_stand_in_the_order_of_the_calls_and_one_that_fails_costs_the_others_nothing(files):
    wanted = calls(
        ("read_file", {"path": "a.txt"}), ("read_file", {"path": "gone.txt"}), ("read_file", {"path": "b.txt"})
    )
    async with agent(files, [wanted, say("done")]) as (editor, model):
        result = await editor.command("hel.ask", ASK)

    first, second, third = tool_results(model.requests[1])
    assert first.endswith("alpha\n")
    assert "gone.txt" in second
    assert third.endswith("beta\n")
    assert [report["status"] for report in result["toolCalls"]] == ["completed", "failed", "completed"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("null", "without arguments"),
        ("", "without arguments"),
        ("5", "must be a JSON object, not a number"),
        ("[]", "must be a JSON object, not an array"),
        ('"a.txt"', "must be a JSON object, not a string"),
        ('{"path": "a\n.txt"}', "not valid JSON"),
        ('{"path": "a.txt"', "not valid JSON"),
        ('{"path": 5}', "path"),
        ('{"path": "a.txt", "wrong": 1}', "wrong"),
        ('{"offset": 1}', "path"),
    ],
)
async def test_arguments_that_do_not_fit_run_nothing_and_leave_a_valid_history(files, arguments, hint):
    async with agent(files, [calls(("write_file", arguments)), say("done")]) as (editor, model):
        result = await editor.command("hel.ask", ASK)

        assert editor.questions == []
    assert result["stopReason"] == "end_turn"
    assert hint in tool_results(model.requests[1])[0]
    for message in model.requests[1]["messages"]:
        for written in message.get("tool_calls", []):
            assert isinstance(json.loads(written["function"]["arguments"]), dict)


async def test_an_unknown_tool_is_a_result_that_names_close_ones(files):
    async with agent(files, [call("read_fiel", path="a.txt"), say("done")]) as (editor, model):
        await editor.command("hel.ask", ASK)
    assert "read_file" in tool_results(model.requests[1])[0]


async def test_the_same_broken_call_three_times_ends_the_turn_with_a_clear_message(files):
    broken = calls(("read_file", "{"))
    async with agent(files, [broken] * 5 + [say("next")]) as (editor, model):
        result = await editor.command("hel.ask", ASK)
        assert len(model.requests) == 3
        assert result["stopReason"] == "error"
        assert result["error"]["code"] == "repeated_failure"
        assert "read_file" in result["error"]["message"]


async def test_the_step_limit_ends_the_turn_and_the_next_one_works(files):
    read = call("read_file", path="a.txt")
    async with agent(files, [read] * 3 + [say("next")], options={"limits": {"maxSteps": 3}}) as (editor, model):
        result = await editor.command("hel.ask", ASK)
        assert (result["stopReason"], result["steps"], len(model.requests)) == ("max_steps", 3, 3)
        assert (await editor.command("hel.ask", ASK))["text"] == "next"
    roles = [message["role"] for message in model.requests[3]["messages"]]
    assert roles == ["system", "user"] + ["assistant", "tool"] * 3 + ["assistant", "user"]


async def test_a_reply_that_was_cut_off_runs_nothing(files):
    cut = {**call("write_file", path="new.txt", content="x"), "finish": "length"}
    async with agent(files, [cut, say("next")]) as (editor, model):
        result = await editor.command("hel.ask", ASK)
        assert result["stopReason"] == "max_tokens"
        assert result["toolCalls"] == []
        await editor.command("hel.ask", ASK)
    assert "cut off" in model.requests[1]["messages"][2]["content"]
    assert not (files / "new.txt").exists()


async def test_an_error_of_the_provider_ends_the_turn_with_its_message_and_the_next_one_works(files):
    refused = {"status": 401, "body": '{"error": {"message": "bad key 42"}}'}
    async with agent(files, [refused, say("next")]) as (editor, model):
        result = await editor.command("hel.ask", ASK)
        assert result["stopReason"] == "error"
        assert "bad key 42" in result["error"]["message"]
        assert (await editor.command("hel.ask", ASK))["text"] == "next"


async def test_without_a_model_the_first_ask_names_the_choices(files):
    nothing = dict.fromkeys(("HEL_BASE_URL", "HEL_MODEL", "OPENAI_API_KEY", "DEEPSEEK_API_KEY"), "")
    async with agent(files, environment={**nothing, "ANTHROPIC_API_KEY": "", "HEL_API_KEY": ""}) as (editor, model):
        result = await editor.command("hel.ask", ASK)
    assert result["error"]["code"] == "model_not_configured"
    for choice in ("model.baseUrl", "OPENAI_API_KEY", "Ollama", "llama.cpp", "LM Studio"):
        assert choice in result["error"]["message"]
    assert model.requests == []


async def test_a_second_ask_in_a_running_session_is_an_error_and_another_session_runs_beside_it(files):
    held = {"text": "wait", "hold": True}
    async with agent(files, [held, say("beside")]) as (editor, model):
        first = await editor.command("hel.ask", {"prompt": "go"})
        await model.wait_for_requests(1)
        with pytest.raises(JsonRpcException, match="still at turn 1"):
            await editor.command("hel.ask", {"prompt": "again"})
        other = await editor.command("hel.newSession")
        assert (await editor.command("hel.ask", {**ASK, **other}))["text"] == "beside"
        model.release()
        assert (await editor.command("hel.wait", first))["text"] == "wait"


# ------------------------------------------------------------------ cancel, in every state


async def test_a_cancel_while_the_model_streams_hangs_up_and_keeps_what_was_said(files):
    async with agent(files, [{"text": "half an", "hold": True}, say("next")]) as (editor, model):
        running = editor.start_command("hel.ask", ASK)
        await model.wait_for_requests(1)
        assert await editor.command("hel.cancel") == {"cancelled": True}
        result = await running.result
        assert result["stopReason"] == "cancelled"
        async with asyncio.timeout(5):
            await model.hung_up.wait()
        assert await editor.command("hel.cancel") == {"cancelled": False}
        assert (await editor.command("hel.ask", ASK))["text"] == "next"


async def test_a_cancel_during_a_question_starts_nothing_and_every_call_has_a_result(files):
    wanted = calls(
        ("read_file", {"path": "a.txt"}),
        ("search_replace", {"path": "a.txt", "search": "alpha", "replace": "omega"}),
        ("bash", {"command": "touch ran"}),
    )
    async with agent(files, [wanted, say("next")]) as (editor, model):
        editor.answers = lambda message, actions: NEVER
        running = editor.start_command("hel.ask", ASK)
        question = await editor.question()
        assert await editor.command("hel.cancel") == {"cancelled": True}
        result = await running.result
        question.answer("Allow once")
        assert [report["status"] for report in result["toolCalls"]] == ["completed", "cancelled", "cancelled"]
        assert await editor.command("hel.pending") == []
        assert (await editor.command("hel.ask", ASK))["text"] == "next"
        assert editor.sent("workspace/applyEdit") == []
    assert tool_results(model.requests[1])[1:] == ["Cancelled by the user."] * 2
    assert not (files / "ran").exists()


async def test_a_cancel_of_a_running_command_ends_it_with_all_that_it_started(files):
    script = "echo $$ > pid; sleep 1000 & echo $! >> pid; mv pid pids; wait"
    # In the sandbox it would write down numbers that are its own.
    options = {"access": "auto", "tools": {"bash": {"sandbox": "off"}}}
    async with agent(files, [call("bash", command=script), say("next")], options=options) as (editor, model):
        running = editor.start_command("hel.ask", ASK)
        await appears(files / "pids")
        pids = [int(pid) for pid in (files / "pids").read_text().split()]
        assert await editor.command("hel.cancel") == {"cancelled": True}
        assert (await running.result)["toolCalls"][0]["status"] == "cancelled"
        await gone(pids)


async def test_a_cancel_while_a_retry_is_waited_for_ends_the_turn(files):
    busy = {"status": 429, "headers": {"Retry-After": "50"}, "body": "{}"}
    async with agent(files, [busy]) as (editor, model):
        running = editor.start_command("hel.ask", ASK)
        await model.wait_for_requests(1)
        await editor.command("hel.cancel")
        assert (await running.result)["stopReason"] == "cancelled"


async def test_cancelling_the_request_that_waits_cancels_the_turn(files):
    async with agent(files, [{"text": "half", "hold": True}]) as (editor, model):
        running = editor.start_command("hel.ask", ASK)
        await model.wait_for_requests(1)
        editor.cancel(running)
        with pytest.raises(JsonRpcException):
            await running.result
        assert (await editor.command("hel.wait"))["stopReason"] == "cancelled"


async def appears(path: Path) -> None:
    """Wait for a file that another process makes; there is no event to wait for."""
    async with asyncio.timeout(20):
        while not path.exists():
            await asyncio.to_thread(os.sched_yield)


async def gone(pids: list[int]) -> None:
    """Wait, five seconds at most, until none of these processes runs any more."""
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, 5)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
