"""Answers over HTTP that the protocol does not allow: what has happened on the server is never lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from hel_lsp.mcp import bodies
from tests.mcp.http_server import HttpServer, Reply
from tests.mcp.workspace import Workspace

JSON, EVENTS = {"Content-Type": "application/json"}, {"Content-Type": "text/event-stream"}
GOOD = {"content": [{"type": "text", "text": "done"}], "resultType": "complete"}
DEEP = "[" * 700 + "]" * 700
DEEPEST = "[" * 5000 + "]" * 5000

Body = Callable[[Any], Reply]


def message(identity: Any, **more: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": identity, **more})


def in_json(text: str) -> Reply:
    return 200, JSON, text.encode()


def in_events(*texts: str) -> Reply:
    return 200, EVENTS, "".join(f"data: {text}\n\n" for text in texts).encode()


def good(identity: Any) -> str:
    return message(identity, result=GOOD)


async def called(workspace: Workspace, era: str, body: Body) -> tuple[str, str]:
    """What a call comes to that is answered with this body; waiting for its time to run out fails the test."""

    def replies(asked: dict[str, Any]) -> Reply | None:
        return body(asked["id"]) if asked["method"] == "tools/call" else None

    async with HttpServer(era=era, replies=replies) as server:
        host = await workspace.started({"s": {"url": server.url}})
        result = await host.call("mcp__s__echo", {})
        assert host.servers()[0].status == "ready"
        await host.aclose()
    return result.status, result.text


@pytest.mark.parametrize("wrap", [in_json, in_events], ids=["json", "events"])
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda identity: message(identity, result="hello"), "hello"),
        (lambda identity: message(identity, result=None), "(no output)"),
        (lambda identity: message(None, result=GOOD), "done"),
        (lambda identity: message(f"not {identity}", result=GOOD), "done"),
        (lambda identity: json.dumps({"jsonrpc": "2.0", "result": GOOD}), "done"),
        (lambda identity: f"[{message(1, method='x')}, 7, {good(identity)}]", "done"),
        (lambda identity: message(identity, result={"structuredContent": 7}).replace("7", "Infinity"), '"Infinity"'),
        (lambda identity: message(identity, result={"structuredContent": 7}).replace("7", DEEP), DEEP),
        (lambda identity: message(identity, result={"structuredContent": 7}).replace("7", '"\\ud800"'), '"?"'),
    ],
    ids=["text", "null", "id null", "other id", "no id", "batch", "infinity", "deep", "surrogate"],
)
async def test_an_answer_against_the_rules_is_delivered(
    workspace: Workspace, era: str, wrap: Callable[[str], Reply], answer: Callable[[Any], str], text: str
) -> None:
    assert await called(workspace, era, lambda identity: wrap(answer(identity))) == ("completed", text)


@pytest.mark.parametrize("wrap", [in_json, in_events], ids=["json", "events"])
async def test_what_is_nested_too_deeply_costs_only_itself(
    workspace: Workspace, era: str, wrap: Callable[[str], Reply]
) -> None:
    def answer(identity: Any) -> Reply:
        return wrap(message(identity, result=GOOD | {"more": 7}).replace("7", DEEPEST))

    assert await called(workspace, era, answer) == ("completed", "done")


@pytest.mark.parametrize(
    "body",
    [
        lambda identity: in_events("junk", "7", "", "{", good(identity)),
        lambda identity: in_events(message(identity, method=5), good(identity)),
        lambda identity: (200, EVENTS, b"event: tick\ndata: 1\n\nid: 5\ndata:\n\n" + in_events(good(identity))[2]),
        lambda identity: (200, EVENTS, b'data: {"a":"\xff"}\n\n' + in_events(good(identity))[2]),
        lambda identity: (200, {}, good(identity).encode()),
        lambda identity: (200, {"Content-Type": "text/plain"}, good(identity).encode()),
        lambda identity: (200, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(good(identity).encode())),
        lambda identity: (200, {**EVENTS, "Content-Encoding": "gzip"}, gzip.compress(in_events(good(identity))[2])),
    ],
    ids=["junk", "no method", "other events", "utf-8", "no type", "text", "gzip", "gzip events"],
)
async def test_a_good_answer_is_delivered_whatever_is_around_it(workspace: Workspace, era: str, body: Body) -> None:
    assert await called(workspace, era, body) == ("completed", "done")


@pytest.mark.parametrize("wrap", [in_json, in_events], ids=["json", "events"])
@pytest.mark.parametrize("error", ["broken", {"code": 1, "message": "broken"}, {"message": "broken", "data": [DEEP]}])
@pytest.mark.parametrize("known", [True, False], ids=["id", "id null"])
async def test_an_error_against_the_rules_is_told(
    workspace: Workspace, era: str, wrap: Callable[[str], Reply], error: Any, known: bool
) -> None:
    def body(identity: Any) -> Reply:
        return wrap(message(identity if known else None, error=error).replace(f'"{DEEP}"', DEEP))

    status, text = await called(workspace, era, body)
    assert (status, "broken" in text) == ("failed", True)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (lambda identity: (200, {"Content-Type": "text/html"}, b"<h1>Off</h1>"), "text/html: <h1>Off</h1>"),
        (lambda identity: in_json("oops"), "oops"),
        (lambda identity: in_json(""), "is empty"),
        (lambda identity: in_json('{"status": "ok"}'), '{"status": "ok"}'),
        (lambda identity: in_json(good(identity)[:-5]), "cannot be read"),
        (lambda identity: in_events(good(identity)[:-5]), "cannot be read"),
        (lambda identity: in_json(message(identity, result="x" * 3_000)), "more than 2000 bytes"),
        (lambda identity: in_events(message(identity, result="x" * 3_000)), "exceeded the 2000 byte limit"),
    ],
    ids=["html", "text", "empty", "other json", "cut off", "cut off event", "too long", "too long event"],
)
async def test_an_answer_that_cannot_be_read_fails_at_once_and_says_what_came(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, era: str, body: Body, said: str
) -> None:
    monkeypatch.setattr(bodies, "MESSAGE_LIMIT", 2000)
    status, text = await called(workspace, era, body)
    assert (status, said in text) == ("failed", True), text
