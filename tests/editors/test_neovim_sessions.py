"""Sessions in Neovim: chosen from a list or by their id, shown as they were, and gone on with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.editors.neovim import EDIT, EDITORS, ModelThread, at_work, call, lay_out, text


def said_to(model: ModelThread) -> list[str]:
    """The prompts in the newest request."""
    return [message["content"] for message in model.script.requests[-1]["messages"] if message["role"] == "user"]


def keep_sessions(nvim: str, folder: Path, *prompts: str) -> list[str]:
    """The ids of sessions that an editor, which is gone, has had with these prompts, in their order."""
    lay_out(folder)
    with at_work(nvim, folder, "config.ini", replies=[text(f"About {prompt}.") for prompt in prompts]) as (editor, _):
        sessions: list[str] = []
        for prompt in prompts:
            editor.keys(f":HelAsk! {prompt}<CR>")
            sessions.append(editor.wait_for_end()["session"])
        return sessions


def set_time(folder: Path, session: str, seconds: float) -> None:
    """Have everything in the session's file said at this time."""
    (file,) = (folder / "hel-state" / "sessions").glob(f"*/{session}.jsonl")
    entries: list[dict[str, Any]] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    file.write_text("".join(json.dumps({**entry, "time": seconds}) + "\n" for entry in entries), encoding="utf-8")


@EDITORS
def test_a_session_is_chosen_from_a_list_shown_as_it_was_and_gone_on_with(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    looked = {"text": "I look.\n\n- one\n- two", **call("read_file", path="config.ini")}
    replies = [looked, EDIT, text("Done: `8437`."), text("Ready."), text("Other.")]
    with at_work(nvim, tmp_path, "config.ini", replies=replies, access="auto") as (editor, _):
        for command in ("HelAsk change the port", "HelAsk is it ready?", "HelAsk! another matter"):
            editor.keys(f":{command}<CR>")
            editor.wait_for_end()

    with at_work(nvim, tmp_path, "config.ini", replies=[text("Here again.")]) as (editor, model):
        editor.keys(":HelSessions<CR>")
        editor.wait_for_screen("another matter (1 turn)", "change the port (2 turns)", "Type number")
        assert editor.screen.text.index("another matter") < editor.screen.text.index("change the port")
        editor.keys("2<CR>")
        editor.wait_for_screen("Ready.")
        assert editor.transcript().splitlines() == [
            "## You",
            "",
            "change the port",
            "",
            "## hel",
            "",
            "I look.",
            "",
            "- one",
            "- two",
            "",
            "- `read_file` config.ini",
            "      path: config.ini",
            "- `search_replace` config.ini",
            "      path: config.ini",
            "      replace: port=8437",
            "      search: port=7000",
            "",
            "Done: `8437`.",
            "",
            "## You",
            "",
            "is it ready?",
            "",
            "## hel",
            "",
            "Ready.",
        ]
        assert "replace: port=8437" not in editor.screen.text
        assert editor.lua("return vim.fn.expand('%:t')") == "config.ini"

        editor.ask("and now?")
        assert editor.wait_for_end()["turn"] == 3
        assert editor.transcript().endswith(
            "Ready.\n\n## You\n\nand now?\n\n*about config.ini*\n\n## hel\n\nHere again."
        )
        assert ["change the port" in said_to(model)[0], len(said_to(model))] == [True, 3]


@EDITORS
def test_hel_resume_takes_the_newest_or_the_one_that_is_named(nvim: str, tmp_path: Path) -> None:
    older, newer = keep_sessions(nvim, tmp_path, "apples", "pears")
    with at_work(nvim, tmp_path, "config.ini", replies=[text("More pears."), text("More apples.")]) as (editor, model):
        editor.keys(":HelResume<CR>")
        editor.wait_for_screen("About pears.")
        editor.ask("go on")
        assert editor.wait_for_end()["session"] == newer

        editor.keys(f":HelResume {older}<CR>")
        editor.wait_for_screen("About apples.")
        assert "pears" not in editor.transcript()
        editor.ask("go on")
        assert editor.wait_for_end()["session"] == older
        assert ["apples" in said_to(model)[0], len(said_to(model))] == [True, 2]


@EDITORS
@pytest.mark.parametrize(
    ("zone", "seconds", "shown"),
    [
        ("EST5EDT,M3.2.0,M11.1.0", 1769860800, "2026-01-31 07:00"),
        ("EST5EDT,M3.2.0,M11.1.0", 1751371200, "2025-07-01 08:00"),
        ("IST-5:30", 1769860800, "2026-01-31 17:30"),
    ],
)
def test_the_list_shows_the_time_as_the_user_s_clock_did(
    nvim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str, seconds: float, shown: str
) -> None:
    (session,) = keep_sessions(nvim, tmp_path, "apples")
    set_time(tmp_path, session, seconds)
    monkeypatch.setenv("TZ", zone)
    with at_work(nvim, tmp_path, "config.ini") as (editor, _):
        editor.keys(":HelSessions<CR>")
        editor.wait_for_screen("apples (1 turn)")
        assert re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d", editor.screen.text) == [shown]


@EDITORS
def test_a_list_that_is_dismissed_resumes_nothing(nvim: str, tmp_path: Path) -> None:
    (kept,) = keep_sessions(nvim, tmp_path, "apples")
    with at_work(nvim, tmp_path, "config.ini", replies=[text("Fresh.")]) as (editor, model):
        editor.keys(":HelSessions<CR>")
        editor.wait_for_screen("Type number")
        editor.keys("<Esc>")
        editor.ask("something new")
        assert editor.wait_for_end()["session"] != kept
        assert len(said_to(model)) == 1


@EDITORS
def test_without_a_session_or_with_the_wrong_id_the_reason_is_shown_and_the_transcript_stays(
    nvim: str, tmp_path: Path
) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[text("Hello.")]) as (editor, _):
        for command, reason in [
            ("HelSessions", "There is no session to resume in this workspace"),
            ("HelResume", "There is no session to resume in this workspace"),
            ("HelAsk hello", "Hello."),
            ("HelResume gone", "there is no session 'gone' in this workspace"),
        ]:
            editor.keys(f":{command}<CR>")
            editor.wait_for_screen(reason)
            editor.keys(":mode<CR>")
            editor.wait_until(lambda: "no session" not in editor.screen.text, "the message to go away")
        assert editor.transcript().endswith("Hello.")


@EDITORS
def test_a_session_that_is_open_in_another_editor_is_refused_with_the_reason(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[text("Hello.")]) as (first, _):
        first.ask("hello")
        session = first.wait_for_end()["session"]
        with at_work(nvim, tmp_path, "config.ini") as (second, _):
            second.keys(":HelSessions<CR>")
            second.wait_for_screen("hello (1 turn)")
            second.keys("1<CR>")
            second.wait_for_screen(f"{session} is in use in another editor")
            assert second.lua("return vim.fn.bufexists('hel://session')") == 0


@EDITORS
def test_a_session_whose_server_was_killed_in_mid_turn_is_resumed_and_goes_on(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    replies = [call("read_file", path="config.ini"), {"text": "Let me think", "hold": True}]
    with at_work(nvim, tmp_path, "config.ini", replies=replies) as (editor, model):
        editor.ask("change the port")
        editor.wait_for_event("text", delta=" think")
        editor.server.kill()
        editor.wait_for_screen("Client hel quit")
        editor.keys("<CR>")
        editor.wait_for_screen("ended in the middle of a turn")

        editor.keys(":HelResume<CR>")
        editor.wait_for_screen("stopped in the middle of turn 1")
        editor.keys("<CR>")
        editor.wait_for_screen("- `read_file` config.ini", "The turn ended here: hel-lsp was stopped.")
        assert "Let me think" not in editor.transcript()
        model.say(EDIT, text("Done."))
        editor.ask("go on")
        editor.answer("Allow once")
        assert editor.wait_for_end()["turn"] == 2
        assert "port=8437" in editor.text()
        assert ["change the port" in said_to(model)[0], len(said_to(model))] == [True, 2]


@EDITORS
def test_resuming_a_session_while_its_turn_runs_loses_nothing_of_the_transcript(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[{"text": "Let me think", "hold": True}]) as (editor, _):
        editor.ask("take your time")
        editor.wait_for_event("text", delta=" think")
        editor.lua("require('hel').setup({ transcript = { open = false } })")
        editor.keys(":HelTranscript<CR>:HelResume<CR>")
        editor.wait_for_screen("goes on with the resumed session")
        editor.keys(":HelCancel<CR>")
        assert editor.wait_for_end()["stopReason"] == "cancelled"
        assert editor.transcript().endswith("## hel\n\nLet me think\n\n*cancelled*")


@EDITORS
def test_what_another_turn_says_after_a_resume_comes_under_a_heading_of_its_own(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    replies = [call("read_file", path="config.ini"), text("About apples.")]
    with at_work(nvim, tmp_path, "config.ini", replies=replies) as (editor, _):
        editor.ask("apples")
        kept = editor.wait_for_end()["session"]
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT, text("Done.")]) as (editor, _):
        editor.lua("vim.ui.select = function(_, _, choose) _G.choose = choose end")
        editor.ask("change the port")
        editor.wait_for_screen("+port=8437")
        editor.keys(f":HelResume {kept}<CR>")
        editor.wait_for_screen("About apples.")
        editor.lua("_G.choose({ title = 'Allow once' })")
        editor.wait_for_end()
        shown = editor.transcript()
        assert shown.startswith(
            "## You\n\napples\n\n## hel\n\n- `read_file` config.ini\n      path: config.ini\n\nAbout apples.\n\n"
            "## hel\n\n- `search_replace` config.ini (completed)"
        )
        assert shown.count("(pending)") == 0


@EDITORS
def test_no_fold_and_no_place_of_what_was_shown_before_is_left_after_a_resume(nvim: str, tmp_path: Path) -> None:
    (kept,) = keep_sessions(nvim, tmp_path, "apples")
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT, text("Done.")], access="auto") as (editor, _):
        editor.ask("change the port")
        editor.wait_for_end()
        editor.keys(f":HelResume {kept}<CR>")
        editor.wait_for_screen("About apples.")
        editor.keys("<C-w>lgg")
        assert editor.lua("return vim.tbl_map(vim.fn.foldlevel, vim.fn.range(1, vim.fn.line('$')))") == [0] * 7
        editor.keys("<CR>")
        assert editor.lua("return vim.fn.expand('%')") == "hel://session"


@EDITORS
def test_with_the_transcript_left_closed_a_resume_leaves_it_closed(nvim: str, tmp_path: Path) -> None:
    keep_sessions(nvim, tmp_path, "apples")
    with at_work(nvim, tmp_path, "config.ini") as (editor, _):
        editor.lua("require('hel').setup({ transcript = { open = false } })")
        editor.keys(":HelResume<CR>")
        editor.wait_for_screen("goes on with the resumed session")
        assert editor.lua("return #vim.api.nvim_list_wins()") == 1
        editor.keys(":HelTranscript<CR>")
        editor.wait_for_screen("About apples.")
