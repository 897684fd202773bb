"""What each access level lets a call do; the one table that decides."""

from __future__ import annotations

from typing import Literal

from hel_lsp.messages import Access, AccessLevel

Verdict = Literal["run", "ask", "refuse"]

_TABLE: dict[AccessLevel, dict[Access, Verdict]] = {
    "read-only": {"read": "run", "edit": "refuse", "execute": "refuse"},
    "confirm": {"read": "run", "edit": "ask", "execute": "ask"},
    "auto": {"read": "run", "edit": "run", "execute": "run"},
}


def verdict(level: AccessLevel, access: Access, *, always_ask: bool = False) -> Verdict:
    """`run`, `ask` or `refuse`; `always_ask` turns a `run` into an `ask`, and never softens a refusal."""
    decided = _TABLE[level][access]
    return "ask" if always_ask and decided == "run" else decided
