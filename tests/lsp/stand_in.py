"""A small server on the project's own protocol layer, for tests of that layer and of the test editor.

    python stand_in.py [--plain | --tcp PORT] [--host HOST]

`--plain` is pygls as it comes, to show what differs. Its commands do one thing each, so a test can choose.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from hel_lsp.errors import ConfigError, EditorError
from hel_lsp.lsp.guard import GuardedServer
from hel_lsp.lsp.wire import start_stdio, start_tcp

Argument = dict[str, Any] | None


class StandIn(GuardedServer):
    def __init__(self) -> None:
        super().__init__("stand-in", "1")
        for name in (
            "print",
            "hang",
            "hang_on_close",
            "block",
            "spin",
            "request",
            "notify",
            "documents",
            "flood",
            "wait",
        ):
            self.commands[name] = getattr(self, f"do_{name}")
        self._hang_on_close = False

    async def on_close(self) -> None:
        sys.stderr.write("closing\n")
        sys.stderr.flush()
        if self._hang_on_close:
            await asyncio.Event().wait()

    async def do_print(self, argument: Argument) -> None:
        """Write to stdout in every way there is."""
        print("a stray line")  # noqa: T201
        sys.stdout.write("another\n")
        sys.stdout.flush()
        os.write(1, b"from a C library\n")
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import sys; print(sys.stdin.read())")
        await child.wait()

    async def do_hang(self, argument: Argument) -> None:
        self.notify("test/hanging")
        await asyncio.Event().wait()

    async def do_hang_on_close(self, argument: Argument) -> None:
        self._hang_on_close = True

    async def do_block(self, argument: Argument) -> None:
        """Leave a thread behind that never ends, and a task that will not be cancelled."""
        asyncio.get_running_loop().run_in_executor(None, os.read, os.pipe()[0], 1)
        self._stubborn = asyncio.create_task(self._refuse_to_end())

    async def do_spin(self, argument: Argument) -> None:
        """Keep the event loop busy for ever."""
        self.notify("test/spinning")
        while True:
            pass

    async def _refuse_to_end(self) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async def do_request(self, argument: Argument) -> Any:
        """Ask the editor what the argument says; the answer, or the error's message."""
        assert argument is not None
        try:
            return {"result": await self.request(argument["method"], argument.get("params"), argument.get("timeout"))}
        except EditorError as error:
            return {"error": error.message}

    async def do_notify(self, argument: Argument) -> None:
        assert argument is not None
        self.notify(argument["method"], argument.get("params"))

    async def do_documents(self, argument: Argument) -> Any:
        return [
            {"uri": document.uri, "version": document.version, "text": document.text, "dirty": document.dirty}
            for document in self.documents
        ]

    async def do_wait(self, argument: Argument) -> bool:
        """Wait until a document contains a text."""
        assert argument is not None
        wanted = argument["text"]
        return await self.documents.wait_changed(argument["uri"], lambda text: wanted in text, argument["timeout"])

    async def do_flood(self, argument: Argument) -> None:
        """Send more than any pipe holds."""
        self.notify("test/flood", {"text": "x" * 4_000_000})


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--tcp", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    if arguments.plain:
        plain = LanguageServer("plain", "1", text_document_sync_kind=types.TextDocumentSyncKind.Full)
        plain.start_io()
        return 0
    if arguments.tcp is None:
        return start_stdio(StandIn())
    try:
        return start_tcp(StandIn(), arguments.host, arguments.tcp)
    except ConfigError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
