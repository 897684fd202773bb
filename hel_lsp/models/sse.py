"""Server-sent events, from bytes as they arrive to whole events."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from hel_lsp.errors import StreamBroken

MAX_EVENT = 16 * 1024 * 1024
"""Characters of one event; more is no event of a model but a fault that would fill the memory."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: `name` is its `event` field or empty, `data` its `data` lines joined by a line feed."""

    name: str
    data: str


class EventDecoder:
    """Takes bytes in pieces of any size. Raises StreamBroken for what is not UTF-8 or has no end.

    Lines end at a line feed alone: a U+2028 or U+0085 inside JSON is text. Bytes that are not UTF-8 are an error and
    not a replacement character, which would find its way into somebody's file.
    """

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._partial: list[str] = []
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that `data` completes."""
        return self._take(data, last=False)

    def end(self) -> list[ServerEvent]:
        """The event that was left without its closing blank line: some servers end that way."""
        return self._take(b"\n\n", last=True)

    def _take(self, data: bytes, *, last: bool) -> list[ServerEvent]:
        try:
            text = self._utf8.decode(data, last)
        except UnicodeDecodeError as error:
            raise StreamBroken("The model's reply is not UTF-8.") from error
        events: list[ServerEvent] = []
        *lines, rest = text.split("\n")
        for line in lines:
            if self._partial:
                line = "".join((*self._partial, line))
                self._partial.clear()
            event = self._line(line.removesuffix("\r"))
            if event is not None:
                events.append(event)
        if rest:
            self._partial.append(rest)
            self._grow(len(rest))
        return events

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            event = ServerEvent(self._name, "\n".join(self._data)) if self._data else None
            self._name, self._data, self._size = "", [], 0
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._grow(len(value))
        elif name == "event":
            self._name = value
        return None

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > MAX_EVENT:
            raise StreamBroken("The model's reply has an event without an end.")
