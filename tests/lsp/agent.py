"""An editor whose server asks a scripted model: what the tests of whole turns start from."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hel_lsp.demo.scripted_model import Reply, ScriptedModel
from tests.lsp.editor import Editor
from tests.lsp.personalities import VSCODE, Personality


@asynccontextmanager
async def agent(
    workspace: Path,
    replies: Iterable[Reply] = (),
    personality: Personality = VSCODE,
    *,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[tuple[Editor, ScriptedModel]]:
    """An editor on `workspace` and the model that its server asks; the state folder lies beside the workspace."""
    async with ScriptedModel(replies) as model:
        variables = {
            "HEL_BASE_URL": model.base_url,
            "HEL_MODEL": "scripted",
            "HEL_STATE_DIR": str(workspace.parent / f"{workspace.name}-state"),
            **(environment or {}),
        }
        # Machines that run tests are busy: a server may need longer to start than a user would wait for it.
        patient = {**(options or {}), "mcp": {"startWait": 60, **dict((options or {}).get("mcp", {}))}}
        async with Editor.started(
            personality, workspace=workspace, environment=variables, options=patient, **more
        ) as editor:
            yield editor, model


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """A reply with one tool call."""
    return calls((name, arguments))


def calls(*wanted: tuple[str, Any]) -> dict[str, Any]:
    """A reply with several tool calls; arguments that are a string are sent as they are."""
    return {
        "tool_calls": [
            {"id": f"call_{number}", "name": name, "arguments": arguments}
            for number, (name, arguments) in enumerate(wanted, 1)
        ]
    }


def say(text: str) -> dict[str, Any]:
    """A reply that ends the turn."""
    return {"text": text}


def tool_names(request: Mapping[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools", [])]


def tool_results(request: Mapping[str, Any]) -> list[str]:
    """The texts of all tool results in a request, in order."""
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


def records(path: Path) -> list[dict[str, Any]]:
    """A JSON-lines file; empty when there is none."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def assert_valid(request: Mapping[str, Any]) -> None:
    """Roles take turns, a prompt comes after the assistant's word, and each call has its result right after it."""
    open_calls: list[str] = []
    last = "system"
    for message in request["messages"][1:]:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls
            assert message["role"] != last
            assert (last, message["role"]) != ("tool", "user")
        last = message["role"]
        open_calls += [made["id"] for made in message.get("tool_calls", [])]
    assert not open_calls
