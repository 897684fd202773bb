"""The wording of questions: short enough for every editor, complete enough to decide on."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from hel_lsp.ports import Preview, Question, TrustRequest

LIMIT = 900
"""Characters of a message; one editor drops line breaks and cuts at 1,000."""

REJECT = "Reject"
ALLOW_ONCE = "Allow once"
ALLOW_SESSION = "Allow for session"
ALLOW_ALWAYS = "Always allow"

TRUST = "Trust"
DONT_TRUST = "Don't trust"


def approval(session: str, tool: str, preview: Preview, *, once_only: bool = False, why: str | None = None) -> Question:
    """The question whether `tool` may do what `preview` says; `why` tells what makes it ask in any case.

    What it comes to goes into the message where it fits, its lines parted by ` ⏎ ` so that it also reads well on
    one line; else it is left to be shown whole beside the question.
    """
    actions = (REJECT, ALLOW_ONCE) if once_only else (REJECT, ALLOW_ONCE, ALLOW_SESSION, ALLOW_ALWAYS)
    head = f"{tool}: {preview.summary}" + (f", which {why}" if why else "")
    return _question(session, head, preview, actions)


def trust(session: str, request: TrustRequest) -> Question:
    """The question whether what a project file would start or allow may be."""
    preview = Preview(f"{request.file.name} wants to {request.wants}:", "\n".join(request.lines))
    return _question(session, f"Trust this project? {preview.summary}", preview, (DONT_TRUST, TRUST))


def from_server(session: str, message: str, actions: Sequence[str]) -> Question:
    """What an MCP server asks for in the middle of a call."""
    return _question(session, message, Preview("", detail=message), tuple(actions))


def _question(session: str, head: str, preview: Preview, actions: tuple[str, ...]) -> Question:
    lines = [head, *(line for line in preview.brief.split("\n") if line.strip())]
    whole = _visible(" ⏎ ".join(lines))
    if len(whole) <= LIMIT:
        return Question(session, whole, actions, edit=preview.edit)
    return Question(session, _cut(_visible(head)), actions, detail=preview.detail or preview.brief, edit=preview.edit)


def _visible(text: str) -> str:
    """The text with control and formatting characters spelled out: none may hide or turn round what is asked."""
    return "".join(
        ascii(character)[1:-1] if unicodedata.category(character) in ("Cc", "Cf") and character != "\t" else character
        for character in text
    )


def _cut(text: str) -> str:
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"
