"""What MCP servers ask the user in the middle of a call, as an editor sees it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from tests.lsp.agent import agent, call, say, tool_results
from tests.lsp.editor import Editor
from tests.lsp.personalities import KATE, NEVER, Reply
from tests.mcp.http_server import HttpServer, with_sign_in
from tests.mcp.workspace import scripted

ASK = {"prompt": "go", "wait": True}
COLOUR = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}}
PAGE = {"mode": "url", "message": "Sign in", "url": "https://example.com/x", "elicitationId": "1"}
REPLIES = [call("load_mcp_tool", names=["mcp__s__echo"]), call("mcp__s__echo"), say("done")]


def asks(workspace: Path, era: str, method: str, params: Mapping[str, Any]) -> None:
    """Declare a server whose tool answers with what it was answered."""
    step: dict[str, Any] = {"ask": method, "params": params}
    if era == "new":
        step = {"input": {"inputRequests": {"q": {"method": method, "params": params}}, "requestState": "s"}}
    folder = workspace / ".hel"
    folder.mkdir()
    server = scripted(era=era, calls={"echo": [step]})
    (folder / "mcp.json").write_text(json.dumps({"servers": {"s": server}}), encoding="utf-8")


def answered(text: str) -> dict[str, Any]:
    """The answer that the server got, from the text of the tool's result."""
    reply = json.loads(text)
    return reply["inputResponses"]["q"] if "inputResponses" in reply else reply.get("result", reply)


def told(editor: Editor) -> list[str]:
    """What the user was told, beside the answer."""
    messages = [shown["message"] for shown in editor.sent("window/showMessage")]
    return [message for message in messages if message.startswith("hel: ")]


@pytest.mark.parametrize("era", ["old", "new"])
async def test_a_choice_is_a_question_whose_buttons_are_the_options(workspace: Path, era: str) -> None:
    asks(workspace, era, "elicitation/create", {"message": "Which?", "requestedSchema": COLOUR})
    async with agent(workspace, REPLIES) as (editor, model):
        editor.answers = ["Trust", "Allow once", "blue"]
        await editor.command("hel.ask", ASK)

    question = editor.questions[2]
    assert (question.message, question.actions) == ("The MCP server s asks: Which?", ["Decline", "red", "blue"])
    assert answered(tool_results(model.requests[2])[1]) == {"action": "accept", "content": {"colour": "blue"}}


@pytest.mark.parametrize(("said", "action"), [("Decline", "decline"), (None, "cancel"), ("Blue", "cancel")])
async def test_anything_but_the_exact_title_is_no_consent(workspace: Path, said: str | None, action: str) -> None:
    asks(workspace, "old", "elicitation/create", {"message": "Which?", "requestedSchema": COLOUR})
    async with agent(workspace, REPLIES) as (editor, model):
        editor.answers = ["Trust", "Allow once", said]
        await editor.command("hel.ask", ASK)

    assert answered(tool_results(model.requests[2])[1]) == {"action": action}


async def test_a_web_page_is_confirmed_and_opened_outside_the_editor(workspace: Path) -> None:
    asks(workspace, "new", "elicitation/create", PAGE)
    async with agent(workspace, REPLIES) as (editor, model):
        editor.handlers["window/showDocument"] = lambda number, params: Reply({"result": {"success": True}})
        editor.answers = ["Trust", "Allow once", "Open"]
        await editor.command("hel.ask", ASK)
        (shown,) = editor.sent("window/showDocument")

    assert "https://example.com/x" in editor.questions[2].message
    assert (shown["uri"], shown["external"]) == ("https://example.com/x", True)
    assert answered(tool_results(model.requests[2])[1]) == {"action": "accept"}
    assert told(editor) == []


async def test_a_web_page_that_is_declined_is_not_opened(workspace: Path) -> None:
    asks(workspace, "new", "elicitation/create", PAGE)
    async with agent(workspace, REPLIES) as (editor, model):
        editor.answers = ["Trust", "Allow once", "Decline"]
        await editor.command("hel.ask", ASK)

    assert editor.sent("window/showDocument") == []
    assert answered(tool_results(model.requests[2])[1]) == {"action": "decline"}


async def test_an_editor_that_opens_no_pages_says_the_address(workspace: Path) -> None:
    asks(workspace, "old", "elicitation/create", PAGE)
    async with agent(workspace, REPLIES, KATE) as (editor, model):
        editor.answers = ["Trust", "Allow once", "Open"]
        await editor.command("hel.ask", ASK)

    assert editor.sent("window/showDocument") == []
    assert told(editor) == ["hel: open this page in your browser: https://example.com/x"]
    assert answered(tool_results(model.requests[2])[1]) == {"action": "accept"}


async def test_any_other_form_is_declined_and_the_user_hears_what_was_asked(workspace: Path) -> None:
    asks(workspace, "old", "elicitation/create", {"message": "Who are you?", "requestedSchema": NAME})
    async with agent(workspace, REPLIES) as (editor, model):
        editor.answers = ["Trust", "Allow once"]
        await editor.command("hel.ask", ASK)

    assert len(editor.questions) == 2
    (message,) = told(editor)
    assert "Who are you?" in message
    assert "name" in message
    assert answered(tool_results(model.requests[2])[1]) == {"action": "decline"}


async def test_a_turn_is_cancelled_while_a_server_waits_for_an_answer(workspace: Path) -> None:
    asks(workspace, "new", "elicitation/create", {"message": "Which?", "requestedSchema": COLOUR})
    async with agent(workspace, REPLIES) as (editor, model):
        editor.answers = ["Trust", "Allow once", NEVER]
        asked = editor.start_command("hel.ask", ASK)
        await editor.question(2)
        assert await editor.command("hel.cancel") == {"cancelled": True}
        assert (await asked.result)["stopReason"] == "cancelled"
        assert await editor.command("hel.pending") == []


async def test_a_server_learns_all_folders_of_the_workspace(workspace: Path, tmp_path: Path) -> None:
    asks(workspace, "old", "roots/list", {})
    second = tmp_path.resolve() / "second"
    second.mkdir()
    async with agent(workspace, REPLIES, folders=[workspace, second]) as (editor, model):
        editor.answers = ["Trust", "Allow once"]
        await editor.command("hel.ask", ASK)

    roots = answered(tool_results(model.requests[2])[1])["roots"]
    assert [root["uri"] for root in roots] == [workspace.as_uri(), second.as_uri()]


async def test_a_user_signs_in_to_a_server_in_the_browser_that_the_editor_opens(workspace: Path) -> None:
    def browse(number: int, params: Any) -> Reply:
        query = parse_qs(urlsplit(params.uri).query)
        back = {"code": "c0", "state": query["state"][0]}
        visits.append(asyncio.create_task(visit(f"{query['redirect_uri'][0]}?{urlencode(back)}")))
        return Reply({"result": {"success": True}})

    async def visit(url: str) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.get(url)

    visits: list[asyncio.Task[None]] = []
    async with HttpServer() as server:
        with_sign_in(server)
        page = f"{server.origin}/authorize"
        (workspace / ".hel").mkdir()
        (workspace / ".hel" / "mcp.json").write_text(json.dumps({"servers": {"s": {"url": server.url}}}))
        async with agent(workspace, REPLIES) as (editor, model):
            editor.handlers["window/showDocument"] = browse
            editor.answers = ["Trust", "Allow once"]
            result = await editor.command("hel.ask", ASK)
            (shown,) = editor.sent("window/showDocument")

    assert [made["status"] for made in result["toolCalls"]] == ["completed", "completed"]
    assert (shown["uri"].split("?")[0], shown["external"]) == (page, True)
    assert any("Sign in to the MCP server s" in message for message in told(editor))
    assert "t0k3n" not in json.dumps(model.requests)
    await asyncio.gather(*visits)
