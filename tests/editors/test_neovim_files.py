"""Bytes: what the agent edits in Neovim is on the disk after `:write` as it should be, and as it was after an undo."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.editors.neovim import EDITORS, at_work, call, text


@dataclass(frozen=True)
class Case:
    before: bytes
    search: str
    replace: str
    after: bytes


CASES = {
    "lf": Case(b"a\nb\nc\n", "b", "B", b"a\nB\nc\n"),
    "first-line": Case(b"a\nb\n", "a\n", "", b"b\n"),
    "last-line": Case(b"a\nb\n", "b\n", "b\nc\n", b"a\nb\nc\n"),
    "everything": Case(b"a\nb\n", "a\nb\n", "c\n", b"c\n"),
    "crlf": Case(b"a\r\nb\r\nc\r\n", "a\nb", "A\nnew\nB", b"A\r\nnew\r\nB\r\nc\r\n"),
    "crlf-no-final-newline": Case(b"a\r\nb", "b", "B", b"a\r\nB"),
    "mixed": Case(b"a\r\nb\nc\r\n", "b", "B", b"a\r\nB\nc\r\n"),
    "emoji-before-the-column": Case("😀😀 x\n".encode(), "x", "y", "😀😀 y\n".encode()),
    "emoji-itself": Case("a 👩‍👩‍👧 b e\u0301\n".encode(), "👧 b e\u0301", "👦 c", "a 👩‍👩‍👦 c\n".encode()),
    "no-final-newline": Case(b"a\nb", "b", "B", b"a\nB"),
    "bom": Case(b"\xef\xbb\xbfa\nb\n", "a", "A", b"\xef\xbb\xbfA\nb\n"),
    "bom-crlf": Case(b"\xef\xbb\xbfa\r\nb\r\n", "b", "B\nC", b"\xef\xbb\xbfa\r\nB\r\nC\r\n"),
    "what-is-no-line-end": Case("a\fb\u2028c\x85\nd\n".encode(), "d", "D", "a\fb\u2028c\x85\nD\n".encode()),
    "tabs-and-nbsp": Case("\tif\u00a0x:\n\t\ty\n".encode(), "\t\ty", "\t\tz", "\tif\u00a0x:\n\t\tz\n".encode()),
}


@EDITORS
@pytest.mark.parametrize("opened", [True, False], ids=["open", "not-open"])
def test_saved_bytes_are_exact_after_an_edit_and_after_an_undo(nvim: str, tmp_path: Path, opened: bool) -> None:
    """One editor for all the cases: each is a file of its own."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for name, case in CASES.items():
        (workspace / f"{name}.txt").write_bytes(case.before)
    with at_work(nvim, tmp_path, access="auto") as (editor, model):
        editor.command("set nofixendofline hidden")
        for name, case in CASES.items():
            file = workspace / f"{name}.txt"
            if opened:
                editor.command(f"edit {file.name}")
            model.say(call("search_replace", path=file.name, search=case.search, replace=case.replace), text("Done."))
            editor.ask("change it")
            (edited,) = editor.wait_for_end()["edits"]
            assert edited["applied"] is True, (name, edited)
            assert file.read_bytes() == case.before, name
            editor.command(f"execute 'buffer' bufnr('{file}')")
            editor.command("write")
            assert file.read_bytes() == case.after, name
            editor.keys("u")
            editor.command("write")
            assert file.read_bytes() == case.before, name


@EDITORS
def test_a_new_file_in_a_new_folder_is_an_unsaved_buffer_and_saves_exactly(nvim: str, tmp_path: Path) -> None:
    replies = [call("write_file", path="new/dir/notes.md", content="# Ü 😀\n\none\n"), text("Done.")]
    with at_work(nvim, tmp_path, replies=replies, access="auto") as (editor, model):
        file = tmp_path / "workspace" / "new" / "dir" / "notes.md"
        editor.ask("write notes")
        result = editor.wait_for_end()
        assert result["edits"][0]["applied"] is True, model.tool_results()
        assert result["unsaved"] == [file.as_uri()]
        assert file.read_bytes() == b""
        assert editor.lua("return vim.bo[vim.fn.bufnr('notes.md')].buflisted")
        editor.command("wall")
        assert file.read_bytes() == "# Ü 😀\n\none\n".encode()


@EDITORS
def test_a_file_without_a_filetype_is_edited_as_the_buffer_has_it(nvim: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "plain").write_text("one\ntwo\n")
    replies = [
        call("read_file", path="plain"),
        call("search_replace", path="plain", search="three", replace="3"),
        text("Done."),
    ]
    with at_work(nvim, tmp_path, "plain", replies=replies, access="auto") as (editor, model):
        assert editor.lua("return vim.bo.filetype") == ""
        editor.keys("Gothree<Esc>")
        editor.command("set hidden")
        editor.command("edit other")  # the first buffer is not the one that is asked about
        editor.ask("change it")
        editor.wait_for_end()
        assert "three" in model.tool_results()[0]
        assert editor.text("plain") == ["one", "two", "3"]
        assert (workspace / "plain").read_text() == "one\ntwo\n"


@EDITORS
def test_edits_of_a_file_that_is_not_open_build_on_each_other_unsaved(nvim: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "plain").write_text("one\ntwo\n")
    with at_work(nvim, tmp_path, access="auto") as (editor, model):
        for search, replace in (("one", "1"), ("1\ntwo", "1\n2"), ("2", "3")):
            model.say(call("search_replace", path="plain", search=search, replace=replace), text("Done."))
            editor.ask("change it")
            assert editor.wait_for_end()["edits"][0]["applied"] is True
        assert editor.text("plain") == ["1", "3"]
        assert (workspace / "plain").read_text() == "one\ntwo\n"
        editor.command("buffer plain")
        editor.keys("uu")
        assert editor.text() == ["1", "two"]


@EDITORS
def test_two_edits_of_one_reply_are_two_undo_steps(nvim: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "f.txt").write_text("one\ntwo\n")
    both = [*call("search_replace", path="f.txt", search="one", replace="1")["tool_calls"]]
    both += call("search_replace", path="f.txt", search="two", replace="2")["tool_calls"]
    replies = [{"tool_calls": [{**made, "id": str(place)} for place, made in enumerate(both)]}, text("Done.")]
    with at_work(nvim, tmp_path, "f.txt", replies=replies, access="auto") as (editor, _):
        editor.ask("change it")
        editor.wait_for_end()
        assert editor.text() == ["1", "2"]
        editor.keys("u")
        assert editor.text() == ["1", "two"]
        editor.keys("u")
        assert editor.text() == ["one", "two"]


@EDITORS
def test_a_filetype_plugin_that_fails_does_not_fail_the_edit(nvim: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "old.txt").write_text("one\n")
    replies = [
        call("search_replace", path="old.txt", search="one", replace="two"),
        call("write_file", path="new.txt", content="three\n"),
        text("Done."),
    ]
    with at_work(nvim, tmp_path, replies=replies, access="auto") as (editor, _):
        editor.command("autocmd FileType text throw 'this plugin is broken'")
        editor.ask("change them")
        assert [edited["applied"] for edited in editor.wait_for_end()["edits"]] == [True, True]
        editor.command("wall")
        assert (workspace / "old.txt").read_bytes() == b"two\n"
        assert (workspace / "new.txt").read_bytes() == b"three\n"


@EDITORS
def test_the_mode_and_a_symlink_stay(nvim: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    script = workspace / "script.sh"
    script.write_text("echo one\n")
    script.chmod(0o755)
    (workspace / "link.sh").symlink_to("script.sh")
    replies = [call("search_replace", path="script.sh", search="one", replace="two"), text("Done.")]
    with at_work(nvim, tmp_path, "link.sh", replies=replies, access="auto") as (editor, _):
        editor.ask("change it")
        assert editor.wait_for_end()["edits"][0]["applied"] is True
        assert editor.text() == ["echo two"]
        editor.command("write")
    assert script.read_text() == "echo two\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert (workspace / "link.sh").readlink() == Path("script.sh")


@EDITORS
def test_an_edit_made_for_an_older_text_is_refused_and_said_so(nvim: str, tmp_path: Path) -> None:
    """What the plugin answers itself: Neovim would say that it was applied."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "f.txt").write_text("one\n")
    with at_work(nvim, tmp_path, "f.txt", replies=[text("Hello.")]) as (editor, _):
        editor.ask("hello")
        editor.wait_for_end()
        answer = editor.lua(
            """
            local client = vim.lsp.get_clients({ name = 'hel' })[1]
            local document = { uri = vim.uri_from_bufnr(0), version = vim.lsp.util.buf_versions[0 + vim.fn.bufnr()] }
            vim.api.nvim_buf_set_lines(0, 0, 0, true, { 'typed' })
            local start = { line = 0, character = 0 }
            local edits = { { range = { start = start, ['end'] = { line = 0, character = 3 } }, newText = 'two' } }
            return client.handlers['workspace/applyEdit'](nil, {
              edit = { documentChanges = { { textDocument = document, edits = edits } } },
            }, { client_id = client.id })
            """
        )
        assert answer == {"applied": False, "failureReason": "the buffer has changed since"}
        assert editor.text() == ["typed", "one"]


@EDITORS
def test_the_server_can_have_buffers_saved(nvim: str, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (workspace / name).write_text("one\n")
    with at_work(nvim, tmp_path, "a.txt", replies=[text("Hello.")]) as (editor, _):
        editor.command("set hidden")
        editor.ask("hello")
        editor.wait_for_end()
        editor.keys("ccchanged<Esc>:edit b.txt<CR>ccchanged<Esc>")
        editor.command("set readonly nomodifiable")
        uris = [(workspace / name).as_uri() for name in ("a.txt", "b.txt", "c.txt")]
        answer = editor.lua(
            """
            local client = vim.lsp.get_clients({ name = 'hel' })[1]
            return client.handlers['hel/save'](nil, { uris = ... }, { client_id = client.id })
            """,
            uris,
        )
        assert answer == {"saved": uris[:1]}
        assert (workspace / "a.txt").read_text() == "changed\n"
        assert (workspace / "b.txt").read_text() == "one\n"
