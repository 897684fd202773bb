"""The exception tree, and who hears of each branch.

HelError
├── ToolError               the model: becomes a failed tool result, the turn goes on
│   ├── InvalidArguments        arguments that are no JSON object, or do not fit the tool
│   ├── UnknownTool             no such tool, or gone
│   │   └── NotLoaded               its definition was not in the request
│   ├── MatchError              a search text that is not there exactly once
│   ├── PathRefused             outside the workspace, or a closed folder
│   ├── ServerError             an MCP server refused the call or could not be asked
│   │   └── ServerLost              it ended, or can no longer be talked to
│   ├── FileRefused             not a text file that can be edited without loss
│   └── StaleDocument           the text changed between reading and applying
├── ModelError              the user: ends the turn with stop reason `error`
│   ├── ModelNotConfigured
│   ├── ModelRefused            a 4xx: says what to check
│   │   └── PromptTooLong           more than the model's context holds: the loop may compact
│   ├── ModelUnavailable        no connection, 429 or 5xx after the last try
│   └── StreamBroken            the reply ended before it was complete
├── EditorError             the code that asked: no usable reply to a request to the editor
│   └── EditorSilent            none in time: it may still do what it was asked
├── ConfigError             the user: a project file or setting that cannot be used
├── CommandError            the caller of a command: JSON-RPC InvalidParams
└── TurnRunning             the caller of `hel.ask`: one turn at a time in a session

Cancellation is asyncio's own CancelledError and is never wrapped.
"""


class HelError(Exception):
    """Base of everything that this package raises on purpose; `code` is the `error.code` of a turn that it ends."""

    code = "error"

    @property
    def message(self) -> str:
        """The sentence that is shown to whoever hears of the error."""
        return str(self)


class ToolError(HelError):
    """A call that failed in a way that the model can act on."""


class InvalidArguments(ToolError):
    """The arguments are not a JSON object or do not fit the tool's parameters."""


class UnknownTool(ToolError):
    """The name is not that of a tool that can be called now."""


class NotLoaded(UnknownTool):
    """The tool is in the catalogue, and its definition has not been sent to the model yet.

    `loaded` names it where the next request has it.
    """

    def __init__(self, message: str, loaded: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.loaded = loaded


class MatchError(ToolError):
    """The text to replace does not occur exactly once."""


class PathRefused(ToolError):
    """The path leads out of the workspace or into a folder that tools may not touch."""


class ServerError(ToolError):
    """An MCP server answered with an error, or could not be asked."""


class ServerLost(ServerError):
    """An MCP server has ended or can no longer be talked to."""


class FileRefused(ToolError):
    """The file is missing, or is not text that can be edited without losing bytes."""


class StaleDocument(ToolError):
    """The document is no longer the text that the edit was made on."""


class ModelError(HelError):
    """The model's endpoint did not give a usable reply."""

    code = "model_error"


class ModelNotConfigured(ModelError):
    """There is no endpoint or model to ask."""

    code = "model_not_configured"


class ModelRefused(ModelError):
    """The endpoint understood the request and declined it."""

    code = "model_refused"


class PromptTooLong(ModelRefused):
    """The conversation is longer than the model's context."""

    code = "prompt_too_long"


class ModelUnavailable(ModelError):
    """The endpoint could not be reached, or asked for patience too often."""

    code = "model_unavailable"


class StreamBroken(ModelError):
    """The reply broke off before it was complete; nothing in it has run."""

    code = "stream_broken"


class EditorError(HelError):
    """A request to the editor got an error, a reply that cannot be read, or none; always to be taken as a no."""


class EditorSilent(EditorError):
    """There was no reply in time."""


class ConfigError(HelError):
    """A project file or a setting that cannot be used, with the place and what was expected."""

    code = "config_error"


class CommandError(HelError):
    """A command's argument is missing or malformed; the message names the field."""


class TurnRunning(HelError):
    """The session already has a turn under way."""
