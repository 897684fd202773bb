"""The plugin in real editors: asking, answering, cancelling, and what stands on the screen."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hel_lsp.demo import task
from tests.editors.neovim import BEFORE, EDIT, EDITORS, PLUGIN, Neovim, at_work, call, lay_out, text


@EDITORS
@pytest.mark.parametrize("unsaved", [False, True], ids=["saved", "unsaved-change"])
def test_the_whole_task_with_real_keys_and_one_undo(nvim: str, tmp_path: Path, unsaved: bool) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    record = tmp_path / "inventory.jsonl"
    task.lay_out(workspace, record)
    with at_work(nvim, tmp_path, "config.ini", replies=task.replies()) as (editor, model):
        if unsaved:
            editor.keys("Go; mine<Esc>")
        before = editor.text()
        editor.ask(task.PROMPT)
        editor.answer("Trust")
        for _ in range(2):
            editor.wait_for_event("toolCall", status="pending")
            editor.answer("Allow once")
        editor.wait_for_screen("search_replace", "-port=7000", "+port=8437", "Allow once")
        editor.answer("Allow once")
        result = editor.wait_for_end()

        assert result["stopReason"] == "end_turn"
        assert editor.text() == [line.replace("port=7000", "port=8437") for line in before]
        assert ("; mine" in before) == unsaved
        assert (workspace / "config.ini").read_text() == task.CONFIG
        assert [line.split('"')[3] for line in record.read_text().splitlines()] == ["list_services", "lookup_port"]
        assert task.PROMPT in editor.transcript()
        assert task.ANSWER in editor.transcript()
        assert model.tool_results()[-1]

        editor.keys("u")
        assert editor.text() == before
        assert editor.lua("return vim.api.nvim_buf_get_name(0)").endswith("config.ini")


@EDITORS
def test_cancel_while_the_model_streams(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[{"text": "Let me think", "hold": True}]) as (editor, model):
        editor.ask("change the port")
        editor.wait_for_event("text", delta=" think")
        assert editor.lua("return require('hel').status()") == "hel: step 1"
        editor.keys(":HelCancel<CR>")

        assert editor.wait_for_end()["stopReason"] == "cancelled"
        model.wait_until_hung_up()
        assert "*cancelled*" in editor.transcript()
        assert editor.lua("return require('hel').status()") == "hel"

        model.say(text("Here again."))
        editor.ask("go on")
        assert editor.wait_for_end()["text"] == "Here again."


@EDITORS
def test_a_server_that_is_killed_in_the_middle_of_a_turn_is_started_again(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[{"text": "Let me think", "hold": True}]) as (editor, model):
        editor.ask("change the port")
        editor.wait_for_event("text", delta=" think")
        editor.server.kill()
        editor.wait_for_screen("Client hel quit")
        editor.keys("<CR>")
        editor.wait_for_screen("ended in the middle of a turn")

        editor.keys("Go; mine<Esc>")
        model.say(call("read_file", path="config.ini"), EDIT, text("Done."))
        editor.ask("once more")
        editor.answer("Allow once")
        assert editor.wait_for_end()["stopReason"] == "end_turn"
        assert editor.text() == ["[api]", "name=api", "port=8437", "; mine"]
        assert "; mine" in model.tool_results()[0]


@EDITORS
def test_an_edit_under_the_fingers_of_the_user_is_an_undo_step_of_its_own(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT, text("Done.")], access="auto") as (editor, _):
        editor.keys("Go; before,")
        editor.lua("require('hel').ask({ prompt = 'change the port' })")
        editor.wait_for_end()
        editor.keys(" after<Esc>")
        assert editor.text() == ["[api]", "name=api", "port=8437", "; before, after"]
        editor.keys("u")
        assert editor.text() == ["[api]", "name=api", "port=8437", "; before,"]
        editor.keys("u")
        assert editor.text() == ["[api]", "name=api", "port=7000", "; before,"]
        editor.keys("u")
        assert editor.text() == BEFORE.splitlines()


@EDITORS
def test_the_prompt_is_asked_for_and_the_selection_goes_along(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path, **{"notes.txt": "😀 first one\nsecond ü two\nthird\n"})
    with at_work(nvim, tmp_path, "notes.txt", replies=[text("Yes.")]) as (editor, model):
        editor.keys("1Gwvjee:HelAsk<CR>")
        editor.wait_for_screen("Ask hel:")
        editor.keys("what is this?<CR>")
        editor.wait_for_end()
        said = model.script.requests[-1]["messages"][-1]["content"]
        assert "what is this?" in said
        assert "notes.txt" in said
        assert "first one\nsecond ü" in said
        assert "two" not in said
        assert "notes.txt, lines 1 to 2" in editor.transcript()

        editor.keys(":HelAsk<CR>")
        editor.wait_for_screen("Ask hel:")
        editor.keys("<Esc>")
        editor.request("nvim_get_mode")
        assert len(model.script.requests) == 1


@EDITORS
def test_lines_of_a_range_go_along_whole(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path, **{"notes.txt": "one\ntwo\nthree\nfour\n"})
    with at_work(nvim, tmp_path, "notes.txt", replies=[text("Yes.")]) as (editor, model):
        editor.keys(":2,3HelAsk explain<CR>")
        editor.wait_for_end()
        said = model.script.requests[-1]["messages"][-1]["content"]
        assert "two\nthree" in said
        assert "one" not in said
        assert "four" not in said


@EDITORS
def test_a_bang_and_hel_new_start_a_session_without_the_past(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[text("One."), text("Two."), text("Three."), text("Four.")]) as (
        editor,
        model,
    ):
        sessions: list[str] = []
        for command in ("HelAsk first", "HelAsk second", "HelAsk! third"):
            editor.keys(f":{command}<CR>")
            sessions.append(editor.wait_for_end()["session"])
        editor.keys(":HelNew<CR>")
        editor.wait_for_screen("starts a new session")
        editor.ask("fourth")
        sessions.append(editor.wait_for_end()["session"])

        assert sessions[0] == sessions[1]
        assert len(set(sessions)) == 3
        users = [
            [message["content"] for message in request["messages"] if message["role"] == "user"]
            for request in model.script.requests
        ]
        assert [len(said) for said in users] == [1, 2, 1, 1]


@EDITORS
def test_a_second_question_while_a_turn_runs_is_refused_with_the_reason(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[{"text": "Let me think", "hold": True}]) as (editor, _):
        editor.ask("first")
        editor.wait_for_event("text", delta=" think")
        editor.ask("second")
        editor.wait_for_screen("is still at turn")
        editor.keys("<CR>:HelCancel<CR>")
        assert editor.wait_for_end()["stopReason"] == "cancelled"


@EDITORS
def test_the_transcript_streams_folds_and_leads_to_the_edited_place(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    replies = [
        {"reasoning": "Which port?\nThat one.", "text": "I look.\n\n- one\n- two", **EDIT},
        text("Done: `8437`."),
    ]
    with at_work(nvim, tmp_path, "config.ini", replies=replies, access="auto") as (editor, _):
        editor.ask("change the port")
        editor.wait_for_end()
        assert editor.transcript().splitlines() == [
            "## You",
            "",
            "change the port",
            "",
            "*about config.ini*",
            "",
            "## hel",
            "",
            "> Which port?",
            "> That one.",
            "",
            "I look.",
            "",
            "- one",
            "- two",
            "",
            "- `search_replace` config.ini (completed)",
            "      path: config.ini",
            "      replace: port=8437",
            "      search: port=7000",
            "- edited config.ini:3 (+1 −1)",
            "",
            "Done: `8437`.",
            "",
            "*Not saved: config.ini*",
        ]
        assert "replace: port=8437" not in editor.screen.text
        assert "Done: `8437`." in editor.screen.text

        editor.keys("ggO; above<Esc>")
        editor.keys("<C-w>l/^- edited<CR><CR>")
        assert editor.lua("return { vim.fn.expand('%:t'), vim.fn.line('.') }") == ["config.ini", 4]
        editor.keys("<C-w>l/^- edited<CR>gf")
        assert editor.lua("return { vim.fn.expand('%:t'), vim.fn.line('.') }") == ["config.ini", 4]
        editor.keys("<C-w>l/search_replace<CR>zo")
        editor.wait_for_screen("replace: port=8437")
        editor.keys("ix")
        editor.wait_for_screen("'modifiable' is off")


@EDITORS
def test_of_an_edit_it_says_that_it_was_made_or_not_or_perhaps(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[text("Done.")], access="auto") as (editor, _):
        editor.ask("go on")
        editor.wait_for_end()
        for applied in ("true", "false", "null"):
            event = {"kind": "edit", "uri": "file:///a.txt", "added": 2, "removed": 1, "reason": "so"}
            written = json.dumps(event).replace("{", f'{{"applied": {applied}, ', 1)
            # Neovim 0.11 gives null as nil, 0.12 as vim.NIL.
            for options in ("{}", "{ luanil = { object = true } }"):
                show = f"require('hel.transcript').on_event('s/1', vim.json.decode(..., {options}))"
                editor.lua(show, written)
        shown = [line for line in editor.transcript().splitlines() if "edited" in line]
        assert shown[::2] == shown[1::2]
        assert shown[::2] == [
            "- edited /a.txt (+2 −1)",
            "- not edited: /a.txt, so",
            "- edited, perhaps: /a.txt, so",
        ]


@EDITORS
def test_the_transcript_can_be_hidden_deleted_and_left_closed(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[text("One."), text("Two."), text("Three.")]) as (editor, _):
        editor.lua("require('hel').setup({ transcript = { open = false } })")
        editor.ask("first")
        editor.wait_for_end()
        editor.wait_for_screen("One.")
        assert editor.lua("return #vim.api.nvim_list_wins()") == 1
        editor.keys(":HelTranscript<CR>")
        editor.wait_for_screen("## hel", "One.")
        editor.command("execute 'bdelete' bufnr('hel://session')")
        editor.ask("second")
        editor.wait_for_end()
        assert "One." not in editor.transcript()
        assert "Two." in editor.transcript()
        editor.keys(":HelTranscript<CR>:HelTranscript<CR>")
        editor.ask("third")
        editor.wait_for_end()
        assert editor.lua("return #vim.api.nvim_list_wins()") == 1


@EDITORS
def test_asking_from_the_transcript_goes_to_the_same_server(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[text("One."), text("Two.")]) as (editor, _):
        editor.ask("first")
        session = editor.wait_for_end()["session"]
        editor.keys("<C-w>l")
        editor.ask("second")
        assert editor.wait_for_end()["session"] == session
        assert editor.server.is_running()


@EDITORS
def test_a_code_action_asks_and_shows_its_prompt(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path, **{"todo.ini": "; hel: say hello\n"})
    with at_work(nvim, tmp_path, replies=[text("Hello.")]) as (editor, _):
        editor.command("lua vim.lsp.enable('hel')")
        attached = "vim.api.nvim_create_autocmd('LspAttach', { callback = function() vim.g.attached = 1 end })"
        editor.lua(attached)
        editor.command("edit todo.ini")
        editor.lua("assert(vim.wait(20000, function() return vim.g.attached == 1 end))")
        editor.keys(":lua vim.lsp.buf.code_action({ apply = true })<CR>")
        editor.wait_for_end()
        assert "say hello" in editor.transcript()
        assert "Hello." in editor.transcript()


@EDITORS
def test_the_model_s_failure_is_shown_and_the_next_question_works(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    refusal = {"status": 401, "body": '{"error": {"message": "no such key"}}'}
    with at_work(nvim, tmp_path, "config.ini", replies=[refusal, text("Fine.")]) as (editor, _):
        editor.ask("first")
        assert editor.wait_for_end()["stopReason"] == "error"
        assert "*Error:" in editor.transcript()
        editor.ask("second")
        assert editor.wait_for_end()["text"] == "Fine."


@EDITORS
def test_hel_undo_takes_back_a_turn_and_keeps_what_was_typed_since(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT, text("Done.")], access="auto") as (editor, _):
        editor.ask("change the port")
        editor.wait_for_end()
        editor.keys("Go; mine<Esc>")
        editor.keys(":HelUndo<CR>")
        editor.wait_for_screen("Reverted")
        assert editor.text() == ["[api]", "name=api", "port=7000", "; mine"]


@EDITORS
def test_access_is_completed_set_and_holds(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini", replies=[EDIT, text("No."), EDIT, text("Yes.")]) as (editor, _):
        assert editor.lua("return vim.fn.getcompletion('HelAccess ', 'cmdline')") == ["read-only", "confirm", "auto"]
        assert editor.lua("return vim.fn.getcompletion('HelAccess r', 'cmdline')") == ["read-only"]
        editor.keys(":HelAccess read-only<CR>")
        editor.wait_for_screen("Access is now read-only")
        editor.ask("change the port")
        editor.wait_for_end()
        assert editor.text() == BEFORE.splitlines()
        editor.keys(":HelAccess<CR>")
        editor.answer("auto")
        editor.wait_for_screen("Access is now auto")
        editor.ask("change the port")
        editor.wait_for_end()
        assert "port=8437" in editor.text()
        editor.keys(":HelAccess everything<CR>")
        editor.wait_for_screen("everything")


@EDITORS
def test_the_tools_the_log_the_health_and_the_help_are_shown(nvim: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    task.lay_out(workspace)
    with at_work(nvim, tmp_path, "config.ini", replies=[text("Yes.")]) as (editor, _):
        editor.keys(":checkhealth hel<CR>")
        wait_for_page(editor, "hel-lsp", "is hel-lsp 0.", "Not running")
        editor.command("bdelete")
        editor.ask("hello")
        editor.answer("Trust")
        editor.wait_for_end()

        editor.keys(":HelTools<CR>")
        editor.wait_for_screen("# Built-in tools", "search_replace", "# inventory: ")
        editor.command("close")
        editor.keys(":HelTools<CR>")
        editor.wait_for_screen("# Built-in tools")
        editor.command("close")
        editor.keys(":HelLog<CR>")
        editor.wait_until(lambda: editor.lua("return vim.fn.expand('%')").endswith(".jsonl"), "the run log")
        editor.command("close")
        editor.keys(":checkhealth hel<CR>")
        wait_for_page(editor, "Running in", "1 files attached")
        editor.command("bdelete")


def wait_for_page(editor: Neovim, *texts: str) -> None:
    """Wait for texts in the current buffer: on the screen long paths would part them."""
    page = "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"
    editor.wait_until(lambda: all(text in editor.lua(page) for text in texts), f"a page with {texts}")


@EDITORS
def test_help_is_found_and_has_every_command_and_mapping(nvim: str, tmp_path: Path) -> None:
    documents = tmp_path / "doc"
    documents.mkdir()
    shutil.copy(PLUGIN / "doc" / "hel.txt", documents)
    with Neovim(nvim, tmp_path, tmp_path / "home") as editor:
        editor.command(f"helptags {documents}")
        tags = {line.split("\t")[0] for line in (documents / "tags").read_text().splitlines()}
        commands = editor.lua("return vim.tbl_keys(vim.api.nvim_get_commands({}))")
        mappings = editor.lua("return vim.tbl_map(function(map) return map.lhs end, vim.api.nvim_get_keymap('n'))")
        ours = {f":{name}" for name in commands if name.startswith("Hel")}
        ours |= {name for name in mappings if name.startswith("<Plug>(hel-")}
        assert len(ours) > 10
        assert ours <= tags
        editor.command(f"set runtimepath^={tmp_path}")
        for tag in ("hel", ":HelAsk", "hel-approval"):
            # Debian leaves out the parsers that Neovim's own help pages are highlighted with.
            editor.command(f"silent! help {tag}")
            assert editor.lua("return vim.fn.expand('%:t')") == "hel.txt"


@EDITORS
def test_a_missing_server_is_named_with_the_way_out(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini") as (editor, _):
        editor.lua("vim.lsp.config('hel', { cmd = { 'hel-lsp-that-is-not-there' } })")
        editor.ask("hello")
        editor.wait_for_screen("hel-lsp-that-is-not-there was not found", "checkhealth hel")
        editor.keys("<CR>:checkhealth hel<CR>")
        editor.wait_for_screen("was not found", "uv tool install")


@EDITORS
def test_nothing_is_loaded_or_started_before_it_is_used(nvim: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    with at_work(nvim, tmp_path, "config.ini") as (editor, _):
        loaded = editor.lua(
            "return vim.tbl_filter(function(name) return vim.startswith(name, 'hel') end, vim.tbl_keys(package.loaded))"
        )
        assert loaded == []
        assert editor.lua("return #vim.lsp.get_clients()") == 0
        assert editor.lua("return require('hel').status()") == ""
