"""JSON-RPC messages as servers really write them, made into messages that the SDK accepts.

The SDK's own parser drops a response whose `result` is no object, so that its call waits for ever; takes JSON that is
invalid in one character for no message at all; and rejects a whole `tools/list` for one bad tool and a whole
`tools/call` for one unknown block. Here each fault costs no more than itself: the SDK is handed a sound message, whose
`_meta` holds under RAW the ticket for the original, for `catalogue` and `results` to read.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from hel_lsp.mcp.catalogue import SoundTool, inspect_tool
from hel_lsp.mcp.process import OverlongLine

T = TypeVar("T")

RAW = "hel-lsp/raw"
"""The key of `_meta` that holds the ticket for a result as the server sent it.

The result itself there would be copied and serialised twice by the SDK's checks.
"""

ANSWERED = "hel-lsp/answered"
"""The data of an error that came from the server with the code that the SDK has for the end of a connection.

Servers give that code, the first one free for their own use, to errors of every kind.
"""

UNREADABLE = "hel-lsp/unreadable"
"""The data of an error that stands for a response which came and could not be read."""

_KEPT = 64  # originals that wait to be taken; those of calls that were cancelled meanwhile never are
_HELD = 1000  # the same of messages that are on their way through the SDK's transport, where all calls may be at once

HELD = "hel-lsp/held"
"""The key of the result of a response that stands for another one, and the ticket of that."""

WITH_HEADERS = "hel-lsp/with-headers"
"""The key of `_meta` that names the tools of a page that the SDK was shown."""

_DEEPEST = 200
"""Levels of a message that are kept where the JSON parser gives up, which is between 900 and some thousands."""

_TOO_DEEP = '"[omitted: nested too deeply]"'

# Where a response that cannot be read as a whole shows what it answers: before its result, or else at its very end.
_ID = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]*")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_OUTCOME = rb'\s*"(?:result|error)"'
_ID_FIRST = re.compile(rb"\s*{\s*(?:%b\s*,\s*)?%b\s*,(?:\s*%b\s*,)?%b" % (_VERSION, _ID, _VERSION, _OUTCOME))
_OUTCOME_FIRST = re.compile(rb"\s*{(?:\s*%b\s*,)?%b" % (_VERSION, _OUTCOME))
_ID_LAST = re.compile(rb"%b\s*(?:,\s*%b\s*)?}\s*$" % (_ID, _VERSION))
_END = 1024  # bytes

_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_tickets = itertools.count()
_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_line(line: bytes, answering: RequestId | None = None) -> list[JSONRPCMessage]:
    """The messages of one line of output (several where it is a batch). Raises ValueError, saying what is wrong.

    `answering` is the request that a response without an id can only be for.
    """
    text = line.decode("utf-8", "replace")
    try:
        value = _loaded(text)
    except RecursionError:
        value = _loaded(_shallow(text))
    if not isinstance(value, list):
        return [_message(value, answering)]
    messages: list[JSONRPCMessage] = []
    for item in cast("list[object]", value):
        try:
            messages.append(_message(item, answering))
        except ValueError:  # what is no message among those of a batch
            continue
    if not messages:
        raise ValueError("a batch without messages")
    return messages


def _loaded(text: str) -> object:
    value: object = json.loads(text, parse_constant=str)
    if _LONE_SURROGATE.search(text):
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def _shallow(text: str) -> str:
    """The JSON `text` with a note in place of what is nested too deeply: it costs one tool, or one part of a result."""
    kept: list[str] = []
    depth = begin = 0
    for match in _MARK.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth == _DEEPEST + 1:
                kept += [text[begin : match.start()], _TOO_DEEP]
        elif match[0] in "]}":
            if depth == _DEEPEST + 1:
                begin = match.end()
            depth -= 1
    return "".join(kept) + ("" if depth > _DEEPEST else text[begin:])


def _message(value: object, answering: RequestId | None) -> JSONRPCMessage:
    fields = as_object(value)
    if fields.get("jsonrpc") != "2.0":
        raise ValueError("not a JSON-RPC message")
    identity = _identity(fields.get("id"))
    method = fields.get("method")
    if isinstance(method, str):
        params = as_object(fields.get("params"))
        if identity is None:
            return JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
        return JSONRPCRequest(jsonrpc="2.0", id=identity, method=method, params=params)
    identity = answering if identity is None else identity
    if "error" in fields:
        return JSONRPCError(jsonrpc="2.0", id=identity, error=_error(fields["error"]))
    if identity is None or "result" not in fields:
        raise ValueError("neither a request nor a response")
    result: object = fields["result"]
    if not isinstance(result, dict):
        result = {"content": result}  # read by `results`; in any other response it is nothing
    return JSONRPCResponse(jsonrpc="2.0", id=identity, result=cast("dict[str, Any]", result))


def _identity(value: object) -> RequestId | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _error(value: object) -> ErrorData:
    fields = as_object(value)
    code, message = fields.get("code"), fields.get("message")
    return ErrorData(
        code=code if isinstance(code, int) else INTERNAL_ERROR,
        message=message if isinstance(message, str) else json.dumps(value),
        data=fields.get("data"),
    )


def answer_for(line: OverlongLine) -> JSONRPCError | None:
    """The error that stands for a response too long to be read; None where it does not show what it answers."""
    return _unread(line.head, line.tail, f"it has {line.size} bytes, which is more than can be read")


def answer_for_garbled(line: bytes, reason: str) -> JSONRPCError | None:
    """The error that stands for a response that is no JSON; None for what does not begin as a response does."""
    return _unread(line, line, reason)


def _unread(head: bytes, tail: bytes, reason: str) -> JSONRPCError | None:
    match = _ID_FIRST.match(head) or (_ID_LAST.search(tail[-_END:]) if _OUTCOME_FIRST.match(head) else None)
    if match is None:
        return None
    return unreadable(json.loads(match[1]), reason)


def unreadable(identity: RequestId, reason: str) -> JSONRPCError:
    """The error that stands for a response that cannot be read."""
    error = ErrorData(code=PARSE_ERROR, message=f"its response cannot be read: {reason}", data=UNREADABLE)
    return JSONRPCError(jsonrpc="2.0", id=identity, error=error)


def as_object(value: object) -> dict[str, Any]:
    """`value` where it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class Mender:
    """Follows which request each response answers, and hands the SDK a sound version of it.

    `hint` is what the transport knows of the last failure; it is added to the next error, which may say too little.
    `answered_late` says that the request `given_up` has been answered with a result all the same.
    """

    def __init__(self) -> None:
        self.replied = False
        self.hint = ""
        self.given_up: RequestId | None = None
        self.answered_late = False
        self._methods: dict[RequestId, str] = {}
        self._originals: dict[int, dict[str, Any]] = {}
        self._held: dict[int, JSONRPCResponse | JSONRPCError] = {}

    def take(self, ticket: object) -> dict[str, Any]:
        """The result that a ticket in `_meta` stands for; once."""
        return self._originals.pop(cast("int", ticket), {})

    def held(self, message: JSONRPCMessage) -> JSONRPCMessage:
        """What stands for `message` where a transport of the SDK has it as text and takes few texts for a message."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            return message
        ticket = next(_tickets)
        _keep(self._held, ticket, message, _HELD)
        return JSONRPCResponse(jsonrpc="2.0", id=message.id or 0, result={HELD: ticket})

    def _released(self, message: JSONRPCMessage) -> JSONRPCMessage:
        if isinstance(message, JSONRPCResponse) and isinstance(ticket := message.result.get(HELD), int):
            original = self._held.pop(ticket, message)
            return original.model_copy(update={"id": message.id})
        return message

    def sent(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._methods[message.id] = message.method

    def waiting_for(self, method: str) -> RequestId | None:
        """The id of an unanswered request of this method."""
        return next((identity for identity, name in self._methods.items() if name == method), None)

    def received(self, message: JSONRPCMessage) -> JSONRPCMessage:
        message = self._released(message)
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return message
        self.replied = True
        identity = int(message.id) if isinstance(message.id, str) and message.id.isdecimal() else message.id
        mend = _MEND.get(self._methods.pop(identity, ""))
        if isinstance(message, JSONRPCError):
            if message.error.code == CONNECTION_CLOSED:
                message.error.data = ANSWERED
            return self._hinted(message)
        self.answered_late |= identity == self.given_up
        if mend is None:
            return message
        result = mend(message.result)
        ticket = as_object(result.get("_meta")).get(RAW)
        if isinstance(ticket, int):
            _keep(self._originals, ticket, message.result, _KEPT)
        return JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)

    def _hinted(self, message: JSONRPCError) -> JSONRPCError:
        if self.hint:
            message.error.message += f" ({self.hint})"
            self.hint = ""
        return message


def _keep(kept: dict[int, T], ticket: int, original: T, most: int) -> None:
    kept[ticket] = original
    if len(kept) > most:
        del kept[next(iter(kept))]


def _discover(result: dict[str, Any]) -> dict[str, Any]:
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result, **_about(result)}


def _initialize(result: dict[str, Any]) -> dict[str, Any]:
    info = as_object(result.get("serverInfo"))
    names = {key: str(info.get(key, "")) for key in ("name", "version")}
    return {**result, **_about(result), "serverInfo": names}


def _about(result: Mapping[str, Any]) -> dict[str, Any]:
    capabilities = as_object(result.get("capabilities"))
    instructions = result.get("instructions")
    return {
        "capabilities": {key: value for key, value in capabilities.items() if isinstance(value, dict)},
        "instructions": instructions if isinstance(instructions, str) else None,
    }


def _tools_list(result: dict[str, Any]) -> dict[str, Any]:
    """The page with the tools from whose schemas the SDK takes headers; it has no need of the others."""
    listed: object = result.get("tools")
    found = [inspect_tool(raw) for raw in cast("list[object]", listed if isinstance(listed, list) else [])]
    with_headers = {
        tool.name: tool.schema for tool in found if isinstance(tool, SoundTool) and _takes_headers(tool.schema)
    }
    cursor = result.get("nextCursor")
    return {
        "tools": [{"name": name, "inputSchema": schema} for name, schema in with_headers.items()],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        **({"nextCursor": cursor} if isinstance(cursor, str) else {}),
        "_meta": {RAW: next(_tickets), WITH_HEADERS: list(with_headers)},
    }


def _takes_headers(schema: object) -> bool:
    if isinstance(schema, dict):
        fields = cast("dict[str, object]", schema)
        return "x-mcp-header" in fields or any(_takes_headers(value) for value in fields.values())
    return isinstance(schema, list) and any(_takes_headers(item) for item in cast("list[object]", schema))


def _tools_call(result: dict[str, Any]) -> dict[str, Any]:
    if result.get("resultType") == "input_required":
        return result
    # Called an error so that the SDK does not look for an output schema: `results` reads what it really is.
    return {"content": [], "isError": True, "resultType": "complete", "_meta": {RAW: next(_tickets)}}


_MEND = {
    "server/discover": _discover,
    "initialize": _initialize,
    "tools/list": _tools_list,
    "tools/call": _tools_call,
}
