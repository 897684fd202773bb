"""Any endpoint with OpenAI's chat completions format, streamed.

Imports httpx, so the server imports this module only when the first request is due.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, cast

from hel_lsp.errors import ModelError, ModelRefused, ModelUnavailable, PromptTooLong, StreamBroken
from hel_lsp.models.config import Endpoint
from hel_lsp.models.connection import Connection, ConnectionDropped
from hel_lsp.models.openai_reply import ReplyAssembler
from hel_lsp.models.openai_request import Dialect, request_body
from hel_lsp.models.refusals import ErrorAnswer, complaint, refusal, stream_error
from hel_lsp.models.retry import with_retries
from hel_lsp.models.sse import ServerEvent
from hel_lsp.ports import ModelRequest, StreamEvent
from hel_lsp.settings import ModelSettings

END_OF_BODY = 0.25
"""Seconds that an endpoint gets between its last event and the end of its body."""


class OpenAIModel:
    """The model behind `endpoint`; keeps one connection and what it learned about the endpoint's dialect.

    `sleep` waits between tries.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ModelSettings,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._sleep = sleep
        self._connection = Connection(endpoint, "chat/completions", settings.timeout)
        self._dialect = Dialect()

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Ask once. Close the generator when leaving it early: that hangs up. Raises ModelError."""
        return with_retries(lambda: self._ask(request), self._sleep)

    async def aclose(self) -> None:
        """Close the connections that are kept."""
        await self._connection.aclose()

    async def _ask(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The events of one try; a field that the endpoint complains of is changed, and the request sent again."""
        tried: list[Dialect] = []
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

    async def _send(self, request: ModelRequest, dialect: Dialect) -> AsyncGenerator[StreamEvent, None]:
        body = request_body(request, self._endpoint.model, self._settings, dialect)
        assembler = ReplyAssembler()
        async with aclosing(self._connection.events(body)) as events:
            try:
                async for event in events:
                    if event.data.strip() == "[DONE]":
                        await _read_to_the_end(events)
                        break
                    for delta in assembler.add(self._chunk(event)):
                        yield delta
            except (ConnectionDropped, ModelUnavailable):
                # After a finish reason nothing is missing but perhaps the usage.
                if not assembler.ended:
                    raise
        yield assembler.reply(len(body))

    def _chunk(self, event: ServerEvent) -> Mapping[str, Any]:
        """The chunk in `event`. Raises ModelRefused for an error in its place."""
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
        chunk = cast("Mapping[str, Any]", value)
        if chunk.get("error") or chunk.get("object") == "error":
            raise stream_error(chunk, self._endpoint)
        return chunk


async def _read_to_the_end(events: AsyncGenerator[ServerEvent, None]) -> None:
    """Take the end mark of the body too: a connection that has not come to it cannot be used again."""
    try:
        async with asyncio.timeout(END_OF_BODY):
            async for _ in events:
                pass
    except (TimeoutError, ModelError):
        pass
