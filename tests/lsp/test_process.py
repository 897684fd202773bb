"""The server as a process: what ends it, how soon, with which code, and what reaches its stdout."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hel_lsp.lsp.wire import read_messages

STAND_IN = str(Path(__file__).with_name("stand_in.py"))
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
PATIENCE = 2
"""How much longer everything may take than it should, for machines with other things to do."""
both_servers = pytest.mark.parametrize("server", [(STAND_IN,), ("-m", "hel_lsp")], ids=["stand-in", "hel-lsp"])
posix_only = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


def framed(message: dict[str, Any]) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Process:
    """A child process that is spoken to in framed messages."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdin
        assert child.stdout
        assert child.stderr
        self.child, self.stdin, self.stdout, self.stderr = child, child.stdin, child.stdout, child.stderr
        self._number = 0

    def send(self, method: str, params: Any = None, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
        self.stdin.write(framed(message))

    async def receive(self) -> dict[str, Any]:
        header = await self.stdout.readuntil(b"\r\n\r\n")
        length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return json.loads(await self.stdout.readexactly(length))

    async def request(self, method: str, params: Any = None) -> Any:
        self._number += 1
        self.send(method, params, self._number)
        while (message := await self.receive()).get("id") != self._number:
            pass
        return message.get("result", message.get("error"))

    async def command(self, name: str, argument: Any = None) -> Any:
        return await self.request("workspace/executeCommand", {"command": name, "arguments": [argument]})

    async def initialize(self) -> None:
        await self.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.send("initialized", {})

    async def end(self) -> tuple[int, bytes, str]:
        """Exit code, what is left on stdout, and stderr, when the process has ended, which takes 5 seconds at most."""
        async with asyncio.timeout(5 * PATIENCE):
            rest, log = await self.stdout.read(), await self.stderr.read()
            return await self.child.wait(), rest, log.decode()


@asynccontextmanager
async def started(*arguments: str, server: Sequence[str] = (STAND_IN,)) -> AsyncIterator[Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *server,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=ENVIRONMENT,
    )
    process = Process(child)
    try:
        yield process
    finally:
        if child.returncode is None:
            child.kill()
        process.stdin.close()
        await child.communicate()


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--plain",), 0)])
async def test_exit_after_shutdown_ends_with_0(arguments: tuple[str, ...], code: int) -> None:
    async with started(*arguments) as process:
        await process.initialize()
        assert await process.request("shutdown") is None
        process.send("exit")
        assert (await process.end())[:2] == (code, b"")


@pytest.mark.parametrize(("arguments", "code"), [((), 1), (("--plain",), 0)])
async def test_exit_alone_ends_with_1(arguments: tuple[str, ...], code: int) -> None:
    async with started(*arguments) as process:
        await process.initialize()
        process.send("exit")
        assert (await process.end())[:2] == (code, b"")


async def test_exit_before_initialize_ends_with_1() -> None:
    async with started() as process:
        process.send("exit")
        assert (await process.end())[:2] == (1, b"")


async def test_end_of_input_ends_the_process_and_what_it_started() -> None:
    async with started() as process:
        await process.initialize()
        process.send("workspace/executeCommand", {"command": "hang"}, 5)
        assert (await process.receive())["method"] == "test/hanging"
        process.stdin.close()
        code, _, log = await process.end()
        assert code == 1
        assert "closing" in log
        assert "Traceback" not in log


async def test_end_of_input_after_shutdown_is_no_failure() -> None:
    async with started() as process:
        await process.initialize()
        await process.request("shutdown")
        process.stdin.close()
        assert (await process.end())[0] == 0


async def test_a_request_that_was_answered_before_the_end_arrives() -> None:
    async with started() as process:
        process.send("initialize", {"capabilities": {}}, 1)
        process.stdin.close()
        _, rest, _ = await process.end()
        assert [json.loads(body)["id"] for body in read_messages(io.BytesIO(rest))] == [1]


async def test_what_was_sent_before_the_end_arrives_whole() -> None:
    async with started() as process:
        await process.initialize()
        process.send("workspace/executeCommand", {"command": "flood"}, 5)
        process.send("workspace/executeCommand", {"command": "hang"}, 6)
        process.send("exit")
        _, rest, _ = await process.end()
        messages = [json.loads(body) for body in read_messages(io.BytesIO(rest))]
        assert len(messages[0]["params"]["text"]) == 4_000_000


async def test_input_that_ends_inside_a_message_ends_the_process() -> None:
    async with started() as process:
        await process.initialize()
        process.stdin.write(b'Content-Length: 100\r\n\r\n{"jsonrpc"')
        process.stdin.close()
        assert (await process.end())[:2] == (1, b"")


def test_an_editor_that_stops_reading_blocks_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, STAND_IN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    ) as child:
        assert child.stdin
        child.stdin.write(framed({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}))
        for number in range(10, 20):
            flood = {
                "jsonrpc": "2.0",
                "id": number,
                "method": "workspace/executeCommand",
                "params": {"command": "flood"},
            }
            child.stdin.write(framed(flood))
        child.stdin.write(framed({"jsonrpc": "2.0", "method": "exit"}))
        child.stdin.flush()
        assert child.wait(5 * PATIENCE) == 1


EDITOR = r"""
import json, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for message in (
    {"id": 1, "method": "initialize", "params": {}},
    {"id": 2, "method": "workspace/executeCommand", "params": {"command": "hang"}},
):
    body = json.dumps({"jsonrpc": "2.0"} | message).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
server.stdin.flush()
received = b""
while b"test/hanging" not in received:
    received += server.stdout.read1()
print("ready", flush=True)
server.wait()
"""


async def test_the_death_of_the_editor_ends_the_process_with_a_command_in_flight() -> None:
    editor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", EDITOR, sys.executable, STAND_IN),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert editor.stdout
    assert editor.stderr
    assert await editor.stdout.readline() == b"ready\n"
    editor.kill()
    async with asyncio.timeout(5 * PATIENCE):
        # stderr is the server's too, so its end is the server's end.
        log = (await editor.stderr.read()).decode()
    assert "closing" in log
    assert "Traceback" not in log
    await editor.wait()


@posix_only
async def test_a_broken_pipe_ends_the_process() -> None:
    reading, writing = os.pipe()
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        STAND_IN,
        stdin=asyncio.subprocess.PIPE,
        stdout=writing,
        stderr=asyncio.subprocess.PIPE,
        env=ENVIRONMENT,
    )
    os.close(writing)
    os.close(reading)
    assert child.stdin
    assert child.stderr
    child.stdin.write(framed({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}))
    async with asyncio.timeout(5 * PATIENCE):
        log = await child.stderr.read()
        assert await child.wait() == 1
    assert b"Traceback" not in log
    child.stdin.close()


@posix_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
async def test_a_signal_ends_the_process_cleanly(number: signal.Signals) -> None:
    async with started() as process:
        await process.initialize()
        process.child.send_signal(number)
        code, rest, log = await process.end()
        assert (code, rest) == (128 + number, b"")
        assert "closing" in log
        assert "Traceback" not in log


@pytest.mark.parametrize("obstacle", ["hang_on_close", "block"])
async def test_nothing_keeps_the_process_alive(obstacle: str) -> None:
    async with started() as process:
        await process.initialize()
        await process.command(obstacle)
        await process.request("shutdown")
        process.send("exit")
        assert (await process.end())[:2] == (0, b"")


async def test_an_event_loop_that_is_stuck_does_not_outlive_the_editor() -> None:
    async with started() as process:
        await process.initialize()
        process.send("workspace/executeCommand", {"command": "spin"}, 99)
        while (await process.receive()).get("method") != "test/spinning":
            pass
        process.stdin.close()
        assert (await process.end())[0] == 1


async def test_only_messages_reach_stdout() -> None:
    async with started() as process:
        await process.initialize()
        assert await process.command("print") is None
        process.send("exit")
        _, rest, log = await process.end()
        assert rest == b""
        assert [line for line in ("a stray line", "another", "from a C library") if line not in log] == []


async def test_a_message_of_20_mb_arrives() -> None:
    async with started() as process:
        await process.initialize()
        text = "0123456789" * 2_000_000
        item = {"uri": "untitled:1", "languageId": "", "version": 1, "text": text}
        process.send("textDocument/didOpen", {"textDocument": item})
        [document] = await process.command("documents")
        assert document["text"] == text


@both_servers
@pytest.mark.parametrize("length", ["-1", "-21", "99999999999", "9" * 5000, "many", ""])
async def test_a_length_that_cannot_be_is_answered_and_logged_and_the_connection_goes_on(
    server: Sequence[str], length: str
) -> None:
    async with started(server=server) as process:
        process.stdin.write(f'Content-Length: {length}\r\n\r\n{{"jsonrpc": "2.0"}}'.encode())
        error = await process.receive()
        assert (error["id"], error["error"]["code"]) == (None, -32700)
        assert "Content-Length" in error["error"]["message"]
        await process.initialize()
        process.stdin.write(f"content-length:{length}\r\n\r\n".encode())
        assert (await process.receive())["error"]["code"] == -32700
        assert await process.request("shutdown") is None
        process.send("exit")
        code, rest, log = await process.end()
        assert (code, rest) == (0, b"")
        assert log.count("Content-Length: ") == 2
        assert "Traceback" not in log


async def test_input_that_ends_after_a_length_that_cannot_be_ends_the_process() -> None:
    async with started() as process:
        await process.initialize()
        process.stdin.write(b'Content-Length: 99999999999\r\n\r\n{"jsonrpc"')
        process.stdin.close()
        code, rest, _ = await process.end()
        [error] = [json.loads(body) for body in read_messages(io.BytesIO(rest))]
        assert (code, error["id"], error["error"]["code"]) == (1, None, -32700)


# -------------------------------------------------------------------- TCP


async def listening(process: Process) -> str:
    while "listens on" not in (line := (await process.stderr.readline()).decode()):
        assert line
    return line


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


async def dial(process: Process) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    line = await listening(process)
    host, _, port = line.split()[-1].rpartition(":")
    return await asyncio.open_connection(host.strip("[]"), int(port))


@both_servers
@pytest.mark.parametrize("host", [(), ("--host", "127.0.0.1"), ("--host", "localhost"), ("--host", "::1")])
async def test_tcp_serves_one_client_and_ends_with_it(server: Sequence[str], host: Sequence[str]) -> None:
    if "::1" in host and not has_ipv6():
        pytest.skip("this machine has no ::1")
    async with started("--tcp", "0", *host, server=server) as process:
        reader, writer = await dial(process)
        for number, method in ((1, "initialize"), (2, "shutdown")):
            writer.write(framed({"jsonrpc": "2.0", "id": number, "method": method, "params": {}}))
            header = await reader.readuntil(b"\r\n\r\n")
            assert json.loads(await reader.readexactly(int(header.split()[1])))["id"] == number
        writer.close()
        assert (await process.end())[:2] == (0, b"")


@posix_only
@both_servers
async def test_tcp_without_a_client_ends_by_a_signal(server: Sequence[str]) -> None:
    async with started("--tcp", "0", server=server) as process:
        await listening(process)
        process.child.terminate()
        assert (await process.end())[0] == 128 + signal.SIGTERM


@both_servers
@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::", ""])
async def test_tcp_refuses_a_host_that_is_not_loopback(server: Sequence[str], host: str) -> None:
    async with started("--tcp", "0", "--host", host, server=server) as process:
        code, rest, log = await process.end()
        assert (code, rest) == (2, b"")
        assert f"--host {host}: only a loopback address is served" in log
