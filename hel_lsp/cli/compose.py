"""The composition root: which model and which MCP servers the agent gets. Their imports wait for the first turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from hel_lsp.ports import DeferredTools, Model, Person, RunLog, Trust
from hel_lsp.settings import Settings, key_variables


class Composition:
    """Implements the Providers port."""

    def model(self, settings: Settings) -> Model:
        from hel_lsp.models.anthropic import AnthropicModel  # brings httpx
        from hel_lsp.models.config import choose_endpoint
        from hel_lsp.models.openai import OpenAIModel

        endpoint = choose_endpoint(settings.model, os.environ)
        kind = AnthropicModel if endpoint.wire_format == "anthropic" else OpenAIModel
        return kind(endpoint, settings.model)

    def deferred_tools(
        self,
        root: Path,
        roots: Callable[[], Sequence[Path]],
        settings: Callable[[], Settings],
        trust: Trust,
        log: RunLog,
        person: Person,
    ) -> DeferredTools:
        from hel_lsp.mcp.host import McpHost

        refused = key_variables(settings().model)
        return McpHost(
            root,
            lambda: settings().mcp,
            trust,
            log,
            notify=person.tell,
            roots=roots,
            refused=refused,
            person=person,
        )
