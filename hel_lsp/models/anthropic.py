"""Any endpoint with Anthropic's messages format, streamed.

Imports httpx, so the server imports this module only when the first request is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from hel_lsp.models.anthropic_reply import ReplyAssembler
from hel_lsp.models.anthropic_request import Dialect, request_body
from hel_lsp.models.config import Endpoint
from hel_lsp.models.connection import Connection
from hel_lsp.models.streamed import StreamedModel, read_to_the_end
from hel_lsp.ports import ModelRequest, StreamEvent
from hel_lsp.settings import ModelSettings

API_VERSION = "2023-06-01"


class AnthropicModel(StreamedModel[Dialect]):
    """The model behind `endpoint`. `sleep` waits between tries."""

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ModelSettings,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        headers = {"anthropic-version": API_VERSION}
        if endpoint.api_key:
            headers["x-api-key"] = endpoint.api_key
        connection = Connection(endpoint, "messages", settings.timeout, headers)
        super().__init__(endpoint, settings, connection, Dialect(), sleep)

    async def _send(self, request: ModelRequest, dialect: Dialect) -> AsyncGenerator[StreamEvent, None]:
        body = request_body(request, self._endpoint.model, self._settings, dialect)
        assembler = ReplyAssembler()
        async with aclosing(self._connection.events(body)) as events:
            async for event in events:
                for delta in assembler.add(self._parsed(event)):
                    yield delta
                if assembler.ended:
                    await read_to_the_end(events)
                    break
        yield assembler.reply(len(body))
