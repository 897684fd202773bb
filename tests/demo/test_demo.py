"""`hel-lsp demo`, as somebody sees it who has just cloned the project."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "hel_lsp", "demo"]


def test_without_a_terminal_it_plays_the_whole_task_and_says_that_it_answers_by_itself():
    ran = subprocess.run(COMMAND, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100, check=True)
    shown = ran.stdout
    assert "A scripted model stands in" in shown
    assert "answers the questions by itself" in shown
    assert shown.count("to the model") == 5
    first, second = re.findall(r"Request [12] to the model.*", shown)
    assert "mcp__" not in first
    assert "mcp__inventory__lookup_port" in second
    assert "Trust this project?" in shown
    assert '{"tool": "list_services", "arguments": {}}\n    {"tool": "lookup_port"' in shown
    assert re.search(r"port=7000 +→ port=8437", shown)
    sent, undeferred = map(int, re.findall(r"(\d+) bytes sent in all requests, (\d+) without", shown)[0])
    assert 0 < sent < undeferred
    assert "config.ini is as asked" in shown
    workspace = re.search(r"Workspace (\S+):", shown)
    assert workspace is not None
    assert not Path(workspace[1]).exists(), "nothing is left behind"


def test_what_the_server_logs_is_seen():
    environment = os.environ | {"HEL_LOG": "debug"}
    ran = subprocess.run(
        COMMAND, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100, check=True, env=environment
    )
    assert "httpx" in ran.stderr, "which the server alone has"


def test_in_a_terminal_it_asks_and_a_rejected_edit_is_not_made():
    person, terminal = pty.openpty()
    process = subprocess.Popen(COMMAND, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = ""
    # Trust is the second action, Allow once too; the edit is rejected, which is the first.
    for answer in ("2", "2", "2", "1"):
        shown = read_until(person, shown, "  > ", shown.count("  > ") + 1)
        os.write(person, f"{answer}\n".encode())
    shown = read_until(person, shown, "The turn ended", 1)
    assert process.wait(30) == 0
    os.close(person)
    assert "answers the questions by itself" not in shown
    assert "config.ini is not what was asked for" in shown
    assert "→ port=8437" not in shown


def at_the_first_question() -> tuple[subprocess.Popen[bytes], int, str]:
    """The demo at a terminal of its own, which passes Ctrl-C on as a signal."""
    person, terminal = pty.openpty()
    script = f"import fcntl, os, signal, termios; signal.signal(signal.SIGINT, signal.SIG_DFL); fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv({COMMAND[0]!r}, {COMMAND!r})"  # noqa: E501
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)
    return process, person, read_until(person, "", "  > ", 1)


def rest(terminal: int) -> str:
    shown = ""
    try:
        while part := os.read(terminal, 1 << 16):
            shown += part.decode()
    except OSError:  # how Linux tells that nobody has the terminal open any more
        pass
    os.close(terminal)
    return shown


def test_ctrl_c_at_a_question_ends_the_demo_at_once():
    process, person, _ = at_the_first_question()
    os.write(person, b"\x03")
    assert process.wait(30) == 130
    assert rest(person).strip() in ("", "^C")


def test_an_answer_that_is_no_number_is_asked_again_and_ctrl_d_is_a_no():
    process, person, shown = at_the_first_question()
    os.write(person, b"yes\n")
    shown = read_until(person, shown, "  > ", 2)
    assert "Type a number from 1 to 2." in shown
    os.write(person, b"\x04")
    shown = read_until(person, shown, "  > ", 3)  # the edit: without trust there is no call of the server to ask about
    os.write(person, b"\x04")
    shown = read_until(person, shown, "The turn ended", 1)
    assert process.wait(30) == 0
    assert "Traceback" not in shown
    assert "config.ini is not what was asked for" in shown
    os.close(person)


def test_live_without_a_model_says_why_the_turn_failed():
    nothing = dict.fromkeys(
        ("HEL_BASE_URL", "HEL_MODEL", "HEL_API_KEY", "OPENAI_API_KEY", "DEEPSEEK_API_KEY", "ANTHROPIC_API_KEY"), ""
    )
    ran = subprocess.run(
        [*COMMAND, "--live"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=100,
        env=os.environ | nothing,
        check=False,
    )
    assert ran.returncode == 1
    assert "HEL_MODEL" in ran.stdout


def read_until(terminal: int, shown: str, mark: str, count: int) -> str:
    while shown.count(mark) < count or (mark == "The turn ended" and not shown.rstrip().endswith(".")):
        shown += os.read(terminal, 1 << 16).decode()
    return shown
