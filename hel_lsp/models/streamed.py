"""What the wire formats have in common: tries, endpoints that complain of a field, events that are JSON.

Imports httpx, so the server imports this module only when the first request is due.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from hel_lsp.errors import ModelError, ModelRefused, PromptTooLong, StreamBroken
from hel_lsp.models.config import Endpoint
from hel_lsp.models.connection import Connection
from hel_lsp.models.refusals import ErrorAnswer, complaint, refusal, stream_error
from hel_lsp.models.retry import with_retries
from hel_lsp.models.sse import ServerEvent
from hel_lsp.ports import ModelRequest, StreamEvent
from hel_lsp.settings import ModelSettings

END_OF_BODY = 0.25
"""Seconds that an endpoint gets between its last event and the end of its body."""


class Adaptable(Protocol):
    """A dialect of a wire format: what endpoints with the same format disagree on."""

    def adapted(self, complaint: str) -> Self:
        """The dialect for an endpoint that says `complaint` of this one; the same where it names nothing of it."""
        ...


DialectT = TypeVar("DialectT", bound=Adaptable)


class StreamedModel(ABC, Generic[DialectT]):
    """A model behind an endpoint; keeps one connection and what it learned about the endpoint's dialect.

    `sleep` waits between tries.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ModelSettings,
        connection: Connection,
        dialect: DialectT,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._connection = connection
        self._dialect = dialect
        self._sleep = sleep

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Ask once. Close the generator when leaving it early: that hangs up. Raises ModelError."""
        return with_retries(lambda: self._ask(request), self._sleep)

    async def aclose(self) -> None:
        """Close the connections that are kept."""
        await self._connection.aclose()

    @abstractmethod
    def _send(self, request: ModelRequest, dialect: DialectT) -> AsyncGenerator[StreamEvent, None]:
        """The events of one request. Raises ErrorAnswer, TryAgain, ModelError."""

    async def _ask(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The events of one try; a field that the endpoint complains of is changed, and the request sent again."""
        tried: list[DialectT] = []
        dialect = self._dialect
        while True:
            tried.append(dialect)
            try:
                async with aclosing(self._send(request, dialect)) as events:
                    async for event in events:
                        self._dialect = dialect
                        yield event
                return
            except ErrorAnswer as answer:
                error = refusal(answer, self._endpoint)
                dialect = dialect.adapted(complaint(answer))
                if dialect in tried or not isinstance(error, ModelRefused) or isinstance(error, PromptTooLong):
                    raise error from None

    def _parsed(self, event: ServerEvent) -> Mapping[str, Any]:
        """The object in `event`. Raises StreamBroken, and for an error in its place ModelRefused or TryAgain."""
        if not event.data.strip():
            return {}
        try:
            value: object = json.loads(event.data)
        except (ValueError, RecursionError) as error:
            if event.name == "error":
                raise stream_error(event.data, self._endpoint) from None
            raise StreamBroken("The model's reply has an event that is not JSON; nothing in it was run.") from error
        if event.name == "error":
            raise stream_error(value, self._endpoint)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise StreamBroken("The model's reply has an event that is not an object; nothing in it was run.")
        fields = cast("Mapping[str, Any]", value)
        if fields.get("error") or "error" in (fields.get("object"), fields.get("type")):
            raise stream_error(fields, self._endpoint)
        return fields


async def read_to_the_end(events: AsyncGenerator[ServerEvent, None]) -> None:
    """Take the end mark of the body too: a connection that has not come to it cannot be used again."""
    try:
        async with asyncio.timeout(END_OF_BODY):
            async for _ in events:
                pass
    except (TimeoutError, ModelError):
        pass
