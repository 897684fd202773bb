"""What servers ask for in the middle of a call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hel_lsp.mcp import server
from tests.mcp.workspace import ECHO, Person, Workspace, scripted

COLOUR = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}}
SURE = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
TITLED = {"properties": {"size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]}}}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}}
TWO = {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}}
MANY = {"type": "object", "properties": {"n": {"enum": [str(n) for n in range(30)]}}}
SLY = {"type": "object", "properties": {"n": {"enum": ["Decline", "go on"]}}}


def asking(era: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The step of a call in which the server asks."""
    if era == "old":
        return {"ask": method, "params": params}
    return {"input": {"inputRequests": {"q": {"method": method, "params": params}}, "requestState": "st/\u00e4 te="}}


async def asked(workspace: Workspace, era: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """What the server is answered when it asks in the middle of a call."""
    step = asking(era, method, params)
    host = await workspace.started({"s": scripted(era=era, calls={"echo": [step]})})
    result = await host.call("mcp__s__echo", {})
    assert result.status == "completed", result.text
    reply = json.loads(result.text)
    if era == "old":
        return reply.get("result", reply)
    assert reply["requestState"] == "st/\u00e4 te="
    return reply["inputResponses"]["q"]


@pytest.mark.parametrize(
    ("schema", "actions", "chosen", "content"),
    [
        (COLOUR, ("Decline", "red", "blue"), "blue", {"colour": "blue"}),
        (SURE, ("Decline", "Yes", "No"), "No", {"sure": False}),
        (TITLED, ("Decline", "Small", "Large"), "Large", {"size": "l"}),
        ({"type": "object", "properties": {}}, ("Decline", "Accept"), "Accept", {}),
    ],
)
async def test_a_choice_becomes_a_question_with_its_options_as_actions(
    workspace: Workspace, era: str, schema: dict[str, Any], actions: tuple[str, ...], chosen: str, content: Any
) -> None:
    workspace.person = person = Person(chosen)
    schema = {"type": "object", **schema}
    answer = await asked(workspace, era, "elicitation/create", {"message": "Which?", "requestedSchema": schema})
    assert answer == {"action": "accept", "content": content}
    assert person.asked == [("The MCP server s asks: Which?", actions)]


async def test_a_form_that_comes_filled_in_can_be_accepted_as_it_is(workspace: Workspace, era: str) -> None:
    workspace.person = person = Person("Accept")
    fields = {"name": {"type": "string", "default": "x"}, "n": {"type": "integer", "default": 3}}
    schema = {"type": "object", "properties": fields}
    answer = await asked(workspace, era, "elicitation/create", {"message": "So?", "requestedSchema": schema})
    assert answer == {"action": "accept", "content": {"name": "x", "n": 3}}
    assert person.asked == [("The MCP server s asks: So? (name: x, n: 3)", ("Decline", "Accept"))]


@pytest.mark.parametrize(("chosen", "action"), [("Decline", "decline"), (None, "cancel"), ("Red", "cancel")])
async def test_anything_but_an_exact_option_is_no_consent(
    workspace: Workspace, chosen: str | None, action: str, era: str
) -> None:
    workspace.person = Person(chosen)
    answer = await asked(workspace, era, "elicitation/create", {"message": "Which?", "requestedSchema": COLOUR})
    assert answer == {"action": action}


@pytest.mark.parametrize("schema", [NAME, TWO, MANY, SLY])
async def test_any_other_form_is_declined_and_the_person_told(
    workspace: Workspace, schema: dict[str, Any], era: str
) -> None:
    workspace.person = person = Person()
    answer = await asked(workspace, era, "elicitation/create", {"message": "Who\x1b[1m?", "requestedSchema": schema})
    assert answer == {"action": "decline"}
    (told,) = person.told
    assert "Who?" in told
    assert all(name in told for name in schema["properties"])


async def test_a_web_page_is_shown_once_the_person_said_so(workspace: Workspace, era: str) -> None:
    workspace.person = person = Person("Open", "Decline")
    params = {"mode": "url", "message": "Sign in", "url": "https://example.com/x", "elicitationId": "1"}
    assert await asked(workspace, era, "elicitation/create", params) == {"action": "accept"}
    assert person.opened == ["https://example.com/x"]
    assert "https://example.com/x" in person.asked[0][0]
    assert await asked(workspace, era, "elicitation/create", params) == {"action": "decline"}
    assert len(person.opened) == 1


async def test_what_is_no_web_page_is_not_opened(workspace: Workspace, era: str) -> None:
    workspace.person = person = Person()
    params = {"mode": "url", "message": "Run", "url": "file:///etc/passwd", "elicitationId": "1"}
    assert await asked(workspace, era, "elicitation/create", params) == {"action": "decline"}
    assert (person.opened, len(person.told)) == ([], 1)


async def test_a_call_that_needs_a_visit_first_says_so(workspace: Workspace, era: str) -> None:
    workspace.person = person = Person("Open")
    page = {"mode": "url", "message": "Sign in", "url": "https://example.com/x", "elicitationId": "1"}
    error = {"code": -32042, "message": "sign in first", "data": {"elicitations": [page]}}
    host = await workspace.started({"s": scripted(era=era, calls={"echo": [{"error": error}]})})
    result = await host.call("mcp__s__echo", {})
    assert (result.status, "call again" in result.text) == ("failed", True)
    assert person.opened == ["https://example.com/x"]


async def test_roots_are_the_workspace_folders(workspace: Workspace, era: str) -> None:
    answer = await asked(workspace, era, "roots/list", {})
    assert answer == {"roots": [{"uri": workspace.folder.as_uri(), "name": "work"}]}


@pytest.mark.parametrize(("person", "declared"), [(None, {"roots"}), (Person(), {"roots", "elicitation"})])
async def test_capabilities_are_declared_only_where_they_are_served(
    workspace: Workspace, tmp_path: Path, person: Person | None, declared: set[str]
) -> None:
    workspace.person = person
    record = tmp_path / "record"
    host = await workspace.started({"s": scripted(record=str(record))})
    (greeting,) = workspace.received(record, "initialize")
    assert set(greeting["params"]["capabilities"]) == declared
    await host.aclose()


async def test_sampling_is_not_offered(workspace: Workspace, era: str) -> None:
    message = {"role": "user", "content": {"type": "text", "text": "hi"}}
    step = asking(era, "sampling/createMessage", {"messages": [message], "maxTokens": 5})
    host = await workspace.started({"s": scripted(era=era, calls={"echo": [step]})})
    result = await host.call("mcp__s__echo", {})
    assert "Sampling not supported" in result.text
    assert (await host.call("mcp__s__echo", {})).text == result.text


async def test_rounds_without_end_are_given_up(workspace: Workspace) -> None:
    line = '{"jsonrpc":"2.0","id":%ID%,"result":{"resultType":"input_required","requestState":"x"}}'
    host = await workspace.started({"s": scripted(era="new", calls={"echo": [{"line": line}]})})
    result = await host.call("mcp__s__echo", {})
    assert (result.status, "10 rounds" in result.text) == ("failed", True)


async def test_while_the_person_thinks_the_call_does_not_run_out_of_time(workspace: Workspace, era: str) -> None:
    class Slow(Person):
        async def choose(self, message: str, actions: Any) -> str | None:
            await asyncio.sleep(0.6)  # longer than the call may take
            return await super().choose(message, actions)

    workspace.person = Slow("red")
    step = asking(era, "elicitation/create", {"message": "Which?", "requestedSchema": COLOUR})
    host = await workspace.started({"s": {**scripted(era=era, calls={"echo": [step]}), "timeout": 0.3}})
    assert "red" in (await host.call("mcp__s__echo", {})).text


NEVER = {**scripted(calls={"echo": [{"wait": "/no/such/file"}]}), "timeout": 1.5}
"""A server whose call takes as long as it may: more than that of the others in these tests."""


async def test_after_a_long_thought_progress_does_not_end_the_call(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(server, "EXTENSION", 1)

    class Slow(Person):
        async def choose(self, message: str, actions: Sequence[str]) -> str | None:
            await host.call("mcp__never__echo", {})
            return await super().choose(message, actions)

    workspace.person = Slow("red")
    step = asking(era, "elicitation/create", {"message": "Which?", "requestedSchema": COLOUR})
    steps = [{**step, "then": 3}] if era == "old" else [{"progress": 3}, step]
    host = await workspace.started(
        {"s": {**scripted(era=era, calls={"echo": steps}), "timeout": 1}, "never": NEVER},
    )
    assert "red" in (await host.call("mcp__s__echo", {})).text


async def test_the_first_of_two_answers_does_not_start_the_clock(workspace: Workspace, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    second = asyncio.Event()

    class Two(Person):
        async def choose(self, message: str, actions: Sequence[str]) -> str | None:
            self.asked.append((message, tuple(actions)))
            if len(self.asked) == 2:
                second.set()
                return "blue"
            await second.wait()
            await host.call("mcp__never__echo", {})  # while this question is open, that of the other call is answered
            gate.touch()
            return "red"

    workspace.person = Two()
    step = asking("new", "elicitation/create", {"message": "Which?", "requestedSchema": COLOUR})
    busy = [{"progress": 3}, {"wait": str(gate)}, {"fill": 3}]
    tools = [ECHO, {**ECHO, "name": "busy"}]
    behaviour = scripted(era="new", tools=tools, calls={"echo": [step], "busy": busy})
    host = await workspace.started({"s": {**behaviour, "timeout": 1}, "never": NEVER})
    questions = [asyncio.create_task(host.call("mcp__s__echo", {})) for _ in range(2)]
    await second.wait()
    working = asyncio.create_task(host.call("mcp__s__busy", {}))
    results = [await call for call in (*questions, working)]
    assert [result.status for result in results] == ["completed"] * 3, results
