"""Plays the demo and tells it, step by step, on standard output."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from hel_lsp.demo import task
from hel_lsp.demo.editor import DemoEditor, answer_in_terminal
from hel_lsp.demo.scripted_model import ScriptedModel
from hel_lsp.mcp.text import harmless
from hel_lsp.permissions.question import lines

CONSENT = ("Trust", "Allow once")
"""What the demo answers by itself where nobody is at the terminal."""


async def tell(*, live: bool) -> int:
    """Run the whole task; 0 when the turn came to its end, whatever was answered to its questions."""
    async with AsyncExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hel-demo-"))).resolve()
        folder = scratch / "workspace"
        folder.mkdir()
        record = scratch / "inventory.jsonl"
        task.lay_out(folder, record)
        environment = {"HEL_STATE_DIR": str(scratch / "state")}
        model: ScriptedModel | None = None
        if not live:
            model = await stack.enter_async_context(ScriptedModel(task.replies()))
            environment |= {"HEL_BASE_URL": model.base_url, "HEL_MODEL": "scripted"}
        _introduce(folder, model)
        person = sys.stdin.isatty() and sys.stdout.isatty()
        if not person:
            print("\nThis is no terminal, so the demo answers the questions by itself: yes to each.")
        narrator = Narrator(model)
        editor = DemoEditor(answer_in_terminal if person else _consent, narrator.hear)
        await editor.start(folder, environment)
        try:
            editor.open(folder / "config.ini")
            result = await editor.command("hel.ask", {"prompt": task.PROMPT, "wait": True})
        finally:
            await editor.stop()
        _conclude(editor.text, narrator, _lines(record), result)
        return 0 if result["stopReason"] == "end_turn" else 1


def _introduce(folder: Path, model: ScriptedModel | None) -> None:
    if model is not None:
        print("A scripted model stands in for a real one, over HTTP on loopback. All else is real: the language")
        print("server and the MCP server are processes of their own, and the edit goes through LSP.")
    else:
        print("This run asks the configured model.")
    print(f"\nWorkspace {folder}: config.ini, and the MCP server `inventory` in .hel/mcp.json\n")
    print(_indented(task.CONFIG))
    print(f"\n:HelAsk {task.PROMPT}")


async def _consent(message: str, actions: Sequence[str]) -> str | None:
    answer = next((title for title in CONSENT if title in actions), None)
    print("\n? " + "\n    ".join(lines(message)))
    print(f"  [{'] ['.join(actions)}]  →  {answer}")
    return answer


class Narrator:
    """Tells events as they come, and counts what was sent to a scripted model."""

    def __init__(self, model: ScriptedModel | None) -> None:
        self._model = model
        self._told = 0
        self._streaming = False

    def hear(self, event: Mapping[str, Any]) -> None:
        kind = event["kind"]
        self._tell_requests()
        if kind == "text":
            if not self._streaming:
                print("\n  model: ", end="")
            print(harmless(event["delta"]), end="", flush=True)
        elif self._streaming:
            print()
        self._streaming = kind == "text"
        if kind == "toolCall" and event["status"] == "pending":
            print(f"\n  call   {event['name']} {json.dumps(event['arguments'], ensure_ascii=False)}")
        elif kind == "toolCall" and event["status"] != "running":
            print(f"         {event['status']}")
        elif kind == "edit":
            print(f"         edit +{event['added']} −{event['removed']}, applied: {event['applied']}")
        elif kind == "notice":
            print(f"  note   {harmless(event['message'])}")

    def _tell_requests(self) -> None:
        if self._model is None:
            return
        for number, request in enumerate(self._model.requests[self._told :], self._told + 1):
            names = ", ".join(tool["function"]["name"] for tool in request.get("tools", []))
            size = len(self._model.bodies[number - 1])
            print(f"\nRequest {number} to the model, {size} bytes. Its tools: {names}")
        self._told = len(self._model.requests)

    def definitions(self) -> tuple[int, int] | None:
        """Bytes of MCP tool definitions in all requests, and what they would have been without deferral."""
        if self._model is None or not self._model.requests:
            return None
        sizes = [_mcp_bytes(request.get("tools", [])) for request in self._model.requests]
        return sum(sizes), max(sizes) * len(sizes)


def _mcp_bytes(tools: Iterable[Mapping[str, Any]]) -> int:
    return sum(len(json.dumps(tool)) for tool in tools if tool["function"]["name"].startswith("mcp__"))


def _conclude(text: str, narrator: Narrator, calls: Sequence[str], result: Any) -> None:
    before, after = task.CONFIG.splitlines(), text.splitlines()
    print("\nThe server's own record of its calls:")
    print(_indented("\n".join(calls) or "none"))
    print("\nconfig.ini before and after, in the editor's buffer (not saved; one undo away):\n")
    for old, new in zip(before, after, strict=False):
        print(f"    {old:<24}{'→' if old != new else ' '} {new}")
    definitions = narrator.definitions()
    if definitions is not None:
        sent, undeferred = definitions
        print(f"\nMCP tool definitions: {sent} bytes sent in all requests, {undeferred} without deferred loading.")
        print("(The inventory has two small tools. With the tools of 22 common servers it is 1.4 MB a request.)")
    outcome = "as asked" if text == task.EXPECTED else "not what was asked for"
    if result["error"] is not None:
        print(f"\n{harmless(result['error']['message'])}")
    print(f"\nThe turn ended ({result['stopReason']}); config.ini is {outcome}.")


def _lines(record: Path) -> list[str]:
    return record.read_text(encoding="utf-8").splitlines() if record.exists() else []


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
