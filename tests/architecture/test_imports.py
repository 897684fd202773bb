from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
KNOWN_IN = {
    "pygls": ("lsp.", "demo."),
    "lsprotocol": ("lsp.", "demo."),
    "httpx": ("models.",),
    "mcp": ("mcp.", "demo.inventory"),
    "httpx2": ("mcp.",),
}
"""Each library, and how the names of the modules begin that may import it."""


def lint(folder: Path) -> tuple[int, str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    checked = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return checked.returncode, checked.stdout


def test_imports_go_down_the_line_and_libraries_stay_in_their_rooms():
    code, report = lint(ROOT)
    assert code == 0, report


def test_a_library_imported_outside_its_rooms_is_found_in_whichever_module(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "hel_lsp", tmp_path / "hel_lsp", ignore=shutil.ignore_patterns("__pycache__"))
    modules: list[str] = []
    for file in (tmp_path / "hel_lsp").rglob("*.py"):
        file.write_text(f"{file.read_text(encoding='utf-8')}\nimport {', '.join(KNOWN_IN)}\n", encoding="utf-8")
        modules.append(".".join(file.relative_to(tmp_path).with_suffix("").parts).removesuffix(".__init__"))
    _, report = lint(tmp_path)
    for library, rooms in KNOWN_IN.items():
        found = set(re.findall(rf"(hel_lsp[\w.]*) -> {library} ", report))
        assert found == {name for name in modules if not name.removeprefix("hel_lsp.").startswith(rooms)}


def test_the_server_starts_without_what_only_a_turn_needs():
    program = (
        "import json, sys; import hel_lsp.cli.main, hel_lsp.cli.compose, hel_lsp.lsp.server, hel_lsp.lsp.wire; "
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"pydantic", "httpx", "httpx2", "mcp", "jsonschema", "sqlite3", "yaml"}
    assert heavy.isdisjoint(json.loads(loaded.stdout))
