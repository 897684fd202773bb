"""Ways of losing a server that are dealt with in ways of their own."""

from __future__ import annotations

from hel_lsp.errors import ServerLost


class NeverAnswered(ServerLost):
    """The server ended before it had answered anything: some do when they are asked `server/discover`."""


class AnsweredLate(ServerLost):
    """The server refused the older greeting, having answered `server/discover` after that had been given up."""


class SessionLost(ServerLost):
    """The server no longer knows the session, so it has not done what was asked."""
