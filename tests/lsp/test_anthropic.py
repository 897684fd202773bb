"""Whole turns with `model.provider: anthropic`, at the wire on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hel_lsp.demo import task
from tests.lsp.agent import agent, call, records, say
from tests.lsp.test_mcp_servers import declare
from tests.mcp.workspace import ECHO, scripted
from tests.models.anthropic_stream import block, message, start, stop, text, thinking, use

ANTHROPIC = {"model": {"provider": "anthropic"}}
YES = ["Trust", "Allow once", "Allow once", "Allow once"]
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def streamed(reply: Mapping[str, Any]) -> dict[str, Any]:
    """A scripted reply as a stream of Anthropic's, with some thinking at its beginning."""
    blocks = [thinking(0, "hm", "c2ln")]
    if reply.get("text"):
        blocks.append(text(1, reply["text"]))
    calls = reply.get("tool_calls", ())
    for index, item in enumerate(calls, 2):
        blocks.append(block(index, "tool_use", id=f"toolu_{index}", name=item["name"], input=item["arguments"]))
    return {"raw": message(*blocks, reason="tool_use" if calls else "end_turn")}


def unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return value


@pytest.fixture
def laid_out(workspace: Path, tmp_path: Path) -> Path:
    task.lay_out(workspace, tmp_path / "inventory.jsonl")
    return workspace


async def test_the_main_job_is_done_in_this_format_too(laid_out, tmp_path):
    async with agent(laid_out, map(streamed, task.replies()), options=ANTHROPIC) as (editor, model):
        buffer = editor.open(laid_out / "config.ini")
        editor.answers = list(YES)
        argument = {"prompt": task.PROMPT, "textDocument": {"uri": buffer.uri}, "wait": True}
        result = await editor.command("hel.ask", argument)

        assert buffer.text == task.EXPECTED
        assert (result["stopReason"], result["text"], result["steps"]) == ("end_turn", task.ANSWER, 5)
        assert result["usage"] == {"inputTokens": 50, "outputTokens": 25, "cachedTokens": 0, "requests": 5}
        assert len(records(tmp_path / "inventory.jsonl")) == 2

    requests = [unmarked(request) for request in model.requests]
    for before, after in zip(requests, requests[1:], strict=False):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["system"] == before["system"]
        assert after["tools"][: len(before["tools"])] == before["tools"]
    last = requests[-1]
    assert [item["role"] for item in last["messages"]] == ["user", "assistant"] * 4 + ["user"]
    assert all(item["content"][0] == THOUGHT for item in last["messages"][1::2])
    assert task.LOOKUP_PORT in [tool["name"] for tool in last["tools"]]
    assert task.LOOKUP_PORT not in [tool["name"] for tool in requests[0]["tools"]]
    deferred = [tool["name"] for tool in last["tools"] if tool.get("defer_loading")]
    results = [item["content"] for message in last["messages"] for item in message["content"] if "tool_use_id" in item]
    referred = [item["tool_name"] for content in results if isinstance(content, list) for item in content]
    assert referred == deferred == [task.LIST_SERVICES, task.LOOKUP_PORT]


async def test_a_call_that_loads_its_tool_refers_to_it_too(laid_out):
    replies = [call(task.LOOKUP_PORT, service="api"), say("later")]
    async with agent(laid_out, map(streamed, replies), options=ANTHROPIC) as (editor, model):
        editor.answers = list(YES)
        await editor.command("hel.ask", {"prompt": "go", "wait": True})

    result, said = model.requests[-1]["messages"][-1]["content"]
    assert result["content"] == [{"type": "tool_reference", "tool_name": task.LOOKUP_PORT}]
    assert "had not been loaded" in said["text"]


async def test_a_tool_that_requires_nothing_can_be_called_with_nothing(workspace):
    (workspace / "a.txt").touch()
    optional = {"type": "object", "properties": {"page": {"type": "integer"}}}
    declare(workspace, s={**scripted(tools=[{**ECHO, "inputSchema": optional}]), "alwaysLoad": True})
    names = ("list_files", "mcp__s__echo", "read_file")
    uses = (use(index, f"toolu_{index}", name) for index, name in enumerate(names))
    script = [{"raw": message(*uses, reason="tool_use")}, streamed(say("ok"))]
    async with agent(workspace, script, options=ANTHROPIC) as (editor, model):
        editor.answers = list(YES)
        await editor.command("hel.ask", {"prompt": "go", "wait": True})

    listed, echoed, read = (item["content"] for item in model.requests[1]["messages"][-1]["content"])
    assert listed.splitlines()[-1] == "a.txt"
    assert echoed == "{}"
    assert "path: Field required" in read


async def test_the_key_goes_along_and_a_second_turn_goes_on_from_the_first(workspace):
    (workspace / "a.txt").write_text("alpha\n")
    replies = map(streamed, [call("read_file", path="a.txt"), say("alpha"), say("bye")])
    async with agent(workspace, replies, options=ANTHROPIC, environment={"HEL_API_KEY": "sk-ant-x"}) as (editor, model):
        await editor.command("hel.ask", {"prompt": "read", "wait": True})
        await editor.command("hel.ask", {"prompt": "and now?", "wait": True})

    assert {headers["x-api-key"] for headers in model.headers} == {"sk-ant-x"}
    first, _, last = (unmarked(request)["messages"] for request in model.requests)
    assert last[:1] == first
    assert last[2]["content"][0]["content"].endswith("alpha\n")
    assert last[3]["content"] == [THOUGHT, {"type": "text", "text": "alpha"}]


async def test_nothing_runs_from_a_stream_that_did_not_end(workspace):
    whole = streamed(call("write_file", path="new.txt", content="x"))["raw"]
    broken = {"raw": whole.rpartition(b"event: message_stop")[0]}
    async with agent(workspace, [broken, broken], options={**ANTHROPIC, "access": "auto"}) as (editor, model):
        result = await editor.command("hel.ask", {"prompt": "go", "wait": True})

        assert result["error"]["code"] == "stream_broken"
        assert (result["toolCalls"], result["edits"]) == ([], [])
    assert not (workspace / "new.txt").exists()


async def test_a_reply_over_the_output_limit_ends_the_turn_and_the_next_one_works(workspace):
    half = use(0, "toolu_1", "write_file", '{"path": "new.txt", "con')
    cut = {"raw": start() + text(1, "I will write") + half + stop("max_tokens") + b'data: {"type":"message_stop"}\n\n'}
    async with agent(workspace, [cut, streamed(say("ok"))], options=ANTHROPIC) as (editor, model):
        first = await editor.command("hel.ask", {"prompt": "go", "wait": True})
        second = await editor.command("hel.ask", {"prompt": "again", "wait": True})

    assert (first["stopReason"], second["stopReason"]) == ("max_tokens", "end_turn")
    assert [item["role"] for item in model.requests[1]["messages"]] == ["user", "assistant", "user"]
