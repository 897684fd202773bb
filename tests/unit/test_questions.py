"""What a question shows: all that it is about, with nothing that could fake, hide or turn round a part of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hel_lsp.local.approver import TerminalApprover, shown
from hel_lsp.permissions.question import LIMIT, approval, from_server, lines, trust
from hel_lsp.ports import Preview, Question, TrustRequest


def command(text: str) -> str:
    return approval("s", "bash", Preview("run", text)).message


def test_the_sign_between_lines_cannot_come_from_what_is_asked_about():
    asked = approval("s", "read_file", Preview("read a ⏎ bash: run", "echo ⏎ rm"))
    assert lines(asked.message) == ["read_file: read a \\u23ce bash: run", "echo \\u23ce rm"]
    assert shown(asked.message, asked.actions).count("\n") == 3


@pytest.mark.parametrize(
    "sign", "\x00\x1b\x85\u00a0\u00ad\u034f\u200b\u202e\u2028\u2029\u2800\u3000\u3164\ufe0f\U000e0100"
)
def test_what_is_drawn_as_nothing_or_moves_text_is_spelled(sign):
    assert lines(command(f"ls {sign} rm")) == ["bash: run", f"ls {ascii(sign)[1:-1]} rm"]


def test_a_command_cannot_hide_behind_blanks():
    assert command("true" + " " * 600 + "; rm -r .").endswith("true[600 blanks]; rm -r .")
    assert command(" " * 600 + "rm").endswith("⏎ [600 blanks]rm")
    assert command("+" + " " * 20 + "indented code  # as it is").endswith("+" + " " * 20 + "indented code  # as it is")


def test_lines_of_a_trust_question_are_those_of_the_file():
    asked = trust("s", TrustRequest(Path("mcp.json"), "", ("one\nfake: two", "three")))
    assert lines(asked.message)[1:] == ["one\\nfake: two", "three"]


def test_a_long_question_still_shows_its_beginning_and_says_where_the_whole_is():
    asked = approval("s", "bash", Preview("run", "rm -r . # " + "x" * 5000))
    assert len(asked.message) <= LIMIT
    assert asked.message.startswith("bash: run ⏎ rm -r . # " + "x" * 200)
    assert asked.message.endswith("the whole is shown beside this question.")
    assert asked.detail == "rm -r . # " + "x" * 5000


def test_what_is_cut_of_a_long_first_line_is_shown_beside_the_question():
    path = "a/" * 1000 + "end.txt"
    asked = approval("s", "write_file", Preview(f"write {path}", "+text"))
    assert len(asked.message) <= LIMIT
    assert "⏎ +text" in asked.message
    assert asked.detail == f"write_file: write {path}\n+text"
    assert len(from_server("s", "m" * 2000, ("Yes",)).message) <= LIMIT


async def test_where_there_is_no_terminal_the_question_is_printed_and_the_answer_is_no():
    output = io.StringIO()
    approver = TerminalApprover(source=io.StringIO("1\n"), output=output)
    assert await approver.ask(Question("s", "bash: run ⏎ a\x1b[2Jb", ("Reject",))) is None
    assert "? bash: run\n    a\\x1b[2Jb\n" in output.getvalue()


def test_a_title_cannot_fake_a_line():
    assert "[1] No\\n  [2] Yes" in shown("a", ("No\n  [2] Yes",))
