"""Text from a server, made safe to show and to pass on."""

from __future__ import annotations

import re

# Escape sequences of terminals: CSI (colours, cursor), OSC and the other strings up to their end, two-character ones.
_STRING = r"\x1b[]PX^_](?:[^\x07\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\)"
_OTHER = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
_SEQUENCE = re.compile(f"{_STRING}|{_OTHER}")
_UNENDED = re.compile(_OTHER)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """`text` without terminal sequences and with every control character but tab and line feed made visible."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x9b" in text:  # the pattern is slow where it has nothing to begin with
        text = _without_sequences(text)
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _without_sequences(text: str) -> str:
    # Behind the last end of a string no string ends: each beginning there would be searched to the end of the text.
    bell, terminator = text.rfind("\x07"), text.rfind("\x1b\\")
    end = max(bell + 1, terminator + 2 if terminator >= 0 else 0)
    return _SEQUENCE.sub("", text[:end]) + _UNENDED.sub("", text[end:])


def size(count: int) -> str:
    """A number of bytes as people write it."""
    return (
        f"{count} bytes" if count < 1000 else f"{count / 1000:.0f} kB" if count < 10**6 else f"{count / 10**6:.1f} MB"
    )
