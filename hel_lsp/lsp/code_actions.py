"""Code actions: the agent in an editor that has no plugin for it."""

from __future__ import annotations

import re
from typing import Any

from lsprotocol import types

from hel_lsp.tools.lines import split_lines

_ASK = re.compile(r"^[\W_]*hel:\s*(\S.*?)\s*(?:\*+/|-->|\*\)|-\})?\s*$", re.IGNORECASE)
"""A line that holds a prompt: `hel:` after nothing but blanks and punctuation, less a comment's closing mark."""

TITLE_LIMIT = 60


def code_actions(params: types.CodeActionParams, text: str) -> list[types.CodeAction]:
    """The actions for a range: a prompt written on its first line, each diagnostic, and a selection to explain."""
    actions: list[types.CodeAction] = []
    where = params.range
    lines = split_lines(text)
    line = lines[where.start.line] if where.start.line < len(lines) else ""
    written = _ASK.match(line.rstrip("\r\n"))
    if written is not None:
        actions.append(_action(f"Ask hel: {_short(written[1])}", written[1], params, types.CodeActionKind.Empty))
    for diagnostic in params.context.diagnostics:
        message = " ".join(diagnostic.message.split())
        prompt = f"Fix this problem at line {diagnostic.range.start.line + 1}: {diagnostic.message}"
        action = _action(f"Fix with hel: {_short(message)}", prompt, params, types.CodeActionKind.QuickFix)
        action.diagnostics = [diagnostic]
        actions.append(action)
    if where.start != where.end:
        actions.append(_action("Explain with hel", "Explain the selected text.", params, types.CodeActionKind.Empty))
    only = params.context.only
    return [action for action in actions if only is None or any(_within(action.kind, kind) for kind in only)]


def _action(title: str, prompt: str, params: types.CodeActionParams, kind: types.CodeActionKind) -> types.CodeAction:
    where = params.range
    argument: dict[str, Any] = {
        "prompt": prompt,
        "textDocument": {"uri": params.text_document.uri},
        "range": {
            "start": {"line": where.start.line, "character": where.start.character},
            "end": {"line": where.end.line, "character": where.end.character},
        },
    }
    return types.CodeAction(title=title, kind=kind, command=types.Command(title, "hel.ask", arguments=[argument]))


def _short(text: str) -> str:
    return text if len(text) <= TITLE_LIMIT else text[: TITLE_LIMIT - 1] + "…"


def _within(kind: str | None, wanted: str) -> bool:
    """Whether a kind is `wanted` or below it; the empty kind is every kind's root."""
    mine, asked = str(getattr(kind, "value", kind)), str(getattr(wanted, "value", wanted))
    return asked == "" or mine == asked or mine.startswith(asked + ".")
