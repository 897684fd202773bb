"""Approvals in Neovim: at the built-in list, with pickers that answer later or never, and while the user types."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.neovim import BEFORE, EDIT, EDITORS, at_work, lay_out, text


@EDITORS
@pytest.mark.parametrize("keys", ["q", "<Esc>", "<CR>", "1<CR>", "9<CR>"])
def test_a_question_that_is_not_answered_with_an_allowing_action_changes_nothing(
    nvim: str, tmp_path: Path, keys: str
) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT, text("Then not.")]) as (editor, model):
        editor.ask("change the port")
        editor.wait_for_screen("Allow once", "Type number")
        editor.keys(keys)
        result = editor.wait_for_end()

        assert result["stopReason"] == "end_turn"
        assert [made["status"] for made in result["toolCalls"]] == ["rejected"]
        assert editor.text() == BEFORE.splitlines()
        assert "reject" in model.tool_results()[0].lower()
        assert "Then not." in editor.transcript()
        assert "-port=7000" not in editor.screen.text


@EDITORS
def test_a_killed_server_takes_its_question_along(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT]) as (editor, _):
        editor.lua("vim.ui.select = function() end")
        editor.ask("change the port")
        editor.wait_for_screen("+port=8437")
        editor.server.kill()
        editor.wait_for_screen("Client hel quit")
        editor.keys("<CR>")
        editor.wait_until(lambda: "+port=8437" not in editor.screen.text, "the diff to go away")
        assert editor.lua("return require('hel').status()") == ""


@EDITORS
def test_a_picker_that_answers_later_is_waited_for(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT, text("Done.")]) as (editor, _):
        editor.lua(
            """
            vim.ui.select = function(items, options, on_choice)
              _G.asked = { titles = vim.tbl_map(options.format_item, items), prompt = options.prompt }
              _G.choose = function(position) on_choice(items[position], position) end
            end
            """
        )
        editor.ask("change the port")
        editor.wait_for_screen("+port=8437")
        assert editor.lua("return require('hel').status()") == "hel: waiting for your answer"
        editor.keys("ggO; typed above while it waits<Esc>")
        asked = editor.lua("return _G.asked")
        assert asked["titles"] == ["Reject", "Allow once", "Allow for session", "Always allow"]
        assert "config.ini" in asked["prompt"]
        assert "\n" not in asked["prompt"]

        editor.lua("_G.choose(2)")
        (edited,) = editor.wait_for_end()["edits"]
        assert edited["applied"] is True, edited
        assert editor.text() == ["; typed above while it waits", "[api]", "name=api", "port=8437"]
        editor.keys("u")
        assert editor.text() == ["; typed above while it waits", "[api]", "name=api", "port=7000"]


@EDITORS
def test_a_question_that_a_picker_lost_is_asked_again(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT, text("Done.")]) as (editor, _):
        editor.lua("_G.picker = vim.ui.select; vim.ui.select = function() end")
        editor.ask("change the port")
        editor.wait_for_screen("+port=8437")
        editor.lua("vim.ui.select = _G.picker")
        editor.keys(":HelAnswer<CR>")
        editor.answer("Allow once")
        assert editor.wait_for_end()["edits"][0]["applied"] is True
        assert editor.lua("return require('hel').status()") == "hel"
        editor.keys(":HelAnswer<CR>")
        editor.wait_for_screen("No question is waiting")


@EDITORS
def test_a_cancel_takes_back_the_question_of_a_picker(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT]) as (editor, _):
        editor.lua("vim.ui.select = function(items, _, on_choice) _G.late = function() on_choice(items[2], 2) end end")
        editor.ask("change the port")
        editor.wait_for_screen("+port=8437")
        editor.keys(":HelCancel<CR>")
        assert editor.wait_for_end()["stopReason"] == "cancelled"
        editor.lua("_G.late()")
        editor.wait_until(lambda: "+port=8437" not in editor.screen.text, "the diff to go away")
        assert editor.text() == BEFORE.splitlines()
        assert editor.lua("return require('hel').status()") == "hel"


@EDITORS
def test_a_question_does_not_take_the_keys_of_somebody_who_is_typing(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT, text("Done.")]) as (editor, _):
        editor.keys("Gomy port 2")
        editor.lua("require('hel').ask({ prompt = 'change the port' })")
        editor.wait_for_event("toolCall", status="pending")
        editor.wait_for_screen("A question is waiting")
        editor.keys("<CR>2<CR>")
        assert editor.text() == ["[api]", "name=api", "port=7000", "my port 2", "2", ""]
        editor.keys("<Esc>")
        editor.answer("Allow once")
        assert editor.wait_for_end()["edits"][0]["applied"] is True
        assert editor.text() == ["[api]", "name=api", "port=8437", "my port 2", "2", ""]
