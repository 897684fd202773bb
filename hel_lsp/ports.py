"""What the core needs from the outside: the protocols that `lsp/`, `mcp/` and `models/` implement.

The loop knows these and nothing of LSP, MCP or HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from hel_lsp.messages import (
    Access,
    Approval,
    CallStatus,
    EditOutcome,
    EditReport,
    FileEdit,
    Message,
    ToolCall,
    ToolDefinition,
    ToolResult,
    TurnResult,
    Usage,
)
from hel_lsp.settings import Settings

# ------------------------------------------------------------------ the model


@dataclass(frozen=True, slots=True)
class ModelRequest:
    messages: Sequence[Message]
    tools: Sequence[ToolDefinition]


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """The request failed before its first byte, or its stream broke before any text, and is sent again.

    `delay` is the seconds until then. Reasoning that was shown of a broken stream comes again.
    """

    reason: str
    delay: float


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete reply, the last thing a stream yields.

    `finish` is `stop` whether or not there are tool calls; `length` means that the reply was cut off. Only `stop`
    comes with tool calls: those of a reply that was cut off are not whole. `request_bytes` is the size of the request.
    `signed_reasoning` belongs into the history unread: some providers want their reasoning back with their signature.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish: Literal["stop", "length", "refusal"]
    usage: Usage
    reasoning: str = ""
    request_bytes: int = 0
    signed_reasoning: str = ""


StreamEvent = TextDelta | ReasoningDelta | Retrying | ModelReply


class Model(Protocol):
    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Ask once; yields deltas and then exactly one `ModelReply`. Raises ModelError."""
        ...

    async def aclose(self) -> None:
        """Give up the connections that are kept for the next request."""
        ...


# ------------------------------------------------------------------ tools


@dataclass(frozen=True, slots=True)
class Preview:
    """What a prepared call would do, for the person who is asked.

    `summary` is one line. `brief` is what it comes to (the changed lines, the command, the arguments) and goes into
    the question where it fits; where not, `detail` is shown whole beside it, or `brief` if there is none.
    """

    summary: str
    brief: str = ""
    detail: str = ""
    edit: FileEdit | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked call that has changed nothing yet. `scope` names what `Allow for session` would cover.

    `path` (relative to the workspace folder where it is not absolute) or `command` is what it is about, where it is
    about one: what rules look at. `arguments` are for the hooks, where what is sent is not what the model wrote.
    """

    access: Access
    preview: Preview
    run: Callable[[], Awaitable[ToolResult]]
    scope: str
    always_ask: bool = False
    path: Path | None = None
    command: str | None = None
    arguments: Mapping[str, Any] | None = None


class Tool(Protocol):
    @property
    def definition(self) -> ToolDefinition: ...

    @property
    def access(self) -> Access: ...

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Check the arguments and say what the call would do. Changes nothing; raises ToolError."""
        ...


# ------------------------------------------------------------------ deferred tools (MCP)


@dataclass(frozen=True, slots=True)
class DeferredTool:
    """A tool that the model may load, with its definition as the model would be sent it.

    `server` is the name of its MCP server, None where the editor itself offers it.
    """

    name: str
    server: str | None
    definition: ToolDefinition
    access: Access = "execute"
    always_ask: bool = False


ServerState = Literal["untrusted", "starting", "ready", "failed", "stopped", "disabled"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """An MCP server as `hel.tools` shows it; `diagnostics` say what was dropped or went wrong, and why."""

    name: str
    status: ServerState
    protocol_version: str | None
    tools: Sequence[DeferredTool]
    diagnostics: Sequence[str]


class DeferredTools(Protocol):
    """The tools of all MCP servers of one workspace; implemented by `mcp/`."""

    async def start(self) -> None:
        """Start what is trusted and not running; returns after `mcp.startWait` at the latest."""
        ...

    def tools(self) -> Mapping[str, DeferredTool]:
        """The catalogue by name, in the order in which it is listed."""
        ...

    def always_loaded(self) -> Sequence[str]:
        """Names whose definitions go along from the first request."""
        ...

    def instructions(self) -> Mapping[str, str]:
        """What each server says that it is for, by server; as untrusted as any text of a server."""
        ...

    def search(self, query: str, limit: int) -> Sequence[str]:
        """Names of the tools that fit the words of `query`, best first; none while so many are being indexed."""
        ...

    async def indexed(self) -> None:
        """Wait until `search` finds every tool."""
        ...

    async def refresh(self) -> None:
        """Ask again for lists of tools that are stale; for the begin of a turn and for a search."""
        ...

    def pending(self) -> Sequence[str]:
        """Names of the servers that are still connecting."""
        ...

    async def settle(self) -> None:
        """Wait until every server is ready or has failed."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call the tool; whatever goes wrong is a result with status `failed`."""
        ...

    async def look(self, knows: Callable[[TrustRequest], bool]) -> None:
        """Have `servers` tell what the files declare before anything is started; asks nothing and starts nothing.

        `knows` says what has been trusted already.
        """
        ...

    def servers(self) -> Sequence[ServerStatus]:
        """Every declared server, whatever its state; before a start, those that were looked at."""
        ...

    async def reload(self, name: str | None = None) -> None:
        """Read the files again and restart what changed, and in any case the server called `name`."""
        ...

    async def aclose(self) -> None:
        """End every server and all of its processes."""
        ...

    def validate(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments to send; raises InvalidArguments naming what does not fit the server's schema."""
        ...


# ------------------------------------------------------------------ the editor, or what stands for it


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A file's text now; `unsaved` when it is the editor's and differs from the disk."""

    path: Path
    uri: str
    text: str
    unsaved: bool = False


MakeEdit = Callable[[str | None], FileEdit]
"""From the newest text of a file, None where there is none, to the edit. Raises ToolError."""


class Workspace(Protocol):
    @property
    def roots(self) -> Sequence[Path]:
        """The folders that are open to tools."""
        ...

    def at(self, roots: Sequence[Path]) -> Workspace:
        """The same workspace as a session has it: `roots` are the folders that it was asked about, its own first.

        Its own is the first of its folders. Without any in the editor, those that it was asked about are the workspace.
        """
        ...

    def resolve(self, path: str, *, writing: bool = False) -> Path:
        """The real path that `path` (absolute, or relative to the first root) names. Raises PathRefused."""
        ...

    def display(self, path: Path) -> str:
        """The path as `resolve` takes it: relative to the first root or else absolute, with forward slashes."""
        ...

    def uri(self, path: Path) -> str:
        """The URI as the editor knows the document."""
        ...

    def open_to_tools(self, files: Iterable[Path]) -> Iterable[Path]:
        """Those of many files that `resolve` would let be read; `files` are what a walk through a root has found."""
        ...

    def allow_reading(self, path: Path) -> None:
        """Let `resolve` admit this one file outside the workspace, for reading."""
        ...

    async def read(self, path: Path) -> DocumentText:
        """The newest text, unsaved changes included. Raises FileRefused."""
        ...

    def exists(self, path: Path) -> bool: ...

    def newest(self, path: Path) -> str | None:
        """The text that `read` gives, at once; None where there is none that can be read."""
        ...

    async def edit(self, path: Path, make: MakeEdit) -> EditOutcome:
        """Put an edit into the editor and see what came of it; edits of one file wait for each other.

        `make` gets the newest text, or None where there is no file, right before the edit is sent; once more
        when the editor refused it because the document had changed. What `make` raises is raised, and then
        nothing has been sent.
        """
        ...

    def open_documents(self) -> Sequence[DocumentText]:
        """What the editor has open inside the workspace."""
        ...


# ------------------------------------------------------------------ the person


@dataclass(frozen=True, slots=True)
class Question:
    """Something that a person decides. `message` is complete in itself; `detail` is shown whole beside it."""

    session: str
    message: str
    actions: tuple[str, ...]
    detail: str = ""
    edit: FileEdit | None = None


class Approver(Protocol):
    async def ask(self, question: Question) -> str | None:
        """The exact title of the action that was chosen; None for everything else."""
        ...

    async def open(self, url: str) -> bool:
        """Show a web page, or its address; False where nobody would see it."""
        ...


class Person(Protocol):
    """Who answers what MCP servers ask for in the middle of a call, and hears what the project's files lack."""

    async def choose(self, message: str, actions: Sequence[str]) -> str | None:
        """The exact title of the action that was chosen; None for everything else."""
        ...

    async def open(self, url: str) -> bool:
        """As `Approver.open`."""
        ...

    def tell(self, message: str) -> None: ...


# ------------------------------------------------------------------ what happens, as it happens


@dataclass(frozen=True, slots=True)
class TextEvent:
    delta: str


@dataclass(frozen=True, slots=True)
class ReasoningEvent:
    delta: str


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    call: ToolCall
    status: Literal["pending", "running"] | CallStatus
    decision: Approval | None = None


@dataclass(frozen=True, slots=True)
class EditEvent:
    report: EditReport


@dataclass(frozen=True, slots=True)
class UsageEvent:
    usage: Usage


@dataclass(frozen=True, slots=True)
class StepEvent:
    """A model request is about to be sent; steps count from 1."""

    step: int


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    message: str


@dataclass(frozen=True, slots=True)
class EndEvent:
    result: TurnResult


Event = TextEvent | ReasoningEvent | ToolCallEvent | EditEvent | UsageEvent | StepEvent | NoticeEvent | EndEvent


class EventSink(Protocol):
    def emit(self, session: str, turn: int, event: Event) -> None: ...

    def warn(self, message: str) -> None:
        """Tell the user what went wrong outside of any turn."""
        ...


class Providers(Protocol):
    """How the composition root hands the model and the MCP servers to the agent."""

    def model(self, settings: Settings) -> Model:
        """The configured model. Raises ModelNotConfigured."""
        ...

    def deferred_tools(
        self,
        root: Path,
        roots: Callable[[], Sequence[Path]],
        settings: Callable[[], Settings],
        trust: Trust,
        log: RunLog,
        person: Person,
    ) -> DeferredTools:
        """The MCP servers of the workspace folder `root`, which may learn `roots`, all folders of the workspace."""
        ...


@dataclass(frozen=True, slots=True)
class TrustRequest:
    """A project file that would start or allow things: its bytes' hash, and what that is, a line each."""

    file: Path
    sha256: str
    lines: Sequence[str]
    wants: Literal["start", "allow without asking"] = "start"


Trust = Callable[[TrustRequest], Awaitable[bool]]


class RunLog(Protocol):
    def write(self, kind: str, **fields: Any) -> None:
        """Append one entry; values must be JSON."""
        ...
