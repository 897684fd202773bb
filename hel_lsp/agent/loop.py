"""One turn: a prompt, then requests and tool calls in steps until the model answers without a call.

This is the one place that decides what runs. `prepare` looks and changes nothing, the gate rules, `run` does it. The
history is valid after every step whatever happened in it: each call of a reply has exactly one result.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import takewhile

from hel_lsp.agent.compaction import compact, fill, tokens
from hel_lsp.agent.made import Made
from hel_lsp.agent.session import Session
from hel_lsp.errors import HelError, InvalidArguments, ModelRefused, NotLoaded, PromptTooLong, UnknownTool
from hel_lsp.messages import (
    Approval,
    AssistantMessage,
    CallReport,
    EditOutcome,
    EditReport,
    FileEdit,
    StopReason,
    ToolCall,
    ToolDefinition,
    ToolMessage,
    ToolResult,
    TurnResult,
    Usage,
    UserMessage,
)
from hel_lsp.permissions.gate import Gate
from hel_lsp.ports import (
    EditEvent,
    EndEvent,
    Event,
    EventSink,
    Model,
    ModelReply,
    ModelRequest,
    NoticeEvent,
    Prepared,
    ReasoningDelta,
    ReasoningEvent,
    Retrying,
    StepEvent,
    TextDelta,
    TextEvent,
    ToolCallEvent,
    UsageEvent,
)
from hel_lsp.tools.arguments import history_arguments

logger = logging.getLogger(__name__)

CANCELLED = ToolResult("Cancelled by the user.", "cancelled")

CUT_OFF = "\n[The reply was cut off at the output limit. No tool call in it was run.]"

BROKEN_IN_A_ROW = 3
"""Replies in which calls of one kind may fail the same way, one after another, before the turn ends."""

_OF_TOOLS = re.compile(r"tool|function|schema", re.IGNORECASE)
_NUMBER = re.compile(r"\btools\W{1,2}(\d+)")
"""How providers say that it is a definition that they do not take, and which: `tools.7.custom.input_schema`."""


class RepeatedFailure(HelError):
    """The model makes the same broken call again and again."""

    code = "repeated_failure"


@dataclass
class Turn:
    """Runs one prompt in `session`; everything it reports goes to `sink` and into the result.

    `compact_at` is the number of tokens of a request at which the conversation is compacted.
    """

    session: Session
    number: int
    gate: Gate
    sink: EventSink
    max_steps: int
    compact_at: int
    text: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    reports: list[CallReport] = field(default_factory=list[CallReport])
    made: list[Made] = field(default_factory=list[Made])
    _compaction_failed: bool = False
    _failures: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    async def run(self, begin: Callable[[], Awaitable[Model]], prompt: UserMessage) -> TurnResult:
        """The turn from `prompt` to its end, whatever happens; a cancel of the task ends it with `cancelled`.

        `begin` makes the session ready and gives the model to ask.
        """
        try:
            model = await begin()
            deferred = self.session.toolset.deferred
            news = deferred.news() if deferred is not None else ""
            self.session.add(replace(prompt, text=f"{prompt.text}\n\n{news}") if news else prompt)
            end = _End(await self._steps(model))
        except asyncio.CancelledError:
            end = _End("cancelled")
        except HelError as error:
            end = _End("error", error.code, error.message)
        except Exception:
            # The edge of the turn: a fault of ours ends this turn and not the process, and leaves its trace.
            logger.exception("Turn %d of session %s failed", self.number, self.session.id)
            end = _End("error", "internal_error", "A fault in hel-lsp ended the turn; its log has the details.")
        self._look_again()
        result = self._result(end)
        self._close_history(result.stop_reason)
        self.session.log.write("end", turn=self.number, stop=result.stop_reason, error=result.error_message or None)
        self.session.end_turn(self.number, result.stop_reason)
        self._emit(EndEvent(result))
        return result

    async def _steps(self, model: Model) -> StopReason:
        while self.steps < self.max_steps:
            stop = await self._step(model)
            if stop is not None:
                return stop
        self._emit(NoticeEvent(f"Stopped after {self.max_steps} steps (limits.maxSteps)."))
        return "max_steps"

    async def _step(self, model: Model) -> StopReason | None:
        """One request and its calls; None when there is more to do."""
        self.steps += 1
        self._emit(StepEvent(self.steps))
        reply, tools = await self._answered(model)
        self.text = reply.text
        if reply.finish == "length":
            self.session.add(AssistantMessage(reply.text + CUT_OFF))
            return "max_tokens"
        calls = reply.tool_calls if reply.finish == "stop" else ()
        if reply.text or calls:
            written = tuple(ToolCall(call.id, call.name, history_arguments(call)) for call in calls)
            self.session.add(AssistantMessage(reply.text, written, reply.reasoning, reply.signed_reasoning))
        if reply.usage.input_tokens:
            counted = reply.usage.input_tokens + reply.usage.output_tokens
            self.session.counted = counted, len(self.session.history)
        if reply.finish == "refusal":
            return "refusal"
        if not calls:
            return "end_turn"
        await self._calls(calls, [tool.name for tool in tools])
        return None

    async def _answered(self, model: Model) -> tuple[ModelReply, Sequence[ToolDefinition]]:
        """One reply, and the tools that its request offered.

        Definitions that are new to the model's provider are left out where it refuses them.
        """
        deferred = self.session.toolset.deferred
        tools = self.session.toolset.definitions()
        if deferred is None:
            return await self._reply(model, tools), tools
        left_out: dict[str, str] = {}
        while True:
            try:
                reply = await self._reply(model, tools)
            except ModelRefused as error:
                blamed = _blamed(error, tools, deferred.untried(model))
                if self.text or not blamed:
                    raise
                left_out |= dict.fromkeys(blamed, error.message)
                tools = [tool for tool in tools if tool.name not in blamed]
            else:
                deferred.sent(model, tools, left_out)
                for notice in deferred.notices():
                    self._emit(NoticeEvent(notice))
                return reply, tools

    async def _reply(self, model: Model, tools: Sequence[ToolDefinition]) -> ModelReply:
        """One reply. The conversation is compacted before it where it is due, or where the provider refused it."""
        full = fill(self.session, tools) >= self.compact_at
        # Where the system text and the tools alone are that long, there is nothing to be gained.
        if full and tokens(self.session.history) > self.compact_at // 10:
            await self._compact(model, tools)
        try:
            return await self._ask(model, ModelRequest((self.session.system, *self.session.history), tools))
        except PromptTooLong:
            if not await self._compact(model, tools):
                raise
            return await self._ask(model, ModelRequest((self.session.system, *self.session.history), tools))

    async def _compact(self, model: Model, tools: Sequence[ToolDefinition]) -> bool:
        """Make the conversation smaller; a failed attempt is not repeated within the turn."""
        if self._compaction_failed:
            return False
        done = await compact(self.session, model, tools, min(self.compact_at, fill(self.session, tools)) // 2)
        self.usage += done.usage
        self._compaction_failed = bool(done.reason)
        became = (
            f"left as it is: {done.reason}" if done.reason else f"compacted from {done.before} to {done.after} tokens"
        )
        self._emit(NoticeEvent(f"The conversation was {became}."))
        return not done.reason

    async def _ask(self, model: Model, request: ModelRequest) -> ModelReply:
        """Stream one reply, and keep what was shown of it in `text` however it ends."""
        began = time.monotonic()
        reply: ModelReply | None = None
        shown: list[str] = []
        try:
            async with aclosing(model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, ModelReply):
                        reply = event
                    else:
                        self._show(event, shown)
        finally:
            self.text = "".join(shown)
        assert reply is not None, "a model's stream ends with a ModelReply or an error"
        self.usage += reply.usage
        self.session.log.write(
            "request",
            turn=self.number,
            step=self.steps,
            messages=len(request.messages),
            bytes=reply.request_bytes,
            tools=[tool.name for tool in request.tools],
            finish=reply.finish,
            seconds=round(time.monotonic() - began, 3),
            input_tokens=reply.usage.input_tokens,
            output_tokens=reply.usage.output_tokens,
        )
        self._emit(UsageEvent(self.usage))
        return reply

    def _show(self, event: TextDelta | ReasoningDelta | Retrying, shown: list[str]) -> None:
        match event:
            case TextDelta(text):
                shown.append(text)
                self._emit(TextEvent(text))
            case ReasoningDelta(text):
                self._emit(ReasoningEvent(text))
            case Retrying(reason, delay):
                self._emit(NoticeEvent(f"{reason} Trying again in {delay:.0f} s."))

    # -------------------------------------------------------------- calls

    async def _calls(self, calls: Sequence[ToolCall], offered: Collection[str]) -> None:
        """Run the calls of one reply and put a result for each into the history, also when cancelled."""
        results: dict[int, tuple[ToolResult, Approval | None]] = {}
        kinds = [""] * len(calls)
        recorded = 0
        try:
            for group in self._groups(calls):
                running = (self._call(index, calls[index], offered, results, kinds) for index in group)
                for outcome in await asyncio.gather(*running, return_exceptions=True):
                    if outcome is not None:
                        raise outcome
                # At once, and not with the last call: what is known of a call must not be lost with the process.
                self._record(calls, results, range(recorded, group[-1] + 1))
                recorded = group[-1] + 1
        finally:
            self._record(calls, results, range(recorded, len(calls)))
        self._stop_repeating([(call.name, kind) for call, kind in zip(calls, kinds, strict=True)])

    def _record(
        self, calls: Sequence[ToolCall], results: dict[int, tuple[ToolResult, Approval | None]], indices: Iterable[int]
    ) -> None:
        for index in indices:
            call = calls[index]
            if index not in results:
                results[index] = self._finish(call, CANCELLED, None), None
            result, decision = results[index]
            self.reports.append(CallReport(call.name, result.status, decision))
            self.session.add(ToolMessage(call.id, result.text, result.loaded))

    def _groups(self, calls: Sequence[ToolCall]) -> list[list[int]]:
        """Neighbouring reads run together; whatever changes something runs alone, in the order asked."""
        groups: list[list[int]] = []
        reading = False
        for index, call in enumerate(calls):
            reads = self.session.toolset.access(call.name) == "read"
            if reads and reading:
                groups[-1].append(index)
            else:
                groups.append([index])
            reading = reads
        return groups

    async def _call(
        self,
        index: int,
        call: ToolCall,
        offered: Collection[str],
        results: dict[int, tuple[ToolResult, Approval | None]],
        kinds: list[str],
    ) -> None:
        decision: Approval | None = None
        prepared: Prepared | None = None
        running = False
        kind, fault = "", ""
        self._emit(ToolCallEvent(call, "pending"))
        try:
            prepared = await self.session.toolset.prepare(call, offered)
            ruling = await self.gate.rule(call, prepared)
            decision, running = ruling.decision, ruling.allowed
            if running:
                self._emit(ToolCallEvent(call, "running", decision))
                result = await prepared.run()
            else:
                result = ToolResult(ruling.reason, "rejected")
        except (OSError, ValueError) as error:
            # What the system refuses (a name too long, a full disk) fails this call and not the turn.
            logger.warning("%s failed", call.name, exc_info=error)
            kind = call.arguments
            result = ToolResult(f"{call.name} failed: {error}", "failed")
        except HelError as error:
            fault = type(error).__name__
            kind = fault if isinstance(error, InvalidArguments | UnknownTool) else call.arguments
            loaded = error.loaded if isinstance(error, NotLoaded) else ()
            result = ToolResult(error.message, "failed", loaded=loaded)
        kinds[index] = kind
        if prepared is not None and running and not _is_cancelled():
            try:
                result = await self.gate.review(call, prepared, result)
            except asyncio.CancelledError:
                # What the call did is done, whoever was still looking at its result.
                results[index] = self._finish(call, result, decision), decision
                raise
        results[index] = self._finish(call, result, decision, fault), decision

    def _finish(self, call: ToolCall, result: ToolResult, decision: Approval | None, fault: str = "") -> ToolResult:
        """Report a call's end, and give back its result in the size that the conversation can bear.

        `fault` names the error that it failed with, for the run log.
        """
        self._emit(ToolCallEvent(call, result.status, decision))
        if result.edit is not None:
            self._note_edit(result.edit)
        self.session.log.write(
            "call",
            turn=self.number,
            tool=call.name,
            arguments=call.arguments,
            status=result.status,
            decision=decision,
            fault=fault or None,
        )
        return replace(result, text=self.session.spill.shorten(result.text, is_part=result.is_part))

    def _note_edit(self, outcome: EditOutcome) -> None:
        report, edit = outcome.report, outcome.edit
        self._tell_late(self.session.look_again(edit.path, edit.before, over=True))
        made = Made(self.session.id, self.number, edit.path, report, edit)
        self.made.append(made)
        if report.applied is not False or outcome.may_come:
            self.session.made.add(made)
        self._tell_edit(report, edit)

    def _look_again(self) -> None:
        """Edits that were not known to have arrived may have done so by now."""
        for path in dict.fromkeys(made.path for made in self.made if not made.report.applied):
            self._tell_late(self.session.look_again(path, self.session.workspace.newest(path)))

    def _tell_late(self, late: Iterable[Made]) -> None:
        for made in late:
            if made in self.made and made.edit is not None:
                self._tell_edit(made.report, made.edit)

    def _tell_edit(self, report: EditReport, edit: FileEdit) -> None:
        """What became of an edit; in the run log with the hashes of the text before and after instead of the text."""
        self._emit(EditEvent(report))
        self.session.log.write(
            "edit",
            turn=self.number,
            uri=report.uri,
            applied=report.applied,
            before=None if edit.before is None else _hash(edit.before),
            after=_hash(edit.after),
            reason=report.reason or None,
        )

    def _stop_repeating(self, calls: Sequence[tuple[str, str]]) -> None:
        """Take note of a reply's calls, each with the kind of its failure, empty where it did not fail.

        Of one kind are failures of the same tool with the same fault, or with the very same arguments. They count once
        a reply: the model learns of them when it has them all.
        """
        broken = list(takewhile(lambda call: call[1], reversed(calls)))
        before = self._failures if len(broken) == len(calls) else {}
        self._failures = {call: before.get(call, 0) + 1 for call in broken}
        for (tool, _), times in self._failures.items():
            if times >= BROKEN_IN_A_ROW:
                raise RepeatedFailure(f"The model called {tool} {times} times in a row in the same broken way.")

    def _close_history(self, stop: StopReason) -> None:
        """End the turn with the assistant's word: some providers refuse a user's message after anything else."""
        if self.session.history and not isinstance(self.session.history[-1], AssistantMessage):
            self.session.add(AssistantMessage(f"{self.text}\n[The turn ended here: {stop}.]".strip()))

    # -------------------------------------------------------------- reporting

    def _emit(self, event: Event) -> None:
        self.sink.emit(self.session.id, self.number, event)

    def _result(self, end: _End) -> TurnResult:
        edits = tuple(made.report for made in self.made)
        return TurnResult(
            session=self.session.id,
            turn=self.number,
            stop_reason=end.stop,
            text=self.text,
            steps=self.steps,
            tool_calls=tuple(self.reports),
            edits=edits,
            unsaved=self.session.still_unsaved(edits),
            usage=self.usage,
            error_code=end.code,
            error_message=end.message,
        )


@dataclass(frozen=True, slots=True)
class _End:
    stop: StopReason
    code: str | None = None
    message: str = ""


def _blamed(error: ModelRefused, tools: Sequence[ToolDefinition], untried: Collection[str]) -> list[str]:
    """Those of the untried tools that a request may have been refused for: which are named, else all of them."""
    numbers = {int(number) for number in _NUMBER.findall(error.message)}
    words = set(re.findall(r"[\w-]+", error.message))
    new = [(number, tool.name) for number, tool in enumerate(tools) if tool.name in untried]
    named = [name for number, name in new if number in numbers or name in words]
    if isinstance(error, PromptTooLong) or _OF_TOOLS.search(error.message):
        return named or [name for _, name in new]
    return named


def _is_cancelled() -> bool:
    """Whether the current task was cancelled while something that had to be seen to its end went on."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
