"""A workspace with a model and an MCP server for turns of every kind, over the lives of several server processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psutil

from hel_lsp.demo.scripted_model import Reply, ScriptedModel
from tests.lsp.agent import assert_valid
from tests.lsp.editor import Command, Editor
from tests.lsp.meeting import Meeting
from tests.lsp.personalities import Answer, AnswerPolicy
from tests.mcp.workspace import ECHO, scripted_from

FILES = ("a.txt", "b.txt", "c.txt")
PATIENCE = 60
"""Seconds after which a turn counts as hanging."""


@dataclass(frozen=True)
class Measured:
    """What a server process held at some turn: file handles, resident memory in MB, processes below it.

    The handles are those beside one for each session that the process keeps for itself.
    """

    turn: int
    handles: int
    memory: float
    children: int


class Soak:
    """`texts` is what the user has to see of each file, `turns` what the session has had over all processes."""

    def __init__(self, root: Path, model: ScriptedModel, meeting: Meeting, random: Random) -> None:
        self.root, self.model, self.meeting, self.random = root, model, meeting, random
        self.command_that_waits = meeting.command(root)
        self.editor = Editor()
        self.done = 0
        self.doing = ""
        self.sandboxed = False
        self.session: str | None = None
        self.turns = 0
        self.texts: dict[str, str] = {}
        self.last: list[Any] = []
        """The messages of the newest request, with which the next one has to begin."""
        self._checked = 0
        for name in FILES:
            (root / name).write_text("value = 0\nend\n")
        _declare_server(root / ".hel", meeting)

    # ---------------------------------------------------------------- one process

    async def begin(self, editor: Editor) -> None:
        """Go on with a new process: the session is there with all its turns."""
        self.editor = editor
        self.texts = {name: (self.root / name).read_text() for name in FILES}
        for name in FILES[: self.random.randint(0, len(FILES))]:
            editor.open(self.root / name)
        if self.session is None:
            editor.answers = ["Trust"]
            await editor.command("hel.reloadMcp")
        else:
            assert (await editor.command("hel.resume"))["session"] == self.session
            (listed,) = [one for one in await editor.command("hel.sessions") if one["session"] == self.session]
            assert listed["turns"] == self.turns

    async def play(self, kind: Callable[[Soak], Awaitable[None]]) -> None:
        """One turn, or the few of which this kind consists."""
        self.doing = kind.__name__
        async with asyncio.timeout(PATIENCE):
            await kind(self)
        self.done += 1

    def measure(self) -> Measured:
        process = psutil.Process(self.editor.process.pid)
        opened = [file.path for file in process.open_files()]
        handles = process.num_fds() - sum("sessions" in Path(path).parts for path in opened)
        memory = process.memory_info().rss / 1_000_000
        return Measured(self.done, handles, memory, len(process.children(recursive=True)))

    def fiddle(self) -> None:
        """What a user does between two turns."""
        for buffer in list(self.editor.buffers.values()):
            assert buffer.path is not None
            match self.random.randrange(8):
                case 0 if len(buffer.text) < 100:
                    self.editor.type(buffer, "more\n")
                    self.texts[buffer.path.name] = buffer.text
                case 1:
                    self.editor.save(buffer)
                case 2 if not buffer.dirty:
                    self.editor.close(buffer)
                case _:
                    pass

    # ---------------------------------------------------------------- a turn and its end

    def ask(self, replies: Sequence[Reply], answers: list[Answer] | AnswerPolicy) -> Command:
        """Start a turn for which the model says this, and the user that."""
        del self.model.replies[len(self.model.requests) :]
        self.model.replies += replies
        self.editor.questions.clear()
        self.editor.received.clear()
        self.editor.answers = answers
        self.turns += 1
        prompt = {"prompt": f"prompt {self.done}", "wait": True}
        return self.editor.start_command("hel.ask", prompt, token=f"token {self.done}")

    async def turn(
        self, replies: Sequence[Reply], answers: Sequence[Answer] = (), stop: str = "end_turn", statuses: str = ""
    ) -> dict[str, Any]:
        """A turn that runs to its end; `statuses` are those of its calls, in order."""
        result = await self.ask(replies, list(answers)).result
        await self.check(result)
        assert result["stopReason"] == stop, result
        assert [report["status"] for report in result["toolCalls"]] == statuses.split(), result
        return result

    async def check(self, result: dict[str, Any], *, compacted: bool = False) -> None:
        """What holds after every turn."""
        assert self.session in (None, result["session"])
        self.session = result["session"]
        assert result["turn"] == self.turns
        assert (result["error"] is not None) == (result["stopReason"] == "error")
        assert await self.editor.command("hel.pending") == []
        assert await self.editor.command("hel.cancel") == {"cancelled": False}
        self.check_requests(compacted=compacted)
        for name, text in self.texts.items():
            assert self.shown(name) == text

    def check_requests(self, *, compacted: bool = False) -> None:
        """Each request has a valid history, which begins with that of the one before."""
        model = self.model
        for index in range(self._checked, len(model.requests)):
            assert_valid(model.requests[index])
            messages = model.requests[index]["messages"]
            assert messages[-1]["role"] in ("user", "tool")
            assert compacted or messages[: len(self.last)] == self.last
            self.last = messages
            # Kept any longer, they would fill the memory of the test.
            model.requests[index], model.bodies[index], model.headers[index] = {}, b"", {}
        self._checked = len(model.requests)

    def shown(self, name: str) -> str:
        """What the user sees of a file."""
        buffer = self.editor.buffers.get(self.uri(name))
        return buffer.text if buffer is not None else (self.root / name).read_text()

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()


def _declare_server(folder: Path, meeting: Meeting) -> None:
    """An MCP server `s` whose tools answer, wait for the meeting to end, crash, fail, chatter, and answer at length."""
    steps: dict[str, list[dict[str, Any]]] = {
        "hold": [{"meet": meeting.port}, {"result": {"content": []}}],
        "crash": [{"exit": 3}],
        "error": [{"error": {"code": -32000, "message": "no luck"}}],
        "noisy": [{"line": "this is no JSON"}, {"fill": 5}],
        "large": [{"fill": 60_000}],
    }
    folder.mkdir()
    tools = [{**ECHO, "name": name} for name in ("echo", *steps)]
    server = scripted_from(folder / "scripted.json", tools=tools, calls=steps)
    (folder / "mcp.json").write_text(json.dumps({"servers": {"s": {**server, "alwaysLoad": True}}}))
