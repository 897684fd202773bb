"""The wording of questions: short enough for every editor, complete enough to decide on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from hel_lsp.ports import Preview, Question, TrustRequest

LIMIT = 900
"""Characters of a message; one editor drops line breaks and cuts at 1,000."""

BEGINNING = 300
"""Characters that a longer question shows of what it is about."""

SEPARATOR = " ⏎ "
"""Parts the lines of a message. It never comes from the text that is asked about."""

ELSEWHERE = f"…{SEPARATOR}This is the beginning; the whole is shown beside this question."

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
    lines = "\n".join(spelled(line) for line in request.lines)
    preview = Preview(f"{request.file.name} wants to {request.wants}:", lines)
    return _question(session, f"Trust this project? {preview.summary}", preview, (DONT_TRUST, TRUST))


def from_server(session: str, message: str, actions: Sequence[str]) -> Question:
    """What an MCP server asks for in the middle of a call."""
    return _question(session, message, Preview("", detail=message), tuple(actions))


def lines(message: str) -> list[str]:
    """The lines of a question's message, for where they can be shown below each other."""
    return message.split(SEPARATOR)


def spelled(text: str) -> str:
    """One line of text with all spelled out that could hide, fake or turn round what is asked.

    These are control and formatting characters, the sign that parts lines, blank-looking characters other than
    space and tab, and runs of blanks longer than an indentation or a gap would be.
    """
    shown = "".join(ascii(character)[1:-1] if _misleads(character) else character for character in text)
    return _BLANKS.sub(lambda run: f"[{len(run[0])} blanks]", shown)


# A gap in a line, or an indentation, which may stand behind the sign of a changed line.
_BLANKS = re.compile(r"(?<=[^ \t])(?<!^[+-])[ \t]{9,}|[ \t]{41,}")

# Characters that are drawn as nothing though their category does not say so: Unicode's Default_Ignorable_Code_Point
# outside of Cf, the blank pattern of Braille, and a musical symbol without a shape.
_BLANK_LOOKING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U0001d159\U000e0000-\U000e0fff]"
)


def _misleads(character: str) -> bool:
    if character in " \t":
        return False
    category = unicodedata.category(character)
    return character == "⏎" or category in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp") or bool(_BLANK_LOOKING.match(character))


def _question(session: str, head: str, preview: Preview, actions: tuple[str, ...]) -> Question:
    first = spelled(head)
    rest = SEPARATOR.join(spelled(line) for line in preview.brief.split("\n") if line.strip())
    whole = f"{first}{SEPARATOR}{rest}" if rest else first
    if len(whole) <= LIMIT:
        return Question(session, whole, actions, edit=preview.edit)
    detail = preview.detail or preview.brief
    room = LIMIT - len(ELSEWHERE) - (len(SEPARATOR) + BEGINNING + 1 if rest else 0)
    if len(first) > room and head not in detail:
        detail = f"{head}\n{detail}"
    if rest:
        message = (first if len(first) <= room else first[:room] + "…") + SEPARATOR + rest[:BEGINNING]
    else:
        message = first[:room]
    return Question(session, message + ELSEWHERE, actions, detail=detail, edit=preview.edit)
