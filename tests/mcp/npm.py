"""Programs from npm, installed below .tools for the tests that need them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

TOOLS = Path(__file__).parents[2] / ".tools"


def install(name: str, packages: Sequence[str]) -> Path:
    """The folder of the modules, with these packages in it; a package is named with its version."""
    folder = TOOLS / name
    modules = folder / "node_modules"
    stamp = folder / "installed.txt"
    wanted = "\n".join(packages)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        npm = shutil.which("npm")
        assert npm is not None, "npm is needed to install what this runs"
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run([npm, "install", *options, *packages], cwd=folder, check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return modules
