"""What must not get into a log: the values of secret-looking variables, headers and fields."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
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


class Redaction:
    """Hides secrets in what is written down.

    Secrets are the values that `environment` has, when this is made, under names that look so or are among `names`.
    """

    def __init__(self, environment: Mapping[str, str], names: Collection[str] = ()) -> None:
        values = {value.strip() for name, value in environment.items() if name in names or looks_secret(name)}
        longest_first = sorted((value for value in values if len(value) >= SHORTEST), key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def of(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """`fields`, which are JSON, with HIDDEN in place of every secret."""
        return {name: HIDDEN if _is_secret(name, value) else self._value(value) for name, value in fields.items()}

    def text(self, text: str) -> str:
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
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


def _is_secret(name: str, value: object) -> bool:
    return isinstance(value, str) and bool(value) and looks_secret(name)
