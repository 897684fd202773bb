from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_imports_go_down_the_line_and_libraries_stay_in_their_rooms():
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_server_starts_without_what_only_a_turn_needs():
    program = (
        "import json, sys; import hel_lsp.cli.main, hel_lsp.cli.compose, hel_lsp.lsp.server, hel_lsp.lsp.wire; "
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"pydantic", "httpx", "httpx2", "mcp", "jsonschema", "sqlite3", "yaml"}
    assert heavy.isdisjoint(json.loads(loaded.stdout))
