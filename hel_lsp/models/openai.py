"""Any endpoint with OpenAI's chat completions format, streamed.

Imports httpx, so the server imports this module only when the first request is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from hel_lsp.errors import ModelUnavailable
from hel_lsp.models.config import Endpoint
from hel_lsp.models.connection import Connection, ConnectionDropped
from hel_lsp.models.openai_reply import ReplyAssembler
from hel_lsp.models.openai_request import Dialect, request_body
from hel_lsp.models.streamed import StreamedModel, read_to_the_end
from hel_lsp.ports import ModelRequest, StreamEvent
from hel_lsp.settings import ModelSettings


class OpenAIModel(StreamedModel[Dialect]):
    """The model behind `endpoint`. `sleep` waits between tries."""

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ModelSettings,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        connection = Connection(endpoint, "chat/completions", settings.timeout, headers)
        super().__init__(endpoint, settings, connection, Dialect(), sleep)

    async def _send(self, request: ModelRequest, dialect: Dialect) -> AsyncGenerator[StreamEvent, None]:
        body = request_body(request, self._endpoint.model, self._settings, dialect)
        assembler = ReplyAssembler()
        async with aclosing(self._connection.events(body)) as events:
            try:
                async for event in events:
                    if event.data.strip() == "[DONE]":
                        await read_to_the_end(events)
                        break
                    for delta in assembler.add(self._parsed(event)):
                        yield delta
            except (ConnectionDropped, ModelUnavailable):
                # After a finish reason nothing is missing but perhaps the usage.
                if not assembler.ended:
                    raise
        yield assembler.reply(len(body))
