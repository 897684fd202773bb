"""What the model is sent, and how soon: bytes of the first request and of a whole task, and the time between steps."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hel_lsp.demo import task
from hel_lsp.demo.editor import DemoEditor
from hel_lsp.demo.scripted_model import ScriptedModel

STEPS = 60


async def play(
    replies: Sequence[Mapping[str, Any]], *, servers: bool, settings: Mapping[str, Any] | None = None
) -> ScriptedModel:
    """One turn with these replies on a scratch workspace; gives the model with all that it was sent."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve() / "workspace"
        folder.mkdir()
        if servers:
            task.lay_out(folder)
        else:
            (folder / "config.ini").write_text(task.CONFIG)
        async with ScriptedModel(replies) as model:
            editor = DemoEditor(_consent, lambda event: None)
            environment = {"HEL_BASE_URL": model.base_url, "HEL_MODEL": "m", "HEL_STATE_DIR": f"{scratch}/state"}
            await editor.start(folder, environment, settings or {})
            editor.open(folder / "config.ini")
            await editor.command("hel.ask", {"prompt": task.PROMPT, "wait": True})
            await editor.stop()
        return model


async def _consent(message: str, actions: Sequence[str]) -> str | None:
    return next(title for title in ("Trust", "Allow once") if title in actions)


async def main() -> None:
    everything = await play([{"text": "done"}], servers=False)
    print(f"first request, every built-in tool, no MCP      {len(everything.bodies[0]):>8} bytes   (bound: 5,500)")
    names = [tool["function"]["name"] for tool in everything.requests[0]["tools"]]
    others = [name for name in names if name not in ("read_file", "search_replace")]
    whole = await play(task.replies(), servers=True, settings={"tools": {"disabled": others}})
    sizes = [len(body) for body in whole.bodies]
    print(f"whole task, read_file and search_replace alone  {sum(sizes):>8} bytes   (bound: 26,000)   {sizes}")
    read = {"tool_calls": [{"name": "read_file", "arguments": {"path": "config.ini"}}]}
    many = await play(
        [read] * (STEPS - 1) + [{"text": "done"}], servers=False, settings={"limits": {"maxSteps": STEPS}}
    )
    gaps = [later - earlier for earlier, later in zip(many.replied_at, many.arrived_at[1:], strict=False)]
    print(f"end of a reply with a read to the next request  {statistics.median(gaps) * 1000:>8.2f} ms      (bound: 10)")


if __name__ == "__main__":
    asyncio.run(main())
