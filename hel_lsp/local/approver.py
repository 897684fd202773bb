"""Questions to the person at the terminal; where there is none, every question is a no."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import dataclass, field
from typing import TextIO

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
            self._say(f"\n? {question.message.replace(' ⏎ ', chr(10) + '    ')}")
            if not (self.source.isatty() and self.output.isatty()):
                self._say("  There is no terminal to ask in, so the answer is no.")
                return None
            if question.detail:
                self._say(question.detail)
            self._say("  " + "   ".join(f"[{number}] {title}" for number, title in enumerate(question.actions, 1)))
            self.output.write("  > ")
            self.output.flush()
            chosen = (await self._line()).strip()
        if chosen.isascii() and chosen.isdigit() and 0 < int(chosen) <= len(question.actions):
            return question.actions[int(chosen) - 1]
        return None

    async def open(self, url: str) -> bool:
        self._say(f"\n  Open this page in your browser: {url}")
        return self.output.isatty()

    async def _line(self) -> str:
        """The next line, read on a thread that does not keep the process from ending."""
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            text = self.source.readline()
            if not loop.is_closed():
                loop.call_soon_threadsafe(lambda: None if line.done() else line.set_result(text))

        threading.Thread(target=read, daemon=True).start()
        return await line

    def _say(self, text: str) -> None:
        print(_printable(text), file=self.output, flush=True)


def _printable(text: str) -> str:
    """The text with control characters spelled out: none of them may move the cursor over what is asked."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1] for character in text
    )
