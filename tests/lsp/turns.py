"""Whole turns at the wire: a test editor, the real server, and a scripted model over HTTP.

async with at_work(tmp_path, NEOVIM) as work:
    buffer = work.open("a.txt", b"one\\n")
    turn = await work.turn(replace("a.txt", "one", "two"))
    assert turn.edits[0]["applied"] and work.saved(buffer) == b"two\\n"
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hel_lsp.demo.scripted_model import ScriptedModel
from tests.lsp.agent import agent
from tests.lsp.editor import Buffer, Command, Editor
from tests.lsp.personalities import VSCODE, Personality

Call = Mapping[str, Any]


def call(name: str, **arguments: Any) -> Call:
    return {"name": name, "arguments": arguments}


def replace(path: str | Path, search: str, replace: str) -> Call:
    return call("search_replace", path=str(path), search=search, replace=replace)


def write(path: str | Path, content: str) -> Call:
    return call("write_file", path=str(path), content=content)


def read(path: str | Path) -> Call:
    return call("read_file", path=str(path))


@dataclass(frozen=True)
class Turn:
    """How a turn ended, and what the model was told about its calls."""

    result: Mapping[str, Any]
    told: Sequence[str]

    @property
    def edits(self) -> Sequence[Mapping[str, Any]]:
        return self.result["edits"]

    @property
    def statuses(self) -> Sequence[str]:
        return [made["status"] for made in self.result["toolCalls"]]

    @property
    def unsaved(self) -> Sequence[str]:
        return self.result["unsaved"]


@dataclass(eq=False)
class Work:
    editor: Editor
    model: ScriptedModel
    folder: Path

    async def turn(self, *replies: Call | Sequence[Call], **more: Any) -> Turn:
        """Ask, let the model make these calls, one reply each (or several in a list), and then say "done"."""
        self.script(*replies)
        return await self.end_of(self.ask(wait=True, **more))

    def script(self, *replies: Call | Sequence[Call]) -> None:
        for reply in replies:
            calls = [reply] if isinstance(reply, Mapping) else list(reply)
            named = [{**made, "id": f"call_{len(self.model.replies)}_{number}"} for number, made in enumerate(calls)]
            self.model.replies.append({"tool_calls": named})
        self.model.replies.append({"text": "done"})

    def ask(self, **more: Any) -> Command:
        return self.editor.start_command("hel.ask", {"prompt": "go on", **more})

    async def end_of(self, asked: Command) -> Turn:
        result = await asked.result
        return Turn(result, self.told())

    def told(self) -> list[str]:
        """What the last request says about the calls since the user's last message."""
        messages = self.model.requests[-1]["messages"]
        last = max(number for number, message in enumerate(messages) if message["role"] == "user")
        return [message["content"] for message in messages[last:] if message["role"] == "tool"]

    # ---------------------------------------------------------------- files

    def file(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def open(self, name: str, content: bytes) -> Buffer:
        """A file that the editor has open."""
        return self.editor.open(self.file(name, content))

    def saved(self, where: Buffer | Path) -> bytes:
        """The bytes of a file after a save in the editor."""
        buffer = where if isinstance(where, Buffer) else self.editor.buffer(where)
        self.editor.save(buffer)
        assert buffer.path is not None
        return buffer.path.read_bytes()


@asynccontextmanager
async def at_work(
    scratch: Path, personality: Personality = VSCODE, *, access: str = "auto", **more: Any
) -> AsyncIterator[Work]:
    """An editor with an empty workspace; edits need no approval unless `access` says so."""
    folder = scratch.resolve() / "workspace"
    folder.mkdir()
    async with agent(folder, [], personality, options={"access": access}, **more) as (editor, model):
        yield Work(editor, model, folder)
