"""Start to `initialize` reply, and memory before the first ask, beside jedi-language-server and a bare pygls server.

The servers take turns, so that what else the machine does hits all of them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil

ROUNDS = 9
SETTLE = 0.5  # seconds after `initialized` until memory is read

BARE = """
from pygls.lsp.server import LanguageServer
LanguageServer("bare", "1").start_io()
"""

SERVERS = {
    "hel-lsp": [sys.executable, "-m", "hel_lsp"],
    "jedi-language-server": [str(Path(sys.executable).with_name("jedi-language-server"))],
    "bare pygls server": [sys.executable, "-c", BARE],
}


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name in SERVERS}
    megabytes: dict[str, list[float]] = {name: [] for name in SERVERS}
    for _ in range(ROUNDS):
        for name, command in SERVERS.items():
            took, memory = measure(command)
            seconds[name].append(took)
            megabytes[name].append(memory)
    base = statistics.median(seconds["bare pygls server"])
    print(f"{'server':<24}{'initialize':>12}{'ratio':>8}{'memory':>10}   (medians of {ROUNDS})")
    for name in SERVERS:
        took, memory = statistics.median(seconds[name]), statistics.median(megabytes[name])
        print(f"{name:<24}{took:>10.3f} s{took / base:>8.2f}{memory:>7.1f} MB")


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds until the reply, and resident MB afterwards."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        params = {"processId": None, "rootUri": None, "capabilities": {}}
        _send(server.stdin, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        length = 0
        while line := server.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        server.stdout.read(length)
        took = time.perf_counter() - began
        _send(server.stdin, {"jsonrpc": "2.0", "method": "initialized", "params": {}})
        time.sleep(SETTLE)
        memory = psutil.Process(server.pid).memory_info().rss / 1e6
        server.kill()
    return took, memory


def _send(stream: object, message: dict[str, object]) -> None:
    body = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))  # type: ignore[attr-defined]
    stream.flush()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
