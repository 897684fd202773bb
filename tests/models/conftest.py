"""A model at a server that plays what a test tells it to."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from hel_lsp.models.config import Endpoint
from hel_lsp.models.openai import OpenAIModel
from hel_lsp.settings import ModelSettings
from tests.models.played import Client, PlayedServer


@pytest.fixture
async def client() -> AsyncGenerator[Client, None]:
    server = PlayedServer()
    await server.start()
    waits: list[float] = []
    made: list[OpenAIModel] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def make(key: str = "sk-secret-key", base_url: str = "", sleep: Any = sleep, **settings: Any) -> OpenAIModel:
        endpoint = Endpoint(base_url or server.base_url, "test-model", "HEL_API_KEY", key)
        made.append(OpenAIModel(endpoint, ModelSettings(**settings), sleep=sleep))
        return made[-1]

    yield Client(server, waits, make, make())
    for model in made:
        await model.aclose()
    await server.stop()
