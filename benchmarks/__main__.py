"""`make bench`: every benchmark that needs no argument, one after another."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("startup", "requests", "edit_engine", "edits")

for name in BENCHMARKS:
    print(f"\n== {name}\n", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
