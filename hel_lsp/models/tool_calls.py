"""Tool calls put together from the fragments of a stream, as compatible endpoints really send them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hel_lsp.errors import StreamBroken
from hel_lsp.messages import ToolCall
from hel_lsp.models.json_values import fragment
from hel_lsp.models.text import whole


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


class ToolCallFragments:
    """Collects fragments and sorts them to their calls.

    A fragment belongs to the call at its `index`. Where indexes are missing or all the same, an `id` tells calls
    apart, and where there are none, a name with arguments that begin anew does. An `id` or name of "" is absent.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._last: _Call | None = None

    def add(self, piece: Mapping[str, Any]) -> None:
        """Raises StreamBroken for arguments of which nobody can say whose they are."""
        function: Any = piece.get("function")
        function = cast("Mapping[str, Any]", function) if isinstance(function, dict) else {}
        index, call_id = _whole_number(piece.get("index")), _identifier(piece.get("id"))
        name, arguments = _identifier(function.get("name")), fragment(function.get("arguments"))
        if not (call_id or name or arguments):
            return
        call = self._find(index, call_id, name, arguments)
        self._last = call
        if index is not None:
            self._by_index[index] = call
        if call_id and not call.id:
            call.id = call_id
            self._by_id[call_id] = call
        if name != call.name and not (call.name and call.arguments):
            call.name += name
        if arguments:
            call.arguments.append(arguments)

    def calls(self) -> tuple[ToolCall, ...]:
        """The whole calls, each with an id of its own. Raises StreamBroken for one that has no name."""
        ids: set[str] = set()
        calls: list[ToolCall] = []
        for call in self._calls:
            if not call.name:
                raise StreamBroken("The model's reply has a tool call without a name; nothing in it was run.")
            call_id = call.id if call.id and call.id not in ids else f"call_{secrets.token_hex(12)}"
            ids.add(call_id)
            calls.append(ToolCall(call_id, whole(call.name), whole("".join(call.arguments))))
        return tuple(calls)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def _find(self, index: int | None, call_id: str, name: str, arguments: str) -> _Call:
        last = self._last
        here = last if index is None else self._by_index.get(index)
        if call_id:
            return self._find_by_id(index, call_id, name, here)
        if here is None:
            if name or last is None:
                return self._new()
            if len(self._calls) == 1:
                return last
            raise StreamBroken("The model's reply has arguments that belong to no tool call; nothing in it was run.")
        return self._new() if name and _begins_anew(here, name, arguments) else here

    def _find_by_id(self, index: int | None, call_id: str, name: str, here: _Call | None) -> _Call:
        if here is not None and here.id == call_id:
            return here
        known = self._by_id.get(call_id)
        # Some endpoints give all calls one id: an index that is new, with a name, is then a call of its own.
        if known is not None and not (index is not None and here is None and name):
            return known
        # Some make up a new id for each fragment, without a name; some send the id after the name.
        if here is not None and not name and (index is not None or not here.id):
            return here
        return self._new()

    def _new(self) -> _Call:
        call = _Call()
        self._calls.append(call)
        return call


def _begins_anew(call: _Call, name: str, arguments: str) -> bool:
    """Whether a fragment with a name and no id is another call, and not the name repeated or continued."""
    if not call.name or not call.arguments:
        return False
    if name != call.name:
        return True
    if not arguments or not call.arguments[-1].rstrip().endswith("}"):
        return False
    try:
        json.loads("".join(call.arguments))
    except (ValueError, RecursionError):
        return False
    return True


def _whole_number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _identifier(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""
