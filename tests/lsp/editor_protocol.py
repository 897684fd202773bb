"""The wire of the test editor: keeps every message as JSON and hands on what only a real editor can answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygls.protocol import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage, default_converter
from pytest_lsp.protocol import LanguageClientProtocol

if TYPE_CHECKING:
    from tests.lsp.editor import Editor


class EditorProtocol(LanguageClientProtocol):
    """Keeps every message as JSON, and leaves to the editor what only a real editor can answer."""

    _server: Editor

    def structure_message(self, data: dict[str, Any]) -> Any:
        # The outermost object is the last to come by, so this is the whole message in the end.
        self._json = data
        return super().structure_message(dict(data))

    def handle_message(self, message: Any) -> None:
        self._server.received.append(self._json)
        super().handle_message(message)
        self._server.news.set()

    def _handle_request(self, msg_id: Any, method_name: str, params: Any) -> None:
        handler = self._server.handlers.get(method_name)
        if handler is None:
            super()._handle_request(msg_id, method_name, params)
        else:
            reply = handler(msg_id, params)
            if reply is not None:
                self._server.reply(msg_id, reply)


def converter() -> Any:
    """pygls' converter, with what is not in the protocol (`hel/event`) left as JSON."""
    made = default_converter()
    for message in (JsonRPCNotification, JsonRPCRequestMessage):
        made.register_structure_hook(message, lambda data, kind: kind(**({"params": None} | data)))
    made.register_structure_hook(JsonRPCResponseMessage, lambda data, kind: kind(**({"result": None} | data)))
    return made
