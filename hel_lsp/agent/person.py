"""The person, as MCP servers reach them: through a session of the folder that the servers are of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hel_lsp.permissions.question import from_server
from hel_lsp.ports import Approver, EventSink


@dataclass(frozen=True, slots=True)
class SessionPerson:
    """Implements the Person port; `session` tells in whose name a question is asked."""

    session: Callable[[], str]
    approver: Approver
    sink: EventSink

    async def choose(self, message: str, actions: Sequence[str]) -> str | None:
        return await self.approver.ask(from_server(self.session(), message, actions))

    async def open(self, url: str) -> bool:
        return await self.approver.open(url)

    def tell(self, message: str) -> None:
        self.sink.warn(message)
