"""Requests to the editor that are on their way, and what becomes of them.

Every one comes to an end: a result, an error, a reply that cannot be read, nobody waiting any longer, or the end of
the connection. pygls leaves its caller waiting for ever when a reply does not parse.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, cast

from cattrs import BaseValidationError, Converter
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from hel_lsp.errors import EditorError
from hel_lsp.lsp.lenient import faults, spell

logger = logging.getLogger(__name__)

MessageId = int | str


def message_id(value: Any) -> MessageId | None:
    """`value` when it can be the id of a message or a progress token, else None."""
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Call:
    """One request; its reply is turned into the type `reply`, or left as JSON where that is None."""

    method: str
    future: Future[Any]
    reply: Any


class Calls:
    """The open requests by id; `send` takes a whole message."""

    def __init__(self, converter: Converter, send: Callable[[dict[str, Any]], None]) -> None:
        self._converter = converter
        self._send = send
        self._open: dict[MessageId, Call] = {}
        self._numbers = itertools.count(1)

    def start(
        self, method: str, params: Any, *, reply: Any = None, number: MessageId | None = None
    ) -> tuple[MessageId, Future[Any]]:
        """Send a request; the future gets the result, or JsonRpcException, or EditorError when the connection ends."""
        if number is None:
            number = next(self._numbers)
        future: Future[Any] = Future()
        self._open[number] = Call(method, future, reply)
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        self._send(message if params is None else message | {"params": params})
        return number, future

    def abandon(self, number: MessageId) -> bool:
        """Forget a request; True when it was still open."""
        return self._open.pop(number, None) is not None

    def fail_all(self) -> None:
        """Let every open request fail: there is nobody left to answer."""
        for number, call in tuple(self._open.items()):
            del self._open[number]
            _fail(call, EditorError(f"{call.method}: the editor closed the connection"))

    def on_reply(self, message: dict[str, Any]) -> None:
        """Hand a reply to whoever waits for it; a late or unknown one is only logged."""
        number = message_id(message["id"])
        call = self._open.pop(number, None) if number is not None else None
        if call is None or call.future.done():
            logger.debug("ignored a reply that nobody waits for: %r", message["id"])
        elif message.get("error") is not None:
            _fail(call, _as_exception(message["error"]))
        elif call.reply is None:
            call.future.set_result(message.get("result"))
        else:
            whole = {"jsonrpc": "2.0", "id": number, "result": message.get("result")}
            try:
                call.future.set_result(self._converter.structure(whole, call.reply).result)
            except BaseValidationError as error:
                _fail(call, JsonRpcInvalidParams(f"malformed reply: {', '.join(map(spell, faults(error)))}"))


def _fail(call: Call, error: Exception) -> None:
    if not call.future.done():
        call.future.set_exception(error)


def _as_exception(error: Any) -> JsonRpcException:
    """An error as the editor reported it; anything may be in there."""
    fields = cast(dict[str, Any], error) if isinstance(error, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    return JsonRpcException(
        message if isinstance(message, str) and message else "an error without a message",
        code if isinstance(code, int) else None,
        fields.get("data"),
    )
