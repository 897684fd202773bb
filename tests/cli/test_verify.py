"""The run log: a chain that shows damage, and no place for secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hel_lsp.agent.runlog import JsonLinesLog
from hel_lsp.agent.store import SessionStore
from hel_lsp.cli import main


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a session with two ended turns, of three and two lines, and a line after them."""
    path = tmp_path / "logs" / "one.jsonl"
    log = JsonLinesLog(path)
    session = SessionStore(tmp_path / "sessions").create("one", None)
    for turn, lines in ((1, 3), (2, 2)):
        for number in range(lines):
            log.write("call", turn=turn, number=number)
        log.sync()
        session.append("end", turn=turn, stop="end_turn", log=log.newest)
    session.close()
    log.write("opened")
    return path


def verdict(log: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["verify", str(log)])
    return code, capsys.readouterr().out


def test_a_whole_log_is_said_to_be_whole(log, capsys):
    code, said = verdict(log, capsys)
    assert code == 0
    assert "6 lines, none changed or removed" in said
    assert "the last 1 lines are of no turn that has ended" in said


@pytest.mark.parametrize("number", range(5))
def test_a_line_that_was_changed_is_found(log, capsys, number):
    lines = log.read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'"call"', b'"cell"')
    log.write_bytes(b"".join(lines))
    assert verdict(log, capsys)[0] == 1


@pytest.mark.parametrize("number", range(5))
def test_a_line_that_was_removed_is_found(log, capsys, number):
    lines = log.read_bytes().splitlines(keepends=True)
    del lines[number]
    log.write_bytes(b"".join(lines))
    assert verdict(log, capsys)[0] == 1


@pytest.mark.parametrize("kept", range(5))
def test_a_log_that_was_cut_off_is_found_by_what_its_session_knows(log, capsys, kept):
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:kept]))
    code, said = verdict(log, capsys)
    assert code == 1
    assert "the line that ended turn 2 is not there" in said


def test_a_change_with_a_chain_made_anew_is_found_by_what_its_session_knows(log, capsys):
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    log.unlink()
    forged = JsonLinesLog(log)
    for entry in entries:
        forged.write(entry["kind"], turn=entry.get("turn"), number=7)
    code, said = verdict(log, capsys)
    assert code == 1
    assert "turn 1" in said
    assert "does not follow" not in said


def test_half_a_line_at_the_end_is_found(log, capsys):
    log.write_bytes(log.read_bytes() + b'{"time"')
    code, said = verdict(log, capsys)
    assert code == 1
    assert "line 7 was never finished" in said


def test_without_its_session_the_chain_alone_is_judged_and_that_is_said(log, capsys):
    next(log.parent.parent.glob("sessions/*/one.jsonl")).unlink()
    code, said = verdict(log, capsys)
    assert code == 0
    assert "whether its end was cut off cannot be told" in said


def test_a_log_that_is_not_there_is_an_error_of_its_own(tmp_path, capsys):
    assert main(["verify", str(tmp_path / "gone.jsonl")]) == 2
    assert "gone.jsonl" in capsys.readouterr().err


def test_a_later_process_goes_on_with_the_chain_and_drops_half_a_line(log, capsys):
    log.write_bytes(log.read_bytes() + b'{"time"')
    JsonLinesLog(log).write("resumed")
    assert verdict(log, capsys)[0] == 0
    assert log.read_text().count("\n") == 7


def test_secrets_do_not_get_into_the_log(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-from-the-environment")
    log = JsonLinesLog(tmp_path / "log.jsonl")
    log.write(
        "call",
        arguments=json.dumps({"command": "curl -H 'Authorization: Bearer abc.def-ghi' -d password=hunter22 x"}),
        headers={"Authorization": "Basic Zm9vOmJhcg==", "X-Api-Key": "0123456789", "Accept": "text/html"},
        text="started with sk-from-the-environment, API_TOKEN=t0ken-value, postgres://me:pa55word@host/db",
        input_tokens=12,
    )
    written = (tmp_path / "log.jsonl").read_text()
    for secret in ("sk-from", "abc.def", "hunter22", "Zm9v", "0123456789", "t0ken-value", "pa55word"):
        assert secret not in written
    entry = json.loads(written)
    assert entry["headers"]["Accept"] == "text/html"
    assert entry["input_tokens"] == 12
    assert entry["text"].endswith("@host/db")


def test_what_is_known_to_be_secret_is_hidden_whatever_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_MODEL", "key-of-the-model")
    log = JsonLinesLog(tmp_path / "log.jsonl", ["MY_MODEL"])
    log.write("mcp_stderr", text="got key-of-the-model")
    assert json.loads((tmp_path / "log.jsonl").read_text())["text"] == "got [hidden]"


def test_an_ordinary_text_stays_as_it_is(tmp_path):
    log = JsonLinesLog(tmp_path / "log.jsonl")
    text = "the tokenizer counts tokens: 12; a key is pressed; secret agents; author: me; monkey=banana-split"
    log.write("note", text=text)
    assert json.loads((tmp_path / "log.jsonl").read_text())["text"] == text
