"""Edits in large documents, through the real server: CPU of a `didChange`, time from a call to its edit, memory."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from hel_lsp.demo.scripted_model import ScriptedModel
from hel_lsp.lsp.guard import GuardedServer

CHANGES = 40
EDITS = 7
DOCUMENTS = 200

LINE = "    value[{:06d}] = compute(argument, other)  # x\n"


def text_of(lines: int) -> str:
    return "".join(map(LINE.format, range(lines)))


# ------------------------------------------------------------------ didChange, beside plain pygls


class Nowhere:
    """A transport that drops what is sent."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def document_changes() -> None:
    guarded = GuardedServer("guarded", "1")
    guarded.protocol.attach(Nowhere(), lambda code: None)
    plain = LanguageServer("plain", "1", text_document_sync_kind=types.TextDocumentSyncKind.Full)
    plain.protocol.set_writer(Nowhere())

    def feed_plain(body: bytes) -> None:
        plain.protocol.handle_message(json.loads(body, object_hook=plain.protocol.structure_message))

    text = text_of(20_000)
    servers: dict[str, Callable[[bytes], None]] = {"hel-lsp": guarded.protocol.receive, "plain pygls": feed_plain}
    uri = "file:///large.py"
    for feed in servers.values():
        feed(body("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, 1))
        feed(body("initialized", {}))
        feed(body("textDocument/didOpen", {"textDocument": document(uri, text)}))
    took: dict[str, list[float]] = {name: [] for name in servers}
    for version in range(2, CHANGES + 2):
        change = {
            "textDocument": {"uri": uri, "version": version},
            "contentChanges": [{"text": f"{text}{version}\n"}],
        }
        message = body("textDocument/didChange", change)
        for name, feed in servers.items():
            began = time.process_time()
            feed(message)
            took[name].append(time.process_time() - began)
    print(f"CPU of a didChange with {len(text) / 1e6:.1f} MB, median of {CHANGES}   (bound: no slower)")
    for name, times in took.items():
        print(f"  {name:<14}{statistics.median(times) * 1000:>8.2f} ms")


# ------------------------------------------------------------------ from the model's call to the edit


class Client:
    """The least editor that there is: it knows the one document that is edited, and how each edit comes out."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.edit_arrived_at: list[float] = []
        self.on_edit: Callable[[], None] = lambda: None
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._reader = asyncio.create_task(self._read())

    async def request(self, method: str, params: Any) -> Any:
        number = next(self._numbers)
        self._replies[number] = asyncio.get_running_loop().create_future()
        self._send(body(method, params, number))
        return await self._replies[number]

    def notify(self, method: str, params: Any) -> None:
        self._send(body(method, params))

    async def stop(self) -> None:
        await self.request("shutdown", None)
        self.notify("exit", None)
        await self._reader
        await self.process.wait()

    def _send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while head := await self.process.stdout.readline():
            length = int(head.partition(b":")[2])
            await self.process.stdout.readline()
            message = json.loads(await self.process.stdout.readexactly(length))
            if message.get("method") == "workspace/applyEdit":
                self.edit_arrived_at.append(time.perf_counter())
                self.on_edit()
                self._send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"applied": True}}).encode())
            elif "method" not in message:
                self._replies.pop(message["id"]).set_result(message.get("result"))


@asynccontextmanager
async def served(folder: Path, model: ScriptedModel) -> AsyncIterator[Client]:
    environment = {"HEL_BASE_URL": model.base_url, "HEL_MODEL": "m", "HEL_STATE_DIR": str(folder.parent / "state")}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hel_lsp", stdin=pipe, stdout=pipe, env={**os.environ, **environment}
    )
    client = Client(process)
    capabilities = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
    folders = [{"uri": folder.as_uri(), "name": "workspace"}]
    hello = {"processId": None, "rootUri": None, "workspaceFolders": folders, "capabilities": capabilities}
    # `hel/event` in place of messages, which nobody is there to read.
    capabilities["experimental"] = {"hel": {"events": True}}
    await client.request("initialize", {**hello, "initializationOptions": {"access": "auto"}})
    client.notify("initialized", {})
    yield client
    await client.stop()


async def edit_times(lines: int) -> list[float]:
    """Seconds from the end of the model's reply until the edit is here, in a document of so many lines."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve() / "workspace"
        folder.mkdir()
        text = text_of(lines)
        uri = (folder / "large.py").as_uri()
        (folder / "large.py").write_text(text)
        async with ScriptedModel([]) as model, served(folder, model) as client:
            client.notify("textDocument/didOpen", {"textDocument": document(uri, text)})
            for number in range(EDITS):
                old, new = LINE.format(lines - 3 - number), f"    edit({number})\n"
                text = text.replace(old, new)
                version = number + 2
                client.on_edit = lambda text=text, version=version: client.notify(
                    "textDocument/didChange",
                    {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
                )
                arguments = {"path": "large.py", "search": old, "replace": new}
                model.replies += [
                    {"tool_calls": [{"name": "search_replace", "arguments": arguments}]},
                    {"text": "done"},
                ]
                command = {"command": "hel.ask", "arguments": [{"prompt": "edit", "wait": True}]}
                result = await client.request("workspace/executeCommand", command)
                assert result["edits"][0]["applied"] is True
            replies = model.replied_at[::2]
            return [arrived - sent for sent, arrived in zip(replies, client.edit_arrived_at, strict=True)]


async def memory() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve() / "workspace"
        folder.mkdir()
        async with ScriptedModel([]) as model, served(folder, model) as client:
            command = {"command": "hel.newSession", "arguments": [{}]}
            await client.request("workspace/executeCommand", command)
            process = psutil.Process(client.process.pid)
            before = process.memory_info().rss
            text = text_of(400)
            for number in range(DOCUMENTS):
                uri = (folder / f"{number}.py").as_uri()
                client.notify("textDocument/didOpen", {"textDocument": document(uri, text)})
            await client.request("workspace/executeCommand", command)
            after = process.memory_info().rss
    size = DOCUMENTS * len(text) / 1e6
    print(f"memory for {DOCUMENTS} open documents of {len(text) / 1e3:.0f} kB, {size:.1f} MB of text")
    print(f"  {(after - before) / 1e6:.1f} MB more than the {before / 1e6:.0f} MB before")


def body(method: str, params: Any, number: int | None = None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if number is None else {**message, "id": number}).encode()


def document(uri: str, text: str) -> dict[str, Any]:
    return {"uri": uri, "languageId": "python", "version": 1, "text": text}


async def main() -> None:
    document_changes()
    print(f"search_replace, from the model's call to the edit, median of {EDITS}   (bound: 100 ms; at most linear)")
    medians: list[float] = []
    for lines in (20_000, 200_000):
        medians.append(statistics.median(await edit_times(lines)))
        print(f"  {lines:>7} lines{medians[-1] * 1000:>11.2f} ms")
    print(f"  ratio{medians[1] / medians[0]:>18.1f}")
    await memory()


if __name__ == "__main__":
    asyncio.run(main())
