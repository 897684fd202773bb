"""`hel-lsp` itself: what it says of itself, and what it serves."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hel_lsp

INSTALLED = shutil.which("hel-lsp", path=Path(sys.executable).parent)


def run(*arguments: str) -> tuple[int, str, str]:
    assert INSTALLED is not None
    ran = subprocess.run([INSTALLED, *arguments], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def test_it_tells_its_version() -> None:
    assert run("--version") == (0, f"hel-lsp {hel_lsp.__version__}\n", "")


def test_its_help_names_every_way_to_start_it() -> None:
    code, shown, errors = run("--help")
    assert (code, errors) == (0, "")
    wanted = ["--stdio", "--tcp PORT", "--host", "--version", "--help", "demo", "ask", "doctor", "verify"]
    assert [name for name in wanted if name not in shown] == []


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("demo", ["--live"]),
        ("ask", ["PROMPT", "--workspace DIR", "--access {read-only,confirm,auto}", "--json", "130"]),
        ("doctor", ["--workspace DIR"]),
        ("verify", ["LOG"]),
    ],
)
def test_each_commands_help_names_what_it_takes(command: str, wanted: list[str]) -> None:
    code, shown, errors = run(command, "--help")
    assert (code, errors) == (0, "")
    assert [name for name in wanted if name not in shown] == []


@pytest.mark.parametrize(
    "arguments",
    [("--tcp",), ("--tcp", "x"), ("--tcp", "99999"), ("--tcp", "0", "--stdio"), ("serve",), ("--port", "1")],
)
def test_what_it_cannot_make_sense_of_ends_with_2_and_says_why(arguments: tuple[str, ...]) -> None:
    code, shown, errors = run(*arguments)
    assert (code, shown) == (2, "")
    assert "hel-lsp: " in errors
    assert "Traceback" not in errors


async def test_over_tcp_it_is_the_same_server_with_its_commands(tmp_path: Path) -> None:
    assert INSTALLED is not None
    server = await asyncio.create_subprocess_exec(
        *(INSTALLED, "--tcp", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"HEL_STATE_DIR": str(tmp_path / "state")},
    )
    assert server.stderr
    assert server.stdout
    try:
        async with asyncio.timeout(60):
            address = (await server.stderr.readline()).decode()
            reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))

            async def ask(number: int, method: str, params: object) -> dict[str, object]:
                body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                header = await reader.readuntil(b"\r\n\r\n")
                return json.loads(await reader.readexactly(int(header.split()[1])))

            greeting = await ask(1, "initialize", {"capabilities": {}})
            assert greeting["result"]["serverInfo"]["version"] == hel_lsp.__version__  # type: ignore[index]
            command = {"command": "hel.setAccess", "arguments": [{"access": "auto"}]}
            assert (await ask(2, "workspace/executeCommand", command))["result"] == {"access": "auto"}
            assert (await ask(3, "shutdown", None))["result"] is None
            writer.close()
            assert await server.stdout.read() == b""
            assert await server.wait() == 0
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
