"""The client that MCP's official conformance suite drives: the host, connected to one server and calling its tools.

    conformance client --command "python tests/mcp/conformance_client.py" --requirements 2026-07-28

The suite appends the server's URL, and describes in MCP_CONFORMANCE_CONTEXT what it wants (credentials, calls). Where
it says nothing of calls, each tool is called once with an argument of every kind that it requires.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from hel_lsp.mcp.host import McpHost
from hel_lsp.ports import TrustRequest
from hel_lsp.settings import McpSettings

EXAMPLES = {"string": "test", "integer": 3, "number": 5, "boolean": True, "array": [], "object": {}}


class Log:
    def write(self, kind: str, **fields: Any) -> None:
        print(kind, fields, file=sys.stderr)  # noqa: T201


class Visitor:
    """Goes to every page that is shown, and agrees to everything."""

    def __init__(self) -> None:
        self._visits: set[asyncio.Task[None]] = set()

    async def choose(self, message: str, actions: Sequence[str]) -> str | None:
        return actions[-1]

    async def open(self, url: str) -> bool:
        self._visits.add(asyncio.create_task(self._visit(url)))
        return True

    async def _visit(self, url: str) -> None:
        async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as client:
            await client.get(url)

    def tell(self, message: str) -> None:
        print(message, file=sys.stderr)  # noqa: T201


async def yes(request: TrustRequest) -> bool:
    return True


def entry(url: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """The server's entry, with the credentials that the suite has registered by hand."""
    auth: dict[str, Any] = {}
    if "client_id" in context:
        auth["clientId"] = context["client_id"]
    if "client_secret" in context:
        os.environ["CONFORMANCE_SECRET"] = context["client_secret"]
        auth["clientSecretEnv"] = "CONFORMANCE_SECRET"
    if os.environ.get("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd":
        auth["metadataUrl"] = "https://conformance-test.local/client-metadata.json"
    return {"url": url, **({"auth": auth} if auth else {})}


def example(schema: Mapping[str, Any]) -> dict[str, Any]:
    fields: Mapping[str, Any] = schema.get("properties", {})
    return {name: EXAMPLES[fields.get(name, {}).get("type", "string")] for name in schema.get("required", [])}


async def run(url: str, context: Mapping[str, Any], folder: Path) -> None:
    (folder / ".hel").mkdir()
    (folder / ".hel" / "mcp.json").write_text(json.dumps({"servers": {"s": entry(url, context)}}), encoding="utf-8")
    host = McpHost(folder, lambda: McpSettings(start_wait=25), yes, Log(), notify=print, person=Visitor())
    await host.start()
    wanted = context.get("toolCalls")
    for name, tool in list(host.tools().items()):
        own = name.removeprefix("mcp__s__")
        calls = [call["arguments"] for call in wanted if call["name"] == own] if wanted else None
        for arguments in calls if calls is not None else [example(tool.definition.parameters)]:
            print(name, arguments, await host.call(name, arguments), file=sys.stderr)  # noqa: T201
    await host.aclose()


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        os.environ["HEL_STATE_DIR"] = state
        asyncio.run(run(sys.argv[-1], context, Path(folder)))


if __name__ == "__main__":
    main()
