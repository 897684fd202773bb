"""The test editor itself: that it holds, changes and refuses as its personalities say."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types

from hel_lsp.lsp.uris import path_to_uri
from tests.editors.neovim import installed
from tests.lsp import personalities as people
from tests.lsp.editor import Editor
from tests.lsp.personalities import EGLOT, HELIX, KATE, KATE_LATER, NEOVIM, VSCODE, ZED, Personality, Reply

STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in.py")))

pytestmark = pytest.mark.asyncio(loop_scope="module")

everyone = pytest.mark.parametrize("personality", people.EDITORS, ids=lambda personality: personality.name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_editor() -> AsyncIterator[Editor]:
    async with Editor.started(VSCODE, command=STAND_IN, settings={"access": "auto"}) as editor:
        yield editor


@pytest.fixture
def editor(one_editor: Editor) -> Iterator[Editor]:
    """One process for all tests, since only the editor's side of the wire is looked at here; a test sets who it is."""
    yield one_editor
    for buffer in tuple(one_editor.buffers.values()):
        one_editor.close(buffer)
    one_editor.__dict__ |= {"answers": [], "before_edit": lambda: None}
    one_editor.received.clear()
    one_editor.questions.clear()
    one_editor.messages.clear()


def text_edit(text: str, start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    position = [dict(zip(("line", "character"), place, strict=True)) for place in (start, end)]
    return {"range": {"start": position[0], "end": position[1]}, "newText": text}


def document_edit(uri: str, version: int | None, *edits: dict[str, Any]) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "version": version}, "edits": list(edits)}


async def apply(editor: Editor, *changes: dict[str, Any], timeout: float = 5) -> Any:
    edit = {"edit": {"documentChanges": list(changes)}}
    request = {"method": "workspace/applyEdit", "params": edit, "timeout": timeout}
    return await editor.command("request", request)


async def mirror(editor: Editor) -> list[tuple[str, str]]:
    return [(document["uri"], document["text"]) for document in await editor.command("documents")]


@everyone
async def test_an_edit_arrives_is_saved_and_can_be_undone(personality: Personality, tmp_path: Path) -> None:
    path = tmp_path / "config.ini"
    path.write_bytes("# 😀\nport=7000\n".encode())
    async with Editor.started(personality, workspace=tmp_path, command=STAND_IN) as editor:
        buffer = editor.open(path)
        edit = document_edit(buffer.uri, buffer.version, text_edit("8437", (1, 5), (1, 9)))
        assert await apply(editor, edit) == {"result": {"applied": True}}
        waiting = {"uri": buffer.uri, "text": "port=8437", "timeout": 5}
        assert await editor.command("wait", waiting)
        assert buffer.dirty
        editor.save(buffer)
        assert path.read_bytes() == "# 😀\nport=8437\n".encode()
        editor.undo(buffer)
        assert await mirror(editor) == [(buffer.uri, "# 😀\nport=7000\n")]
        assert editor.initialize_result is not None
        assert editor.initialize_result.capabilities.position_encoding == personality.encoding
        assert await editor.end() == 0


@everyone
async def test_columns_count_in_the_editors_own_units(personality: Personality, editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("😀😀 x\n".encode())
    column = {"utf-8": 9, "utf-16": 5, "utf-32": 3}[personality.encoding]
    editor.personality = personality
    buffer = editor.open(path)
    await apply(editor, document_edit(buffer.uri, buffer.version, text_edit("y", (0, column), (0, column + 1))))
    assert buffer.text == "😀😀 y\n"


@pytest.mark.parametrize(
    ("personality", "reply", "text"),
    [
        (VSCODE, {"result": {"applied": False}}, "z\nb\n"),
        (NEOVIM, {"result": {"applied": True}}, "z\nb\n"),
        (EGLOT, {"error": "workspace/applyEdit: Edits require another version"}, "z\nb\n"),
        (
            HELIX,
            {"result": {"applied": False, "failureReason": "document has changed", "failedChange": 0}},
            "z\nb\n",
        ),
        (KATE, {"result": {"applied": True}}, "z\nB\n"),
        (KATE_LATER, {"result": {"applied": False, "failureReason": ""}}, "z\nb\n"),
        (ZED, {"result": {"applied": True}}, "z\nB\n"),
    ],
    ids=["vscode", "neovim", "eglot", "helix", "kate", "kate later", "zed"],
)
async def test_an_edit_of_an_older_version(
    personality: Personality, reply: dict[str, Any], text: str, editor: Editor, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\n")
    editor.personality = personality
    buffer = editor.open(path)
    editor.replace(buffer, "a", "y")
    version = buffer.version
    editor.before_edit = lambda: editor.replace(buffer, "y", "z")
    assert await apply(editor, document_edit(buffer.uri, version, text_edit("B", (1, 0), (1, 1)))) == reply
    assert buffer.text == text


async def test_zed_moves_an_older_edit_to_where_its_text_is_now(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\n")
    editor.personality = ZED
    buffer = editor.open(path)
    editor.before_edit = lambda: editor.type(buffer, "typed\n", at=0)
    await apply(editor, document_edit(buffer.uri, 0, text_edit("B", (1, 0), (1, 1))))
    assert buffer.text == "typed\na\nB\n"


async def test_neovim_takes_version_0_for_any(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\n")
    editor.personality = NEOVIM
    buffer = editor.open(path)
    editor.type(buffer, "x", at=0)
    await apply(editor, document_edit(buffer.uri, 0, text_edit("B", (1, 0), (1, 1))))
    assert buffer.text == "xa\nB\n"


@everyone
async def test_a_file_that_was_not_open_becomes_an_unsaved_buffer(
    personality: Personality, editor: Editor, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\n")
    uri = path.as_uri()
    editor.personality = personality
    await apply(editor, document_edit(uri, None, text_edit("b", (0, 0), (0, 1))))
    assert editor.buffer(path).dirty
    assert path.read_bytes() == b"a\n"
    waiting = {"uri": uri, "text": "b", "timeout": 5}
    assert await editor.command("wait", waiting)


@pytest.mark.parametrize(
    ("personality", "sent", "saved"),
    [
        (VSCODE, "a\r\nB\r\nB\r\n", b"a\r\nB\r\nB\r\n"),
        (NEOVIM, "a\r\nB\r\nB\r\n", b"a\r\nB\r\nB\r\n"),
        (EGLOT, "a\nB\nB\n", b"a\r\nB\r\nB\r\n"),
        (HELIX, "a\r\nB\nB\r\n", b"a\r\nB\nB\r\n"),
        (KATE, "a\nB\nB\n", b"a\r\nB\r\nB\r\n"),
        (ZED, "a\nB\nB\n", b"a\r\nB\r\nB\r\n"),
    ],
    ids=lambda value: value.name if isinstance(value, Personality) else None,
)
async def test_a_crlf_file_with_lf_inserted(
    personality: Personality, sent: str, saved: bytes, editor: Editor, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    editor.personality = personality
    buffer = editor.open(path)
    await apply(editor, document_edit(buffer.uri, buffer.version, text_edit("B\nB", (1, 0), (1, 1))))
    assert buffer.text == sent
    editor.save(buffer)
    assert path.read_bytes() == b"\xef\xbb\xbf" + saved


@pytest.mark.parametrize("personality", [EGLOT, KATE], ids=lambda personality: personality.name)
async def test_crlf_sent_to_an_editor_that_holds_lf_spoils_the_file(
    personality: Personality, editor: Editor, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\r\nb\r\n")
    editor.personality = personality
    buffer = editor.open(path)
    await apply(editor, document_edit(buffer.uri, buffer.version, text_edit("B\r\nB", (1, 0), (1, 1))))
    editor.save(buffer)
    assert path.read_bytes() == b"a\r\nB\r\r\nB\r\n"


@pytest.mark.parametrize(
    ("personality", "saved"),
    [(VSCODE, b"x\n"), (NEOVIM, b"x\n"), (HELIX, b"x\n"), (ZED, b"x\n"), (EGLOT, None), (KATE, None)],
    ids=lambda value: value.name if isinstance(value, Personality) else None,
)
async def test_a_new_file(personality: Personality, saved: bytes | None, editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    uri = path_to_uri(path)
    editor.personality = personality
    await apply(editor, {"kind": "create", "uri": uri}, document_edit(uri, None, text_edit("x\n", (0, 0), (1, 0))))
    assert path.exists() == (saved is not None)
    if saved is not None:
        editor.save(editor.buffer(path))
        assert path.read_bytes() == saved


@pytest.mark.parametrize(
    ("personality", "left"), [(VSCODE, b"keep\n"), (NEOVIM, b""), (HELIX, b"")], ids=["vscode", "neovim", "helix"]
)
async def test_creating_a_file_that_is_there(
    personality: Personality, left: bytes, editor: Editor, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"keep\n")
    editor.personality = personality
    await apply(editor, {"kind": "create", "uri": path.as_uri()})
    assert path.read_bytes() == left


@pytest.mark.parametrize("personality", people.RUDE, ids=lambda personality: personality.name)
async def test_the_rude_ones_do_as_their_names_say(personality: Personality, editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\n")
    editor.personality = personality
    buffer = editor.open(path)
    edit = document_edit(buffer.uri, 1, text_edit("b", (0, 0), (0, 1)))
    answer = await apply(editor, edit, timeout=0.2 if personality.says == people.NEVER else 5)
    assert buffer.text == ("b\n" if personality.applies else "a\n")
    assert ("error" in answer) == (personality.says in (people.NEVER, people.CANCELED))


# -------------------------------------------------------------------- questions and everything else


async def ask(editor: Editor, timeout: float | None = None) -> Any:
    params = {"type": 3, "message": "Well?", "actions": [{"title": "Reject"}, {"title": "Allow once"}]}
    return await editor.command(
        "request", {"method": "window/showMessageRequest", "params": params, "timeout": timeout}
    )


async def test_questions_are_answered_in_order_and_dismissed_in_the_end(editor: Editor) -> None:
    editor.personality = VSCODE
    editor.answers = ["Allow once", people.EMPTY, people.OMITTED, people.CANCELED, people.MALFORMED_ERROR]
    assert await ask(editor) == {"result": {"title": "Allow once"}}
    assert await ask(editor) == {"result": {}}
    assert await ask(editor) == {"result": None}
    assert "Canceled" in (await ask(editor))["error"]
    assert "error" in (await ask(editor))["error"]
    assert await ask(editor) == {"result": None}
    assert [question.actions for question in editor.questions] == [["Reject", "Allow once"]] * 6


async def test_a_question_can_be_answered_by_a_rule_or_later_or_never(editor: Editor) -> None:
    editor.personality = VSCODE
    editor.answers = lambda message, actions: actions[-1] if message == "Well?" else None
    assert await ask(editor) == {"result": {"title": "Allow once"}}
    editor.answers = [people.NEVER, people.NEVER]
    waiting = asyncio.create_task(ask(editor))
    (await editor.question(1)).answer("Reject")
    assert await waiting == {"result": {"title": "Reject"}}
    assert "no reply" in (await ask(editor, 0.1))["error"]


async def test_everything_the_server_sends_is_kept_as_json_in_order(editor: Editor) -> None:
    editor.personality = NEOVIM
    event = {"session": "s", "turn": 1, "kind": "text", "delta": "Hello"}
    await editor.command("notify", {"method": "hel/event", "params": event})
    await editor.command("notify", {"method": "window/showMessage", "params": {"type": 3, "message": "done"}})
    assert editor.sent("hel/event") == [event]
    assert [message.message for message in editor.messages] == ["done"]
    wanted = {"items": [{"section": "hel"}]}
    configuration = await editor.command("request", {"method": "workspace/configuration", "params": wanted})
    assert configuration == {"result": [{"access": "auto"}]}
    editor.handlers["hel/save"] = lambda number, params: Reply({"result": params})
    saved = await editor.command("request", {"method": "hel/save", "params": {"uris": ["a"]}})
    assert saved == {"result": {"uris": ["a"]}}
    methods = [message["method"] for message in editor.received if "method" in message]
    assert methods == ["hel/event", "window/showMessage", "workspace/configuration", "hel/save"]


async def test_a_command_can_be_cancelled(editor: Editor) -> None:
    editor.personality = VSCODE
    command = editor.start_command("hang")
    await editor.wait_for(lambda: editor.sent("test/hanging"))
    editor.cancel(command)
    with pytest.raises(Exception, match="Cancelled"):
        await command.result


async def test_a_wait_in_vain_says_what_there_was(editor: Editor) -> None:
    await mirror(editor)
    with pytest.raises(AssertionError, match=r"in vain after 0.1 s; received .*a reply"):
        await editor.wait_for(lambda: False, timeout=0.1)


# -------------------------------------------------------------------- the model of Neovim and Neovim itself


EDITS = [
    ("a\n", "b\n", (1, 0), (1, 0)),
    ("a\n", "a\nb\n", (0, 0), (1, 0)),
    ("a\n", "\nb", (0, 1), (0, 1)),
    ("a", "b", (0, 1), (0, 1)),
    ("a", "b\n", (1, 0), (1, 0)),
    ("", "x\n", (0, 0), (1, 0)),
    ("", "x\n", (0, 0), (0, 0)),
    ("a\r\nb\r\n", "x\ny", (0, 1), (1, 0)),
    ("a\r\nb\n", "x\r\ny", (0, 1), (0, 1)),
    ("a\rb\n", "x\ry", (0, 1), (0, 2)),
    ("a\r\nb\nc\r\n", "x", (1, 0), (1, 1)),
    ("a\rb\r\nc\r\n", "x", (0, 2), (0, 3)),
    ("a\rb\rc", "x", (0, 4), (0, 5)),
    ("ä😀\n", "x", (0, 2), (0, 6)),
    ("a\nb\nc\n", "", (0, 0), (3, 0)),
    ("a\nb\nc\n", "", (1, 0), (2, 0)),
    ("a\nb\nc\n", "x", (2, 0), (9, 9)),
    ("a\nb\n", "x\n\n", (5, 0), (6, 0)),
    ("a\n\n", "x\n", (1, 0), (2, 0)),
    ("a\fb\u2028c\n", "x", (0, 1), (0, 2)),
]

NEOVIM_SCRIPT = r"""
local cases = vim.json.decode(io.read('*a'))
local results = {}
for _, case in ipairs(cases) do
  vim.cmd.edit({ case.path, bang = true })
  local before = vim.lsp._buf_get_full_text(0)
  vim.lsp.util.apply_text_edits({ case.edit }, vim.api.nvim_get_current_buf(), 'utf-8')
  table.insert(results, { before, vim.lsp._buf_get_full_text(0) })
  vim.cmd.write({ bang = true })
  vim.cmd.bwipeout({ bang = true })
end
io.write(vim.json.encode(results))
"""


@pytest.mark.parametrize(("version", "nvim"), installed().items(), ids=installed())
async def test_the_model_of_neovim_does_what_neovim_does(version: str, nvim: str, tmp_path: Path) -> None:
    major, minor = map(int, version.split(".")[:2])
    model = people.NEOVIM_12 if (major, minor) >= (0, 12) else NEOVIM
    script = tmp_path / "script.lua"
    script.write_text(NEOVIM_SCRIPT)
    cases: list[dict[str, Any]] = []
    expected: list[Any] = []
    for index, (text, new, start, end) in enumerate(EDITS):
        path = tmp_path / f"{index}.txt"
        path.write_bytes(text.encode())
        edit = text_edit(new, start, end)
        cases.append({"path": str(path), "edit": edit})
        held = model.load(path.read_bytes())
        span = types.Range(types.Position(*start), types.Position(*end))
        after = model.apply(held, types.TextEdit(span, new))
        expected.append((held.text, after.text, model.save(after)))
    child = await asyncio.create_subprocess_exec(
        nvim,
        "--clean",
        "--headless",
        "-l",
        str(script),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, log = await child.communicate(json.dumps(cases).encode())
    assert child.returncode == 0, log.decode()
    # Neovim says "written" on stdout too; the result is what it says last.
    results = json.loads(out[out.rindex(b"[[") :])
    saved = [Path(case["path"]).read_bytes() for case in cases]
    assert [(*result, data) for result, data in zip(results, saved, strict=True)] == expected
