"""What happens in a turn, shown: `hel/event` for plugins, work-done progress and the answer for everyone else."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types

from hel_lsp.errors import EditorError
from hel_lsp.lsp.client import ClientFacts, Editor
from hel_lsp.lsp.uris import path_to_uri
from hel_lsp.messages import EditReport, TurnResult, Usage
from hel_lsp.ports import (
    EditEvent,
    EndEvent,
    Event,
    NoticeEvent,
    ReasoningEvent,
    StepEvent,
    TextEvent,
    ToolCallEvent,
    UsageEvent,
)
from hel_lsp.settings import Settings
from hel_lsp.state import private_folder

MESSAGE_LIMIT = 300
"""Characters up to which `answer: auto` shows a message."""

REPLY_TIME = 10.0
"""Seconds that an editor gets to make a progress or to show a document."""


@dataclass(eq=False)
class EditorEvents:
    """Implements the EventSink port. `spawn` runs what must not hold up the turn."""

    editor: Editor
    folder: Path
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    settings: Callable[[], Settings]
    facts: ClientFacts = field(default_factory=ClientFacts)
    _progress: dict[tuple[str, int], Progress] = field(default_factory=dict[tuple[str, int], "Progress"])

    def began(self, session: str, turn: int, title: str, token: int | str | None) -> None:
        """A turn starts: show its progress, under the client's own `token` where it gave one."""
        if token is not None or self.facts.shows_progress:
            self._progress[session, turn] = Progress(self.editor, self.spawn, title, token)

    def turn_of(self, token: int | str) -> str | None:
        """The session whose progress has this token."""
        return next((session for (session, _), shown in self._progress.items() if shown.token == token), None)

    def waiting(self, session: str, message: str | None) -> None:
        """A question of `session` is out, or has come back."""
        for (owner, _), shown in self._progress.items():
            if owner == session:
                shown.waiting(message)

    def emit(self, session: str, turn: int, event: Event) -> None:
        shown = self._progress.get((session, turn))
        if shown is not None:
            shown.report(event)
        if self.facts.events:
            self.editor.notify("hel/event", {"session": session, "turn": turn, **_event(event)})
        if isinstance(event, EndEvent):
            self._progress.pop((session, turn), None)
            if not self.facts.events:
                self.spawn(self._answer(event.result))

    def warn(self, message: str) -> None:
        shown = types.ShowMessageParams(types.MessageType.Warning, f"hel: {message}")
        self.editor.notify(types.WINDOW_SHOW_MESSAGE, shown)

    async def _answer(self, result: TurnResult) -> None:
        """The end of a turn, for a client without a transcript."""
        text = _answer_text(result)
        how = self.settings().answer
        if how == "auto":
            how = "message" if len(text) <= MESSAGE_LIMIT or not self.facts.shows_documents else "document"
        if result.stop_reason == "error" or (how == "message" and text):
            kind = types.MessageType.Error if result.stop_reason == "error" else types.MessageType.Info
            self.editor.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(type=kind, message=text))
        elif how == "document" and text:
            file = private_folder(self.folder / "answers") / f"{result.session}-{result.turn}.md"
            file.touch(mode=0o600)
            file.write_text(text + "\n", encoding="utf-8", errors="surrogateescape")
            params = types.ShowDocumentParams(uri=path_to_uri(file), take_focus=False)
            try:
                await self.editor.request(types.WINDOW_SHOW_DOCUMENT, params, REPLY_TIME)
            except EditorError:
                message = types.ShowMessageParams(types.MessageType.Info, f"The answer is in {file}")
                self.editor.notify(types.WINDOW_SHOW_MESSAGE, message)


class Progress:
    """One turn's work-done progress. Nothing is reported before the editor has agreed to a token of ours."""

    def __init__(
        self,
        editor: Editor,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        title: str,
        token: int | str | None,
    ) -> None:
        self.token: int | str = token if token is not None else f"hel-{uuid.uuid4()}"
        self._editor = editor
        self._message = "starting"
        self._step = ""
        self._ready = asyncio.Event()
        self._ended = False
        self._title = title
        if token is None:
            spawn(self._create())
        else:
            self._begin()

    async def _create(self) -> None:
        params = types.WorkDoneProgressCreateParams(token=self.token)
        try:
            await self._editor.request(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params, REPLY_TIME)
        except EditorError:
            return
        if not self._ended:
            self._begin()

    def _begin(self) -> None:
        self._ready.set()
        self._send(types.WorkDoneProgressBegin(title=self._title, message=self._message, cancellable=True))

    def waiting(self, message: str | None) -> None:
        self._say(f"waiting for your answer: {message}" if message else self._step)

    def report(self, event: Event) -> None:
        match event:
            case StepEvent(step):
                self._step = f"step {step}"
                self._say(self._step)
            case ToolCallEvent(call, "running"):
                self._say(f"{self._step}: {call.name}")
            case NoticeEvent(message):
                self._say(message)
            case EndEvent(result):
                self._ended = True
                if self._ready.is_set():
                    self._send(types.WorkDoneProgressEnd(message=result.stop_reason.replace("_", " ")))
            case _:
                pass

    def _say(self, message: str) -> None:
        self._message = message
        if self._ready.is_set() and not self._ended:
            self._send(types.WorkDoneProgressReport(message=message, cancellable=True))

    def _send(self, value: Any) -> None:
        self._editor.notify(types.PROGRESS, types.ProgressParams(token=self.token, value=value))


# ------------------------------------------------------------------ shapes of the protocol


def turn_result(result: TurnResult) -> dict[str, Any]:
    """`TurnResult` as the wire has it."""
    error = {"code": result.error_code, "message": result.error_message} if result.error_code else None
    return {
        "session": result.session,
        "turn": result.turn,
        "stopReason": result.stop_reason,
        "text": result.text,
        "steps": result.steps,
        "toolCalls": [asdict(report) for report in result.tool_calls],
        "edits": [_edit(report) for report in result.edits],
        "unsaved": list(result.unsaved),
        "usage": _usage(result.usage),
        "error": error,
    }


def _event(event: Event) -> Mapping[str, Any]:
    match event:
        case TextEvent(delta):
            return {"kind": "text", "delta": delta}
        case ReasoningEvent(delta):
            return {"kind": "reasoning", "delta": delta}
        case ToolCallEvent(call, status):
            arguments = _arguments(call.arguments)
            return {"kind": "toolCall", "id": call.id, "name": call.name, "arguments": arguments, "status": status}
        case EditEvent(report):
            return {"kind": "edit", **_edit(report), "applied": report.applied}
        case UsageEvent(usage):
            return {"kind": "usage", **_usage(usage)}
        case StepEvent(step):
            return {"kind": "step", "step": step}
        case NoticeEvent(message):
            return {"kind": "notice", "message": message}
        case EndEvent(result):
            return {"kind": "end", "result": turn_result(result)}


def _arguments(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _edit(report: EditReport) -> dict[str, Any]:
    shape = {"uri": report.uri, "applied": report.applied is True, "added": report.added, "removed": report.removed}
    return {**shape, "reason": report.reason} if report.reason else shape


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedTokens": usage.cached_tokens,
        "requests": usage.requests,
    }


def _answer_text(result: TurnResult) -> str:
    if result.stop_reason == "error":
        return f"hel: {result.error_message}"
    if result.stop_reason == "cancelled":
        return "hel: cancelled."
    stopped = {"max_steps": "Stopped at limits.maxSteps.", "max_tokens": "The reply was cut off at its token limit."}
    parts = [result.text, stopped.get(result.stop_reason, "")]
    if result.unsaved:
        parts.append("Unsaved: " + ", ".join(uri.rsplit("/", 1)[-1] for uri in result.unsaved))
    return "\n\n".join(part for part in parts if part)
