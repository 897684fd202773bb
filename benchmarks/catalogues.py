"""Many MCP tools: bytes of the first request, and the time until it is sent, with all their servers running.

    python -m benchmarks.catalogues FOLDER

FOLDER holds one JSON file a server (`{"server": …, "tools": […]}`, as `tools/list` gives them). Each becomes a
program that answers at once; the same servers then get 30,000 generated tools, and one server 30 of the real ones.
Beside it: the first request with all definitions in it, which is what a client without deferred loading sends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from hel_lsp.demo.editor import DemoEditor
from hel_lsp.demo.scripted_model import ScriptedModel
from tests.mcp.workspace import scripted_from

MANY = 30_000
FEW = 30
WIDTH = 17
PATIENT = {"mcp": {"startWait": 120, "startTimeout": 120}}

Tools = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Measured:
    """Bytes of the first request; seconds to it from the first ask, and from the first ask of a second session.

    `processor` is what the agent and all servers had used by then: on a machine with other work, the better measure.
    """

    size: int
    first: float
    second: float
    processor: float


async def measure(servers: Mapping[str, Tools]) -> Measured:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve() / "workspace"
        (folder / ".hel").mkdir(parents=True)
        entries = {
            name: scripted_from(Path(scratch) / f"{name}.json", tools=tools, instructions="")
            for name, tools in servers.items()
        }
        (folder / ".hel" / "mcp.json").write_text(json.dumps({"servers": entries}), encoding="utf-8")
        async with ScriptedModel([{"text": "done"}] * 2) as model:
            environment = {"HEL_BASE_URL": model.base_url, "HEL_MODEL": "m", "HEL_STATE_DIR": f"{scratch}/state"}
            editor = DemoEditor(_consent, lambda event: None)
            await editor.start(folder, environment, PATIENT)
            times = [await _ask(editor, model)]
            used = sum(sum(process.cpu_times()[:2]) for process in psutil.Process().children(recursive=True))
            await editor.command("hel.newSession", {})
            times.append(await _ask(editor, model))
            await editor.stop()
        count = sum(map(len, servers.values()))
        assert f"{count} MCP tools" in model.bodies[0].decode() or count == FEW, "not every server was ready"
        return Measured(len(model.bodies[0]), *times, used)


async def _ask(editor: DemoEditor, model: ScriptedModel) -> float:
    began = time.perf_counter()
    await editor.command("hel.ask", {"prompt": "Hello", "wait": True})
    return model.arrived_at[-1] - began


async def _consent(message: str, actions: Sequence[str]) -> str | None:
    return "Trust" if "Trust" in actions else None


def read(folder: Path) -> dict[str, Tools]:
    contents = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    return {content["server"]: content["tools"] for content in contents}


def generated(servers: Mapping[str, Tools]) -> dict[str, Tools]:
    """The same servers with MANY tools, which are copies of theirs under other names."""
    real = [(server, tool) for server, tools in servers.items() for tool in tools]
    made: dict[str, list[Mapping[str, Any]]] = {server: [] for server in servers}
    for number in range(MANY):
        server, tool = real[number % len(real)]
        made[server].append({**tool, "name": f"tool_{number}"})
    return {**made}


def definitions(servers: Mapping[str, Tools]) -> int:
    """Bytes of all definitions as a request would carry them."""
    return sum(
        len(json.dumps({"type": "function", "function": _function(server, tool)}, ensure_ascii=False).encode())
        for server, tools in servers.items()
        for tool in tools
    )


def _function(server: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"mcp__{server}__{tool['name']}",
        "description": tool.get("description", ""),
        "parameters": tool["inputSchema"],
    }


async def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    real = read(Path(sys.argv[1]))
    smallest = min((server for server in real if len(real[server]) >= FEW), key=lambda server: len(real[server]))
    few = {smallest: real[smallest][:FEW]}
    heads = ("tools", "servers", "first request", "all definitions", "start to it", "next session", "CPU")
    print("".join(f"{head:>{WIDTH}}" for head in heads))
    for servers in (few, real, generated(real)):
        measured = await measure(servers)
        count = sum(map(len, servers.values()))
        sizes = (f"{count}", f"{len(servers)}", f"{measured.size} B", f"{definitions(servers)} B")
        times = (f"{measured.first:.2f} s", f"{measured.second:.2f} s", f"{measured.processor:.2f} s")
        print("".join(f"{cell:>{WIDTH}}" for cell in (*sizes, *times)))


if __name__ == "__main__":
    asyncio.run(main())
