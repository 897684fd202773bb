"""What is sent in Anthropic's format: blocks, roles, ids, the marks of the cache, and where the key goes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hel_lsp.agent.store import from_json, to_json
from hel_lsp.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    UserMessage,
)
from hel_lsp.ports import ModelRequest
from tests.models.anthropic_stream import block, message, text, thinking, use
from tests.models.played import HELLO, Client, Played, PlayedServer, played, refused

HI = played(message(text(0, "hi")))
READ = AssistantMessage("Let me see.", (ToolCall("c1", "read_file", '{"path": "a"}'), ToolCall("c2", "bash", "{}")))
MESSAGES: tuple[Message, ...] = (
    SystemMessage("Be good."),
    UserMessage("naïve 😀?"),
    READ,
    ToolMessage("c1", "port=7000\n"),
    ToolMessage("c2", ""),
)
TOOLS = [ToolDefinition("write_file", "Write.", {"type": "object"})]
MARK = {"cache_control": {"type": "ephemeral"}}


async def sent(claude: Client, *messages: Message) -> list[dict[str, Any]]:
    """The messages of a request, without the marks of the cache."""
    await claude.ask(HI, request=ModelRequest(messages, []))
    return unmarked(claude.server.requests[-1])["messages"]


def unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return value


def marked(request: dict[str, Any]) -> list[Any]:
    """The blocks that carry a mark, in the order in which the provider reads them."""
    blocks = [*request.get("tools", []), *request.get("system", [])]
    blocks += [item for message in request["messages"] for item in message["content"]]
    return [item for item in blocks if "cache_control" in item]


# ------------------------------------------------------------------ the body


async def test_the_body_is_the_conversation_in_blocks(claude: Client) -> None:
    await claude.ask(HI, request=ModelRequest(MESSAGES, TOOLS))
    assert claude.server.bodies[0].decode() == (
        '{"model":"test-model","stream":true,"max_tokens":8192,'
        '"tools":[{"name":"write_file","description":"Write.","input_schema":{"type":"object"}}],'
        '"system":[{"type":"text","text":"Be good.","cache_control":{"type":"ephemeral"}}],'
        '"messages":[{"role":"user","content":[{"type":"text","text":"naïve 😀?",'
        '"cache_control":{"type":"ephemeral"}}]},'
        '{"role":"assistant","content":[{"type":"text","text":"Let me see."},'
        '{"type":"tool_use","id":"c1","name":"read_file","input":{"path":"a"}},'
        '{"type":"tool_use","id":"c2","name":"bash","input":{}}]},'
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"port=7000\\n"},'
        '{"type":"tool_result","tool_use_id":"c2","cache_control":{"type":"ephemeral"}}]}]}'
    )


async def test_it_goes_to_messages_with_the_key_and_the_version_in_their_own_headers(claude: Client) -> None:
    await claude.ask(HI)
    assert claude.server.paths == ["/v1/messages"]
    headers = claude.server.headers[0]
    assert headers["x-api-key"] == "sk-secret-key"
    assert headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in headers


async def test_without_a_key_no_header_for_one_is_sent(claude: Client) -> None:
    claude.plays(HI)
    _ = [item async for item in claude.make(key="").stream(HELLO)]
    assert "x-api-key" not in claude.server.headers[0]


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_to_another_server_does_not_carry_the_key(claude: Client, status: int) -> None:
    other = PlayedServer()
    await other.start()
    other.replies.append(HI)
    moved = Played(status=status, headers={"Location": f"{other.base_url}/messages"})
    assert (await claude.ask(moved)).reply.text == "hi"
    assert "x-api-key" not in other.headers[0]
    await other.stop()


async def test_a_redirect_on_the_same_server_keeps_the_key(claude: Client) -> None:
    await claude.ask(Played(status=307, headers={"Location": "/elsewhere"}), HI)
    assert claude.server.headers[1]["x-api-key"] == "sk-secret-key"


async def test_settings_are_passed_through_and_leave_the_conversation_alone(claude: Client) -> None:
    extra = {"thinking": {"type": "adaptive"}, "max_tokens": 5, "stream": False, "messages": [], "system": "x"}
    claude.plays(HI)
    model = claude.make(temperature=0.25, max_output_tokens=100, extra_body=extra)
    _ = [item async for item in model.stream(HELLO)]
    request = claude.server.requests[0]
    assert request["temperature"] == 0.25
    assert request["thinking"] == {"type": "adaptive"}
    assert request["max_tokens"] == 5
    assert request["stream"] is True
    assert request["messages"][0]["content"][0]["text"] == "hello"
    assert "system" not in request
    assert "tools" not in request


# ------------------------------------------------------------------ messages that the format accepts


async def test_neighbours_of_one_role_are_one_message_with_the_results_first(claude: Client) -> None:
    messages = await sent(claude, *MESSAGES[1:], UserMessage("Summarise."), UserMessage("Now."))
    assert [item["role"] for item in messages] == ["user", "assistant", "user"]
    assert [item["type"] for item in messages[2]["content"]] == ["tool_result", "tool_result", "text", "text"]


async def test_blank_texts_are_left_out(claude: Client) -> None:
    messages = await sent(
        claude, UserMessage("a"), AssistantMessage(" \n", READ.tool_calls), *MESSAGES[3:], AssistantMessage("")
    )
    assert [item["type"] for item in messages[1]["content"]] == ["tool_use", "tool_use"]
    assert len(messages) == 3


async def test_ids_that_other_providers_repeat_or_write_otherwise_become_unique_and_valid(claude: Client) -> None:
    again: list[Message] = []
    for _ in range(3):
        again += [
            AssistantMessage("", (ToolCall("functions.bash:0", "bash", "{}"),)),
            ToolMessage("functions.bash:0", "ok"),
        ]
    messages = await sent(claude, UserMessage("go"), *again)
    calls = [item["content"][0]["id"] for item in messages[1::2]]
    assert calls == ["functions_bash_0", "functions_bash_0_2", "functions_bash_0_3"]
    assert [item["content"][0]["tool_use_id"] for item in messages[2::2]] == calls


async def test_a_name_that_the_model_made_up_does_not_poison_the_history(claude: Client) -> None:
    messages = await sent(
        claude, UserMessage("a"), AssistantMessage("", (ToolCall("c", "search replace!" + "x" * 80, "{}"),))
    )
    name = messages[1]["content"][0]["name"]
    assert name.startswith("search_replace_xx")
    assert len(name) == 64


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ('{"x": 1e999, "y": NaN, "z": 1.5}', {"x": "1e999", "y": "NaN", "z": 1.5}),
        ("[1]", {"invalid_arguments": "[1]"}),
        ('{"x"', {"invalid_arguments": '{"x"'}),
    ],
)
async def test_the_input_of_a_call_is_an_object_that_json_can_hold(claude: Client, arguments: str, given: Any) -> None:
    messages = await sent(claude, UserMessage("a"), AssistantMessage("", (ToolCall("c", "f", arguments),)))
    assert messages[1]["content"][0]["input"] == given


async def test_a_half_character_in_the_conversation_can_be_sent(claude: Client) -> None:
    assert (await sent(claude, UserMessage("a\udcffb")))[0]["content"][0]["text"] == "a?b"


# ------------------------------------------------------------------ the cache


async def test_requests_begin_with_the_blocks_of_the_request_before_and_are_marked_where_that_one_ended(
    claude: Client,
) -> None:
    history = list(MESSAGES[:2])
    for step in range(12):
        await claude.ask(HI, request=ModelRequest(history, TOOLS))
        calls = tuple(ToolCall(f"c{step}_{number}", "bash", "{}") for number in range(12))
        history += [AssistantMessage("", calls), *(ToolMessage(call.id, f"result {step}") for call in calls)]
    requests = claude.server.requests
    for before, after in zip(requests, requests[1:], strict=False):
        known, now = unmarked(before), unmarked(after)
        assert now["messages"][: len(known["messages"])] == known["messages"]
        assert (now["tools"], now["system"]) == (known["tools"], known["system"])
        assert unmarked(marked(before)[-1]) in unmarked(marked(after))
        assert after["messages"][-1]["content"][-1] == marked(after)[-1]
    assert all(len(marked(request)) <= 4 for request in requests)


async def test_the_same_messages_are_the_same_bytes(claude: Client) -> None:
    for _ in range(2):
        await claude.ask(HI, request=ModelRequest(MESSAGES, TOOLS))
    assert claude.server.bodies[0] == claude.server.bodies[1]


async def test_marks_are_left_out_for_an_endpoint_that_refuses_them(claude: Client) -> None:
    complaint = {"error": {"message": "messages.0.content.0.cache_control: Extra inputs are not permitted"}}
    await claude.ask(refused(400, complaint), HI, request=ModelRequest(MESSAGES, TOOLS))
    await claude.ask(HI, request=ModelRequest(MESSAGES, TOOLS))
    assert [len(marked(request)) for request in claude.server.requests] == [3, 0, 0]


# ------------------------------------------------------------------ tools that the conversation loaded

ECHO, PORT = (ToolDefinition(f"mcp__s__{name}", "Do.", {"type": "object"}) for name in ("echo", "port"))
LOADING = AssistantMessage("", (ToolCall("c1", "load_mcp_tool", "{}"), ToolCall("c2", "read_file", "{}")))
LOADED = ToolMessage("c1", "mcp__s__echo: loaded\nmcp__s__prot: unknown", ("mcp__s__echo",))
TOLD: tuple[Message, ...] = (UserMessage("go"), LOADING, LOADED, ToolMessage("c2", "text"))


def names(request: dict[str, Any], *, deferred: bool) -> list[str]:
    return [tool["name"] for tool in request["tools"] if tool.get("defer_loading", False) == deferred]


async def test_a_tool_that_a_result_loaded_is_deferred_and_referred_to_by_that_result(claude: Client) -> None:
    request = ModelRequest((*TOLD, UserMessage("and?")), [*TOOLS, ECHO])
    await claude.ask(HI, request=request)
    (body,) = claude.server.requests
    assert (names(body, deferred=False), names(body, deferred=True)) == (["write_file"], ["mcp__s__echo"])
    assert unmarked(body)["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "tool_reference", "tool_name": ECHO.name}]},
        {"type": "tool_result", "tool_use_id": "c2", "content": "text"},
        {"type": "text", "text": "mcp__s__prot: unknown"},
        {"type": "text", "text": "and?"},
    ]


async def test_loading_changes_nothing_of_what_came_before_it(claude: Client) -> None:
    await claude.ask(HI, request=ModelRequest(TOLD[:1], TOOLS))
    await claude.ask(HI, request=ModelRequest(TOLD, [*TOOLS, ECHO]))
    await claude.ask(HI, request=ModelRequest((*TOLD, UserMessage("and?")), [*TOOLS, ECHO]))
    first, second, third = (unmarked(request) for request in claude.server.requests)
    assert names(second, deferred=False) == names(first, deferred=False)
    assert second["messages"][:1] == first["messages"]
    assert third["messages"][2]["content"][:3] == second["messages"][2]["content"]


async def test_a_tool_that_no_message_loaded_is_there_from_the_start(claude: Client) -> None:
    await claude.ask(HI, request=ModelRequest(TOLD, [*TOOLS, PORT]))
    (body,) = claude.server.requests
    assert names(body, deferred=False) == ["write_file", "mcp__s__port"]
    assert unmarked(body)["messages"][-1]["content"][0]["content"] == LOADED.text


@pytest.mark.parametrize(
    "complaint", ["tools.1.custom.defer_loading: Extra inputs", "tool_reference is not a known type"]
)
async def test_an_endpoint_that_does_not_know_deferred_tools_gets_them_plainly(claude: Client, complaint: str) -> None:
    request = ModelRequest(TOLD, [*TOOLS, ECHO])
    await claude.ask(refused(400, {"error": {"message": complaint}}), HI, request=request)
    await claude.ask(HI, request=request)
    assert [names(body, deferred=True) for body in claude.server.requests] == [["mcp__s__echo"], [], []]
    assert unmarked(claude.server.requests[-1])["messages"][-1]["content"][0]["content"] == LOADED.text


async def test_a_session_file_does_not_say_what_was_loaded(claude: Client) -> None:
    assert from_json(to_json(LOADED)) == ToolMessage(LOADED.call_id, LOADED.text)


# ------------------------------------------------------------------ reasoning that goes back


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "b3BhcXVl"}


async def replied(claude: Client, *blocks: bytes, reason: str = "tool_use") -> AssistantMessage:
    """A reply as the history keeps it."""
    reply = (await claude.ask(played(message(*blocks, reason=reason)))).reply
    return AssistantMessage(reply.text, reply.tool_calls, reply.reasoning, reply.signed_reasoning)


async def test_reasoning_goes_back_signed_and_where_it_stood(claude: Client) -> None:
    answer = await replied(
        claude,
        thinking(0, "hm", "c2ln"),
        block(1, "redacted_thinking", data="b3BhcXVl"),
        text(2, "Zürich "),
        thinking(3, "hm", "c2ln"),
        text(4, "it is."),
        use(5, "c1", "f", "{}"),
        thinking(6, "hm", "c2ln"),
        use(7, "c2", "g", "{}"),
    )
    content = (await sent(claude, UserMessage("a"), answer, *MESSAGES[3:]))[1]["content"]
    assert content == [
        THOUGHT,
        HIDDEN,
        {"type": "text", "text": "Zürich "},
        THOUGHT,
        {"type": "text", "text": "it is."},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
        THOUGHT,
        {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
    ]
    assert answer.reasoning == "hmhmhm"


async def test_reasoning_of_another_provider_stays_away(claude: Client) -> None:
    messages = await sent(claude, UserMessage("a"), AssistantMessage("b", reasoning="hm"), UserMessage("c"))
    assert messages[1]["content"] == [{"type": "text", "text": "b"}]


async def test_signatures_that_the_endpoint_does_not_know_are_left_out_but_for_its_own_of_this_turn(
    claude: Client,
) -> None:
    foreign = await replied(claude, thinking(0, "hm", "alien"), text(1, "b"), reason="end_turn")
    own = await replied(claude, thinking(0, "hm", "c2ln"), use(1, "c1", "f", "{}"))
    history = (UserMessage("a"), foreign, UserMessage("c"), own, ToolMessage("c1", "ok"))
    complaint = {"error": {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}
    claude.plays(refused(400, complaint))
    messages = await sent(claude, *history)
    assert messages[1]["content"] == [{"type": "text", "text": "b"}]
    assert messages[3]["content"][0] == THOUGHT
    assert claude.waits == []


async def test_a_session_file_keeps_signed_reasoning(claude: Client) -> None:
    answer = await replied(claude, thinking(0, "hm", "c2ln"), use(1, "c1", "f", "{}"))
    assert from_json(json.loads(json.dumps(to_json(answer)))) == answer
