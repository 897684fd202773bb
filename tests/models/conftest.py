"""A model at a server that plays what a test tells it to."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hel_lsp.models.anthropic import AnthropicModel
from hel_lsp.models.config import Endpoint
from hel_lsp.models.openai import OpenAIModel
from hel_lsp.settings import ModelSettings
from tests.models.played import Client, PlayedServer


@pytest.fixture
async def client() -> AsyncGenerator[Client, None]:
    """A client with chat completions."""
    async with _client(OpenAIModel) as made:
        yield made


@pytest.fixture
async def claude() -> AsyncGenerator[Client, None]:
    """A client with Anthropic's messages."""
    async with _client(AnthropicModel) as made:
        yield made


@asynccontextmanager
async def _client(kind: type[OpenAIModel] | type[AnthropicModel]) -> AsyncIterator[Client]:
    server = PlayedServer()
    await server.start()
    waits: list[float] = []
    made: list[OpenAIModel | AnthropicModel] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def make(
        key: str = "sk-secret-key", base_url: str = "", sleep: Any = sleep, **settings: Any
    ) -> OpenAIModel | AnthropicModel:
        endpoint = Endpoint(base_url or server.base_url, "test-model", "HEL_API_KEY", key)
        made.append(kind(endpoint, ModelSettings(**settings), sleep=sleep))
        return made[-1]

    yield Client(server, waits, make, make())
    for model in made:
        await model.aclose()
    await server.stop()
