"""What must not get into a log: the values of secret-looking variables, headers and fields."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

HIDDEN = "[hidden]"

SHORTEST = 6
"""Characters of a value that is looked for: a shorter one would be found everywhere, in words and numbers."""

_WORDS = (
    r"(?:api[-_]?key|access[-_]?key|private[-_]?key|token|secret|passw(?:or)?d|passphrase|credential|"
    r"authorization|cookie)"
)

_NAME = re.compile(rf"{_WORDS}s?$|^auth$|[-_]key$", re.IGNORECASE)

# `NAME: value`, `NAME=value`, `"NAME": "value"`, with a scheme in front of the value as HTTP has it.
_ASSIGNED = re.compile(
    rf"""(\b[\w-]{{0,40}}{_WORDS}\b(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?(?:(?:bearer|basic|token)\s+)?)"""
    rf"""[^\s"'\\,;&}}]{{{SHORTEST},}}""",
    re.IGNORECASE,
)
_BEARER = re.compile(rf"\b(bearer\s+)[\w.~+/=-]{{{SHORTEST},}}", re.IGNORECASE)
_IN_URL = re.compile(r"(\w://[^\s/:@]*:)[^\s/@]+@")


def looks_secret(name: str) -> bool:
    """Whether a variable, header or field of this name is likely to hold a secret."""
    return _NAME.search(name) is not None


def secret_values(environment: Mapping[str, str], names: Collection[str] = ()) -> set[str]:
    """The values that `environment` has under names that look secret or are among `names`."""
    values = {value for name, value in environment.items() if looks_secret(name)}
    return values | {environment[name] for name in names if name in environment}


class Redaction:
    """Hides the values of `secrets`, and what looks like a secret, in what is written down."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # Each word too: a key of several lines is written line by line, and a token without the scheme before it.
        words = {word for secret in secrets for word in (secret.strip(), *secret.split()) if len(word) >= SHORTEST}
        self._secrets = sorted(words, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, self._secrets))) if words else None

    def of(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """`fields`, which are JSON, with HIDDEN in place of every secret."""
        return {name: HIDDEN if _is_secret(name, value) else self._value(value) for name, value in fields.items()}

    def known(self, text: str, *, broken_off: bool = False) -> str:
        """The text without the values that are known; where it breaks off, without the beginning of one at its end."""
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
        if broken_off:
            begun = max((_begun(secret, text) for secret in self._secrets), default=0)
            text = text[: len(text) - begun] + HIDDEN * bool(begun)
        return text

    def text(self, text: str) -> str:
        text = self.known(text)
        for pattern, kept in ((_ASSIGNED, rf"\1{HIDDEN}"), (_BEARER, rf"\1{HIDDEN}"), (_IN_URL, rf"\1{HIDDEN}@")):
            text = pattern.sub(kept, text)
        return text

    def _value(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return self.of(cast("Mapping[str, Any]", value))
            case list() | tuple():
                return [self._value(item) for item in cast("list[Any]", value)]
            case _:
                return value


def _begun(secret: str, text: str) -> int:
    """How many characters of `secret` there are at the end of `text`; 0 for few that may stand there by chance."""
    lengths = range(len(secret) - 1, SHORTEST - 1, -1)
    return next((length for length in lengths if text.endswith(secret[:length])), 0)


def _is_secret(name: str, value: object) -> bool:
    return isinstance(value, str) and bool(value) and looks_secret(name)
