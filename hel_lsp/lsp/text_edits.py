"""One edit as the `TextEdit` that has exactly its effect in this client: clients differ in how they hold a text.

- Neovim, Helix and Emacs end lines at `\\n` alone: a lone `\\r` is a character like any other there.
- VS Code, Zed and Kate make all line ends of a file one when they load it.
- VS Code, Neovim and Zed bring what is inserted to the line end of the buffer; others insert it as it was sent.
- Emacs, Kate and Zed hold a file with `\\r\\n` as one with `\\n` and put the `\\r` back when they save.
- Neovim keeps the final newline apart from the lines, and shows an empty file as one empty line.

Where an edit cannot come out right it is refused, with the reason.
"""

from __future__ import annotations

import dataclasses
import re

from lsprotocol import types

from hel_lsp.errors import FileRefused
from hel_lsp.lsp.client import ClientFacts
from hel_lsp.messages import FileEdit
from hel_lsp.tools.lines import PositionEncoding, offset_to_position

_LONE_CR = re.compile(r"\r(?!\n)")


def fitted(edit: FileEdit, facts: ClientFacts, *, opened: bool) -> FileEdit:
    """The edit as this client can make it without changing a byte more. Raises FileRefused where it cannot.

    It is one of the text as the client will hold it, so that what takes it back fits there too.
    `opened` says that `edit.before` is what the client sent, and not what the disk has.
    """
    _refuse_changed_line_ends(edit, facts, opened=opened)
    if "\r\n" in edit.text:
        _refuse_mixed_up_line_ends(edit, edit.before or "", facts, opened=opened)
    if not opened and facts.holds_lf_only and (edit.before is None or is_crlf(edit.before)):
        edit = _with_lf(edit)
    return _with_final_newline_as_it_was(edit, opened=opened) if facts.owns_final_newline else edit


def text_edit(edit: FileEdit, facts: ClientFacts, encoding: PositionEncoding, *, opened: bool) -> types.TextEdit:
    """The one replacement that is sent for an edit that was `fitted`."""
    text, before = edit.text, edit.before
    if before is None or (not before and not opened):
        # Ends on the next line: with an empty range Neovim would save one more line end.
        return types.TextEdit(types.Range(types.Position(0, 0), types.Position(1, 0)), text)
    if _has_lone_cr(before):
        before = _LONE_CR.sub(" ", before)
    # The text up to the edit is passed once.
    line_start = before.rfind("\n", 0, edit.start) + 1
    line, character = offset_to_position(before, edit.start, encoding)
    lines, end_character = offset_to_position(before[line_start : edit.end], edit.end - line_start, encoding)
    start, end = types.Position(line, character), types.Position(line + lines, end_character)
    if facts.owns_final_newline and edit.after in ("", "\n", "\r\n") and not text and not edit.start:
        # Nothing is left: up to behind the last line, or an empty line would be saved as a line end.
        end = types.Position(end.line + 1, 0)
    return types.TextEdit(types.Range(start, end), text)


def is_crlf(text: str) -> bool:
    """Whether there are line ends, and all of them are `\\r\\n`."""
    pairs = text.count("\r\n")
    return pairs > 0 and pairs == text.count("\n")


def _with_lf(edit: FileEdit) -> FileEdit:
    """The edit as it is in the text with `\\n` for each `\\r\\n`. Raises FileRefused where that makes a `\\r\\n`."""
    before, text = edit.before, edit.text.replace("\r\n", "\n")
    if before is None:
        return dataclasses.replace(edit, text=text)
    start, end = (offset - before.count("\r\n", 0, offset) for offset in (edit.start, edit.end))
    before = before.replace("\r\n", "\n")
    fit = FileEdit(edit.path, before, start, end, text)
    if fit.after.count("\r\n") > before.count("\r\n"):
        raise FileRefused(
            f"{edit.path.name} would have a lone carriage return (U+000D) in front of a line end, and what this editor "
            "sends of them looks like one line end."
        )
    return fit


def _has_lone_cr(text: str) -> bool:
    return "\r" in text and text.count("\r") != text.count("\r\n")


def _refuse_changed_line_ends(edit: FileEdit, facts: ClientFacts, *, opened: bool) -> None:
    before = edit.before or ""
    kept = opened or facts.keeps_line_ends(before)
    if _has_lone_cr(edit.text) and (facts.normalizes_line_ends or not facts.ends_lines_at_lf):
        raise FileRefused(
            f"The new text of {edit.path.name} has a lone carriage return (U+000D), which this editor may turn into a "
            "line end."
        )
    if _has_lone_cr(before) and not (kept and facts.ends_lines_at_lf):
        raise FileRefused(
            f"{edit.path.name} has a lone carriage return (U+000D), and this editor may count lines differently there."
        )
    if not kept:
        raise FileRefused(
            f"{edit.path.name} is not open, and this editor may change the line ends of other lines when it loads the "
            "file. Have it opened in the editor first."
        )


def _refuse_mixed_up_line_ends(edit: FileEdit, before: str, facts: ClientFacts, *, opened: bool) -> None:
    """For a replacement with `\\r\\n` in it, which a client may not insert as it is."""
    is_mixed = not is_crlf(edit.text) or ("\n" in before and not is_crlf(before))
    if facts.normalizes_line_ends and is_mixed:
        raise FileRefused(
            f"{edit.path.name} would have both \\r\\n and \\n as line ends, and this editor would make them all one in "
            "what it inserts. Edit one line at a time, or have the line ends made equal in the editor first."
        )
    if before and not opened and not (facts.normalizes_line_ends or facts.ends_lines_at_lf):
        raise FileRefused(
            f"{edit.path.name} has \\r\\n as line ends and is not open, and it is not known how this editor would "
            "hold it. Edit one line at a time, or have it opened in the editor."
        )


def _with_final_newline_as_it_was(edit: FileEdit, *, opened: bool) -> FileEdit:
    """The edit without what it would do to the final newline, which such a client writes or not by itself."""
    before, after = edit.before or "", edit.after
    only_that = f"Only the final newline of {edit.path.name} would change: that one is the editor's own."
    if not before and not opened:
        if edit.before == "" and after == "\n":
            raise FileRefused(only_that)
        return edit if after.endswith("\n") else dataclasses.replace(edit, text=edit.text + "\n")
    had, has = _final_line_end(before), _final_line_end(after)
    if has and not had:
        text = edit.text.removesuffix(has)
        fit = dataclasses.replace(edit, text=text, start=edit.start if edit.text else edit.start - len(has))
        if _final_line_end(fit.after):
            raise FileRefused(
                f"{edit.path.name} would end with an empty line: this editor adds the final newline itself."
            )
    elif had == "\r\n" and not has and not is_crlf(before):
        raise FileRefused(
            f"The last line of {edit.path.name} has \\r\\n, others \\n: this editor keeps a final newline."
        )
    elif had and not has:
        end = len(before) - len(had)
        # Text behind the final line end goes in front of it, with one of its own.
        text = had + edit.text if edit.start > end else edit.text
        fit = dataclasses.replace(edit, start=min(edit.start, end), end=end, text=text)
    else:
        return edit
    if fit.after == before:
        raise FileRefused(only_that)
    return fit


def _final_line_end(text: str) -> str:
    return "\r\n" if text.endswith("\r\n") else "\n" if text.endswith("\n") else ""
