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
from typing import Any, cast

from mcp.types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
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

RAW = "hel-lsp/raw"
"""The key of `_meta` that holds the ticket for a result as the server sent it.

The result itself there would be copied and serialised twice by the SDK's checks.
"""

ANSWERED = "hel-lsp/answered"
"""The data of an error that came from the server with the code that the SDK has for the end of a connection.

Servers give that code, the first one free for their own use, to errors of every kind.
"""

_KEPT = 64  # originals that wait to be taken; those of calls that were cancelled meanwhile never are

WITH_HEADERS = "hel-lsp/with-headers"
"""The key of `_meta` that names the tools of a page that the SDK was shown."""

_ID = rb'"id"\s*:\s*(\d+|"[^"\\]*")'
_tickets = itertools.count()
_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_line(line: bytes) -> list[JSONRPCMessage]:
    """The messages of one line of output (several where it is a batch). Raises ValueError, saying what is wrong."""
    text = line.decode("utf-8", "replace")
    try:
        value: object = json.loads(text, parse_constant=str)
        if _LONE_SURROGATE.search(text):
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return [_message(item) for item in cast("list[object]", value if isinstance(value, list) else [value])]


def _message(value: object) -> JSONRPCMessage:
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
    match = re.search(_ID, line.head[:1024]) or re.search(_ID + rb"\s*}\s*$", line.tail)
    if match is None:
        return None
    message = f"the response has {line.size} bytes, which is more than can be read"
    error = ErrorData(code=INTERNAL_ERROR, message=message)
    return JSONRPCError(jsonrpc="2.0", id=json.loads(match[1]), error=error)


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

    def take(self, ticket: object) -> dict[str, Any]:
        """The result that a ticket in `_meta` stands for; once."""
        return self._originals.pop(cast("int", ticket), {})

    def sent(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._methods[message.id] = message.method

    def waiting_for(self, method: str) -> RequestId | None:
        """The id of an unanswered request of this method."""
        return next((identity for identity, name in self._methods.items() if name == method), None)

    def received(self, message: JSONRPCMessage) -> JSONRPCMessage:
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
            self._keep(ticket, message.result)
        return JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)

    def _keep(self, ticket: int, original: dict[str, Any]) -> None:
        self._originals[ticket] = original
        if len(self._originals) > _KEPT:
            del self._originals[next(iter(self._originals))]

    def _hinted(self, message: JSONRPCError) -> JSONRPCError:
        if self.hint:
            message.error.message += f" ({self.hint})"
            self.hint = ""
        return message


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
