"""The vocabulary that every room shares: what a model says, what a tool answers, what a turn came to.

None of these are wire types: `models/` turns them into requests, `lsp/` into the shapes of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Access = Literal["read", "edit", "execute"]
"""What a tool does to the world."""

AccessLevel = Literal["read-only", "confirm", "auto"]
"""What the user lets the agent do unasked."""

Approval = Literal["allow_once", "allow_session", "allow_always", "reject"]

CallStatus = Literal["completed", "failed", "rejected", "cancelled"]

StopReason = Literal["end_turn", "cancelled", "max_steps", "max_tokens", "refusal", "error"]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it: `arguments` is its text, not yet known to be JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to, as the model reads it; `loaded` are tools whose definitions come with the next request.

    `is_part` where the tool itself keeps to the limit of a result, and says how to get the rest.
    """

    text: str
    status: CallStatus = "completed"
    edit: EditOutcome | None = None
    loaded: tuple[str, ...] = ()
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class SystemMessage:
    text: str


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the user said: `text` with its surroundings, as the model gets it, and `prompt` as it was written."""

    text: str
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What the model said. `signed_reasoning` is for its provider alone, and goes back as it came."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    signed_reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of the call with `call_id`, in the history, and the tools that it loaded."""

    call_id: str
    text: str
    loaded: tuple[str, ...] = ()


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; sums over requests by `+`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.requests + other.requests,
        )


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One contiguous replacement in one file: characters `start` to `end` of `before` become `text`.

    `before` is None for a file that must not exist yet. Offsets count Unicode characters.
    """

    path: Path
    before: str | None
    start: int
    end: int
    text: str

    @property
    def after(self) -> str:
        """The whole text once the edit has been applied."""
        if self.before is None:
            return self.text
        return self.before[: self.start] + self.text + self.before[self.end :]


@dataclass(frozen=True, slots=True)
class EditReport:
    """What became of an edit. `applied` is None where the editor's answer and its text do not tell."""

    uri: str
    applied: bool | None
    added: int
    removed: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """`report.applied` says what is known; `edit` is what was sent, `text` the document's real text now.

    `may_come` where the editor has not refused an edit that cannot be seen: it may make it later.
    """

    report: EditReport
    edit: FileEdit
    text: str | None = None
    may_come: bool = False


@dataclass(frozen=True, slots=True)
class CallReport:
    """A tool call as a turn's result lists it; `decision` is None where nobody was asked."""

    name: str
    status: CallStatus
    decision: Approval | None = None


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn came to (protocol.md, `TurnResult`)."""

    session: str
    turn: int
    stop_reason: StopReason
    text: str = ""
    steps: int = 0
    tool_calls: tuple[CallReport, ...] = ()
    edits: tuple[EditReport, ...] = ()
    unsaved: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error_code: str | None = None
    error_message: str = ""
