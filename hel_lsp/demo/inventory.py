"""An MCP server over stdio that knows which port each service has: two tools, made with the official SDK.

    python -m hel_lsp.demo.inventory

It imports nothing of this project, so that a copy of the file runs by itself (the demo puts one under `.hel/mcp/`).
When the environment variable INVENTORY_RECORD names a file, every `tools/call` that arrives is appended to it as
one JSON line, `{"tool": …, "arguments": …}`.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

PORTS = {"api": 8437, "cache": 6379, "db": 5432, "metrics": 9090, "queue": 5672, "web": 8080}

TOOLS = [
    Tool(
        name="list_services",
        description="List the services registered in the inventory.",
        input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    ),
    Tool(
        name="lookup_port",
        description="Look up the port assigned to a service in the inventory.",
        input_schema={
            "type": "object",
            "properties": {"service": {"type": "string", "description": "Name of the service, such as api."}},
            "required": ["service"],
            "additionalProperties": False,
        },
    ),
]


async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
    return ListToolsResult(tools=TOOLS)


async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
    arguments = params.arguments or {}
    record(params.name, arguments)
    text, failed = answer(params.name, arguments)
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


def answer(tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """The text that answers a call, and whether it reports a failure."""
    if tool == "list_services":
        return "\n".join(PORTS), False
    if tool != "lookup_port":
        return f"There is no tool {tool!r} here.", True
    service = arguments.get("service")
    if service not in PORTS:
        return f"No service {service!r} is registered. Known: {', '.join(PORTS)}.", True
    return f"{service} has port {PORTS[service]}", False


def record(tool: str, arguments: dict[str, Any]) -> None:
    if path := os.environ.get("INVENTORY_RECORD"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")


async def main() -> None:
    server = Server("inventory", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
