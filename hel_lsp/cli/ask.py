"""`hel-lsp ask`: one turn without an editor, for scripts and for the terminal."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from hel_lsp.agent.agent import Agent, Ask
from hel_lsp.cli.compose import Composition
from hel_lsp.cli.terminal import printable, printable_line, settings_of, workspace_folder
from hel_lsp.local.approver import TerminalApprover
from hel_lsp.local.workspace import FileWorkspace
from hel_lsp.lsp.events import turn_result
from hel_lsp.messages import AccessLevel, StopReason, TurnResult
from hel_lsp.ports import EditEvent, Event, NoticeEvent, ToolCallEvent
from hel_lsp.settings import Settings
from hel_lsp.state import state_folder

EXIT_CODES: dict[StopReason, int] = {
    "end_turn": 0,
    "error": 1,
    "max_steps": 3,
    "max_tokens": 3,
    "refusal": 3,
    "cancelled": 130,
}
"""What the process ends with; 2 is for arguments and folders that cannot be used."""


def run_ask(prompt: str, workspace: Path, access: AccessLevel | None, settings: Path | None, *, as_json: bool) -> int:
    """Run one turn and print its answer, or the whole of its result as JSON. Raises ConfigError."""
    chosen = settings_of(settings)
    if access is not None:
        chosen = replace(chosen, access=access)
    result = asyncio.run(_turn(prompt, workspace_folder(workspace), chosen))
    if as_json:
        print(json.dumps(turn_result(result)))
    elif result.text:
        print(printable(result.text, sys.stdout))
    if result.error_message:
        print(f"hel-lsp: {printable(result.error_message, sys.stderr)}", file=sys.stderr)
    elif result.stop_reason != "end_turn":
        print(f"hel-lsp: the turn ended early: {result.stop_reason}.", file=sys.stderr)
    return EXIT_CODES[result.stop_reason]


async def _turn(prompt: str, root: Path, settings: Settings) -> TurnResult:
    workspace = FileWorkspace(root, [state_folder()])
    agent = Agent(workspace, TerminalApprover(), Narration(), Composition(), settings, state_folder())
    try:
        session, number = agent.ask(Ask(prompt, root))
        _cancel_on_signals(session.turns[-1])
        return await agent.wait(session, number)
    finally:
        await agent.aclose()


def _cancel_on_signals(turn: asyncio.Task[TurnResult]) -> None:
    """Have a signal end the turn as a cancel does, so that what it started ends and its result is told."""
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(turn.cancel) and None)


@dataclass(frozen=True, slots=True)
class Narration:
    """Implements the EventSink port: what happens, a line each on stderr; stdout is for the answer alone."""

    def emit(self, session: str, turn: int, event: Event) -> None:
        match event:
            case ToolCallEvent(call, "pending"):
                self._say(f"{call.name} {call.arguments}")
            case ToolCallEvent(call, status) if status not in ("running", "completed"):
                self._say(f"{call.name}: {status}")
            case EditEvent(report):
                self._say(f"{report.uri} +{report.added} -{report.removed} {report.reason}".rstrip())
            case NoticeEvent(message):
                self._say(message)
            case _:
                pass

    def warn(self, message: str) -> None:
        self._say(message)

    def _say(self, text: str) -> None:
        line = printable_line(text, sys.stderr)
        print(line if len(line) <= 200 else line[:199] + "…", file=sys.stderr, flush=True)
