"""Questions to the person at the terminal; where there is none, every question is a no."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

from hel_lsp.permissions.question import lines, spelled
from hel_lsp.platforms import forget_typed
from hel_lsp.ports import Question


@dataclass(eq=False)
class TerminalApprover:
    """Implements the Approver port. Questions go to `output`, answers come from `source`, both by default a terminal's.

    Only the number of an action chooses it; anything else, and the end of the input, is a no.
    """

    source: TextIO = field(default_factory=lambda: sys.stdin)
    output: TextIO = field(default_factory=lambda: sys.stderr)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, question: Question) -> str | None:
        async with self._turn:
            if not (self.source.isatty() and self.output.isatty()):
                self._say(f"\n? {_indented(question.message)}")
                self._say("  There is no terminal to ask in, so the answer is no.")
                return None
            if question.detail:
                self._say("\n" + "\n".join(spelled(line) for line in question.detail.split("\n")))
            forget_typed(self.source.fileno())  # it was meant for something else than this question
            self._say(shown(question.message, question.actions))
            self.output.write("  > ")
            self.output.flush()
            return chosen(await read_line(self.source), question.actions)

    async def open(self, url: str) -> bool:
        self._say(f"\n  Open this page in your browser: {spelled(url)}")
        return self.output.isatty()

    def _say(self, text: str) -> None:
        print(text, file=self.output, flush=True)


def shown(question: str, actions: Sequence[str]) -> str:
    """A question and its numbered actions as a terminal shows them."""
    numbered = "   ".join(f"[{number}] {spelled(title)}" for number, title in enumerate(actions, 1))
    return f"\n? {_indented(question)}\n  {numbered}"


async def read_line(source: TextIO) -> str:
    """The next line that is typed, "" at the end of the input.

    It is read on a thread that keeps neither a cancelled caller waiting nor the process from ending, and past the
    buffer of `source`, whose lock would be held at the end of the process.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def answer(text: str) -> None:
        if not line.done():
            line.set_result(text)

    def read() -> None:
        try:
            text = os.read(source.fileno(), 4096).decode(errors="replace")
        except OSError:  # the terminal is gone
            text = ""
        with contextlib.suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(answer, text)

    threading.Thread(target=read, daemon=True).start()
    return await line


def chosen(answer: str, actions: Sequence[str]) -> str | None:
    """The action whose number was typed."""
    number = answer.strip()
    if number.isascii() and number.isdigit() and 0 < int(number[:6]) <= len(actions):
        return actions[int(number[:6]) - 1]
    return None


def _indented(message: str) -> str:
    return "\n    ".join(spelled(line) for line in lines(message))
