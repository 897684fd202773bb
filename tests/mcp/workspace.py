"""A workspace with MCP servers for the tests of this folder, and the entries of servers that misbehave on demand."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hel_lsp.mcp.host import McpHost
from hel_lsp.ports import TrustRequest
from hel_lsp.settings import McpSettings

SCRIPTED = Path(__file__).parent / "servers" / "scripted.py"

ECHO = {"name": "echo", "description": "Say it again.", "inputSchema": {"type": "object"}}


def scripted(**behaviour: Any) -> dict[str, Any]:
    """The entry of a server that behaves as servers/scripted.py describes."""
    return {"command": sys.executable, "args": ["-S", "-E", str(SCRIPTED), json.dumps({"tools": [ECHO], **behaviour})]}


def scripted_from(file: Path, **behaviour: Any) -> dict[str, Any]:
    """The same with the description in a file, for one that no command line holds."""
    file.write_text(json.dumps(behaviour), encoding="utf-8")
    return {"command": sys.executable, "args": ["-S", "-E", str(SCRIPTED), f"@{file}"]}


class Person:
    """Gives the answers it was told to give, in order."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.opened: list[str] = []
        self.told: list[str] = []

    async def choose(self, message: str, actions: Sequence[str]) -> str | None:
        self.asked.append((message, tuple(actions)))
        return self.answers.pop(0)

    async def open(self, url: str) -> bool:
        self.opened.append(url)
        return True

    def tell(self, message: str) -> None:
        self.told.append(message)


class Log:
    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def write(self, kind: str, **fields: Any) -> None:
        json.dumps(fields)
        self.entries.append({"kind": kind, **fields})

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["kind"] == kind]


@dataclass
class Workspace:
    """A workspace folder, its hosts, and what they asked and told."""

    folder: Path
    log: Log = field(default_factory=Log)
    asked: list[TrustRequest] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    trusts: bool = True
    hosts: list[McpHost] = field(default_factory=list)
    person: Person | None = None

    def declare(self, servers: Mapping[str, Any], *, file: str = ".hel/mcp.json", key: str = "servers") -> None:
        path = self.folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({key: servers}), encoding="utf-8")

    def host(self, servers: Mapping[str, Any] | None = None, *, refused: Any = (), **settings: Any) -> McpHost:
        if servers is not None:
            self.declare(servers)
        options = McpSettings(**{"start_wait": 20, **settings})
        host = McpHost(
            self.folder,
            lambda: options,
            self.trust,
            self.log,
            notify=self.told.append,
            refused=refused,
            person=self.person,
        )
        self.hosts.append(host)
        return host

    async def started(self, servers: Mapping[str, Any] | None = None, **settings: Any) -> McpHost:
        host = self.host(servers, **settings)
        await host.start()
        return host

    async def trust(self, request: TrustRequest) -> bool:
        self.asked.append(request)
        return self.trusts

    def received(self, record: Path, method: str | None = None) -> list[dict[str, Any]]:
        """What a server with this record has received, of one method."""
        text = record.read_text(encoding="utf-8") if record.exists() else ""
        messages = [json.loads(line) for line in text.split("\n")[:-1]]
        return [message for message in messages if method is None or message.get("method") == method]


async def until(condition: Callable[[], Any], seconds: float = 10) -> Any:
    """The condition's value once it is true; files and processes announce nothing that could be waited for."""
    async with asyncio.timeout(seconds):
        while not (value := await _outcome(condition)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return value


async def _outcome(condition: Callable[[], Any]) -> Any:
    value = condition()
    return await value if inspect.isawaitable(value) else value
