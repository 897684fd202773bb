"""Text from JSON strings, where a character beyond U+FFFF may come as two halves, and names that providers take."""

from __future__ import annotations

import re

from hel_lsp.errors import StreamBroken


class TextPieces:
    """Joins the pieces of a text; halves of one character that came in two pieces become that character."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """What can be shown now: `piece` but for a first half at its end, which waits for the second."""
        piece = self._half + piece
        self._half = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        piece = _joined(piece, "replace")
        if piece:
            self._pieces.append(piece)
        return piece

    def __str__(self) -> str:
        return "".join(self._pieces)


def whole(text: str) -> str:
    """`text` with its halves joined. Raises StreamBroken for a half alone, which no file can hold."""
    try:
        return _joined(text, "strict")
    except UnicodeDecodeError as error:
        raise StreamBroken("The model's reply has half a character in a tool call; nothing in it was run.") from error


def valid_name(name: str) -> str:
    """A name that a provider accepts in a history: one that the model made up may have anything in it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


def _joined(text: str, errors: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", errors)
    return text
