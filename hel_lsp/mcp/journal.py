"""What becomes known of a server beside its answers: for the run log and for `hel.tools`, without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from hel_lsp.mcp.text import harmless
from hel_lsp.ports import RunLog
from hel_lsp.redaction import Redaction, secret_values

STDERR_LIMIT = 1 << 16
"""Bytes of a server's standard error that the run log gets, however often it is started; also of one line."""

_TAIL = 2000  # characters of standard error that a failure quotes
_SKIPPED = 20  # lines that are no messages which the run log gets
# What a project's file names is hidden sooner than what the environment happens to hold.
_SECRET = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)


class Journal:
    """The diagnostics of one server, and its lines in the run log. `given` are its variables and headers."""

    def __init__(self, server: str, given: Iterable[tuple[str, str]], log: RunLog) -> None:
        self.diagnostics: list[str] = []
        self._server = server
        self._log = log
        self._secrets = secret_values(os.environ) | {value for name, value in given if _SECRET.search(name)}
        self._redaction = Redaction(self._secrets)
        self._room = STDERR_LIMIT
        self._forget()

    def _forget(self) -> None:
        self._last_words = ""
        self._unfinished = ""
        self._overlong = False
        self._skipped = 0

    def begin(self) -> None:
        """Forget what was known of an earlier run."""
        self.diagnostics = []
        self._forget()

    def hide(self, secret: str) -> None:
        """Something that the server is given later on: what it says does not go into the log."""
        if secret not in self._secrets:
            self._secrets.add(secret)
            self._redaction = Redaction(self._secrets)

    def status(self, status: str, protocol_version: str | None) -> None:
        self._write("mcp_server", status=status, protocol=protocol_version)

    def note(self, diagnostic: str) -> str:
        """Keep it; as it is kept."""
        diagnostic = self._without_secrets(diagnostic)
        self.diagnostics.append(diagnostic)
        self._write("mcp_diagnostic", text=diagnostic)
        return diagnostic

    def failed(self, reason: str) -> str:
        """Note why it is down, with the end of what it wrote to standard error; the reason as it is kept."""
        reason = self.note(reason)
        last_words = self._last_words + self._without_secrets(self._unfinished, broken_off=True)
        if last_words.strip():
            self.diagnostics[-1] += f"; its last words: {last_words[-_TAIL:].strip()}"
        return reason

    def heard(self, text: str) -> None:
        """The next part of its standard error, "" at its end. Looked at are whole lines: a secret may come in two."""
        if self._overlong:
            _, newline, text = text.partition("\n")
            self._overlong = not newline
        whole, newline, self._unfinished = (self._unfinished + text).rpartition("\n")
        if newline:
            self._take(self._without_secrets(whole + newline))
        self._overlong = self._overlong or len(self._unfinished) > STDERR_LIMIT
        if not text or self._overlong:
            self._take(self._without_secrets(self._unfinished[:STDERR_LIMIT], broken_off=True))
            self._unfinished = ""

    def _take(self, text: str) -> None:
        self._last_words = (self._last_words + text)[-_TAIL:]
        kept = text.encode(errors="replace")[: self._room]
        self._room -= len(kept)
        if kept:
            self._write("mcp_stderr", text=kept.decode(errors="ignore"))

    def skipped(self, reason: str) -> None:
        """A line of its output that was no message."""
        self._skipped += 1
        if self._skipped <= _SKIPPED:
            self._write("mcp_skipped_line", text=self._without_secrets(reason, broken_off=True))

    def _without_secrets(self, text: str, *, broken_off: bool = False) -> str:
        return self._redaction.known(harmless(text), broken_off=broken_off)

    def _write(self, kind: str, **fields: Any) -> None:
        self._log.write(kind, server=self._server, **fields)
