"""An OpenAI-compatible endpoint on loopback that plays a fixed list of replies and keeps every request.

It stands in for a model in the demo and in the tests: real HTTP, real server-sent events, no intelligence.
A reply is a mapping with `text` and `tool_calls` (`[{"name": …, "arguments": {…} or str}]`), and optionally
`finish`, `usage`, `status` with `headers` and `body` (an HTTP error), or `raw` (bytes of the event stream, sent as
they are). `hold: true` keeps the stream open after the text until `release()` or until the client hangs up;
`cut: true` closes the connection instead of ending the stream.

    python -m hel_lsp.demo.scripted_model --script replies.json --record requests.jsonl

prints the base URL, then serves until its standard input closes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Reply = Mapping[str, Any]


class ScriptedModel:
    """Serves `replies` in order, one a request; a request beyond the last gets HTTP 500."""

    def __init__(self, replies: Iterable[Reply], *, record: Path | None = None) -> None:
        self.replies: list[Reply] = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.hung_up = asyncio.Event()
        self.arrived_at: list[float] = []
        self.replied_at: list[float] = []
        self._record = record
        self._released = asyncio.Event()
        self._arrived = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def base_url(self) -> str:
        """The address up to and including `/v1`."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def release(self) -> None:
        """Let a reply that is on `hold` go on."""
        self._released.set()

    async def wait_for_requests(self, count: int) -> None:
        """Return once `count` requests have arrived."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._one_request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        except asyncio.CancelledError:
            pass  # __aexit__ is ending the connections
        finally:
            self._connections.discard(task)
            writer.close()

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        arrived_at = time.perf_counter()
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        async with self._arrived:
            number = len(self.requests)
            self.bodies.append(body)
            self.headers.append(headers)
            self.arrived_at.append(arrived_at)
            self.requests.append(json.loads(body))
            self._arrived.notify_all()
        if self._record is not None:
            with self._record.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"bytes": len(body), "request": self.requests[-1]}) + "\n")
        if number >= len(self.replies):
            reply: Reply = {"status": 500, "body": '{"error": {"message": "the script has no more replies"}}'}
        else:
            reply = self.replies[number]
        if "status" in reply:
            await _send_error(writer, reply)
            return True
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        if "raw" in reply:
            await _chunk(writer, reply["raw"])
        else:
            for event in _text_events(reply):
                await _chunk(writer, event)
            if reply.get("hold"):
                await self._held(reader)
            if not reply.get("cut"):
                for event in _closing_events(reply):
                    await _chunk(writer, event)
        if reply.get("cut"):
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        self.replied_at.append(time.perf_counter())
        return True

    async def _held(self, reader: asyncio.StreamReader) -> None:
        """Wait for `release`, or notice that the client has hung up."""
        released = asyncio.ensure_future(self._released.wait())
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({released, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise ConnectionResetError("the client hung up")
        finally:
            released.cancel()
            gone.cancel()


async def _send_error(writer: asyncio.StreamWriter, reply: Reply) -> None:
    body = str(reply.get("body", "")).encode()
    extra = "".join(f"{name}: {value}\r\n" for name, value in dict(reply.get("headers", {})).items())
    head = f"HTTP/1.1 {reply['status']} Scripted\r\nContent-Type: application/json\r\n{extra}"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()


async def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


def _event(delta: Mapping[str, Any] | None, finish: str | None = None, **extra: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": choices, **extra}).encode() + b"\n\n"


def _text_events(reply: Reply) -> Iterable[bytes]:
    if reply.get("reasoning"):
        yield _event({"reasoning_content": reply["reasoning"]})
    words = str(reply.get("text", "")).split(" ")
    for position, word in enumerate(words):
        if word:
            yield _event({"content": word if position == 0 else " " + word})


def _closing_events(reply: Reply) -> Iterable[bytes]:
    calls: Sequence[Mapping[str, Any]] = reply.get("tool_calls", ())
    for index, call in enumerate(calls):
        arguments = call["arguments"] if isinstance(call["arguments"], str) else json.dumps(call["arguments"])
        half = len(arguments) // 2
        identity = {"index": index, "id": call.get("id", f"call_{index + 1}"), "type": "function"}
        yield _event({"tool_calls": [{**identity, "function": {"name": call["name"], "arguments": arguments[:half]}}]})
        yield _event({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]})
    yield _event({}, reply.get("finish", "tool_calls" if calls else "stop"))
    yield _event(None, usage=reply.get("usage", {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}))
    yield b"data: [DONE]\n\n"


async def _serve(script: Path, record: Path | None) -> None:
    async with ScriptedModel(json.loads(script.read_text(encoding="utf-8")), record=record) as model:
        print(model.base_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An OpenAI-compatible endpoint that plays a script.")
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    asyncio.run(_serve(options.script, options.record))
