"""The main job, as data: the scratch workspace, the prompt, and what a model says to do it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROMPT = "look up the port assigned to the api service in inventory and put it in config.ini; change nothing else"

CONFIG = "[service]\nname=api\nhost=localhost\nport=7000\n\n[log]\nlevel=info\n"

EXPECTED = CONFIG.replace("port=7000", "port=8437")

LIST_SERVICES = "mcp__inventory__list_services"
LOOKUP_PORT = "mcp__inventory__lookup_port"

ANSWER = "The api service has port 8437 in the inventory. I put it in config.ini and changed nothing else."


def lay_out(folder: Path, record: Path | None = None) -> None:
    """Write config.ini and the inventory server into `folder`; `record` is where the server notes its calls."""
    (folder / "config.ini").write_text(CONFIG, encoding="utf-8")
    servers = folder / ".hel" / "mcp"
    servers.mkdir(parents=True)
    shutil.copyfile(Path(__file__).with_name("inventory.py"), servers / "inventory.py")
    entry: dict[str, Any] = {"command": sys.executable, "args": [".hel/mcp/inventory.py"]}
    if record is not None:
        entry["env"] = {"INVENTORY_RECORD": str(record)}
    document = {"servers": {"inventory": entry}}
    (folder / ".hel" / "mcp.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def replies() -> Sequence[Mapping[str, Any]]:
    """What the scripted model answers, one reply a request."""
    return [
        {
            "text": "I will load the inventory's tools and look at the file.",
            "tool_calls": [
                {"id": "a", "name": "load_mcp_tool", "arguments": {"names": [LIST_SERVICES, LOOKUP_PORT]}},
                {"id": "b", "name": "read_file", "arguments": {"path": "config.ini"}},
            ],
        },
        {"tool_calls": [{"id": "c", "name": LIST_SERVICES, "arguments": {}}]},
        {"tool_calls": [{"id": "d", "name": LOOKUP_PORT, "arguments": {"service": "api"}}]},
        {
            "tool_calls": [
                {
                    "id": "e",
                    "name": "search_replace",
                    "arguments": {"path": "config.ini", "search": "port=7000", "replace": "port=8437"},
                }
            ]
        },
        {"text": ANSWER},
    ]
