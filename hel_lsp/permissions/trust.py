"""Trust in a project's files: nothing that a repository names is started before the user said yes to it."""

from __future__ import annotations

from pathlib import Path

from hel_lsp import state
from hel_lsp.permissions import question
from hel_lsp.ports import Approver, RunLog, TrustRequest


class TrustStore:
    """What was trusted: a file's path and the hash of the bytes that were shown, in the state folder."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "trust.json"

    def knows(self, request: TrustRequest) -> bool:
        return state.read_json(self._file).get(str(request.file)) == request.sha256

    def remember(self, request: TrustRequest) -> None:
        records = state.read_json(self._file)
        records[str(request.file)] = request.sha256
        state.write_json(self._file, records)


async def ask_for_trust(
    store: TrustStore, approver: Approver, session: str, log: RunLog, request: TrustRequest
) -> bool:
    """True when these very bytes are trusted, or are now; no answer is a no. Raises ConfigError."""
    if store.knows(request):
        return True
    answer = await approver.ask(question.trust(session, request))
    trusted = answer == question.TRUST
    log.write("trust", file=str(request.file), sha256=request.sha256, trusted=trusted)
    if trusted:
        store.remember(request)
    return trusted
