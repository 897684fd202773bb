"""The first run: one task from the prompt to the edit, with everything embedded."""

from __future__ import annotations


def run_demo(*, live: bool) -> int:
    """Play the demo on a scratch workspace and say what happens; returns the exit code of the process.

    `live` asks the configured model instead of the scripted one.
    """
    import asyncio

    from hel_lsp.demo.story import tell

    return asyncio.run(tell(live=live))
