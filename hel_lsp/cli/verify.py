"""`hel-lsp verify LOG`: whether any line of a run log was changed, removed or cut off."""

from __future__ import annotations

from pathlib import Path

from hel_lsp.agent.runlog import verify
from hel_lsp.agent.store import seals
from hel_lsp.errors import ConfigError


def run_verify(log: Path) -> int:
    """Say what is wrong with `log`; 0 when nothing is, else 1. Raises ConfigError for what cannot be read."""
    session = next(log.absolute().parent.parent.glob(f"sessions/*/{log.name}"), None)
    try:
        verdict = verify(log.read_bytes(), seals(session) if session is not None else [])
    except OSError as error:
        raise ConfigError(f"{error.filename or log} cannot be read: {error.strerror}.") from error
    for problem in verdict.problems:
        print(f"{log}: {problem}")
    if session is None:
        print(f"{log}: its session's file is not there, so whether its end was cut off cannot be told")
    elif verdict.unsealed and not verdict.problems:
        print(f"{log}: the last {verdict.unsealed} lines are of no turn that has ended")
    if not verdict.problems:
        print(f"{log}: {verdict.lines} lines, none changed or removed")
    return 1 if verdict.problems else 0
