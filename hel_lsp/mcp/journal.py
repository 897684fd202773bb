"""What becomes known of a server beside its answers: for the run log and for `hel.tools`, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hel_lsp.mcp.text import harmless
from hel_lsp.ports import RunLog

_TAIL = 2000  # characters of standard error that a failure quotes
_SKIPPED = 20  # lines that are no messages which the run log gets
_SECRET = re.compile(r"key|token|secret|passw|auth|credential|cookie", re.IGNORECASE)
_SECRET_LENGTH = 6  # shorter ones would blot out the log


class Journal:
    """The diagnostics of one server, and its lines in the run log. `given` are its variables and headers."""

    def __init__(self, server: str, given: Mapping[str, str], log: RunLog) -> None:
        self.diagnostics: list[str] = []
        self._server = server
        self._log = log
        self._secrets = _secrets(given)
        self._stderr = ""
        self._skipped = 0

    def begin(self) -> None:
        """Forget what was known of an earlier run."""
        self.diagnostics = []
        self._stderr = ""
        self._skipped = 0

    def status(self, status: str, protocol_version: str | None) -> None:
        self._write("mcp_server", status=status, protocol=protocol_version)

    def note(self, diagnostic: str) -> None:
        self.diagnostics.append(diagnostic)
        self._write("mcp_diagnostic", text=diagnostic)

    def failed(self, reason: str) -> None:
        """Note why it is down, with the end of what it wrote to standard error."""
        last_words = self._stderr.strip()
        self.note(f"{reason}; its last words: {last_words}" if last_words else reason)

    def heard(self, text: str) -> None:
        """A part of its standard error."""
        text = self._without_secrets(text)
        self._stderr = (self._stderr + text)[-_TAIL:]
        self._write("mcp_stderr", text=text)

    def skipped(self, reason: str) -> None:
        """A line of its output that was no message."""
        self._skipped += 1
        if self._skipped <= _SKIPPED:
            self._write("mcp_skipped_line", text=self._without_secrets(reason))

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return harmless(text)

    def _write(self, kind: str, **fields: Any) -> None:
        self._log.write(kind, server=self._server, **fields)


def _secrets(given: Mapping[str, str]) -> list[str]:
    """The values under names that look secret, and the words of those values, the longest first."""
    values = [value for name, value in given.items() if _SECRET.search(name)]
    words = {word for value in values for word in (value, *value.split()) if len(word) >= _SECRET_LENGTH}
    return sorted(words, key=len, reverse=True)
