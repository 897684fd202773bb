"""Reading what is larger than one result: each part arrives whole, and all parts together are the text."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hel_lsp.demo.scripted_model import ScriptedModel
from tests.lsp.agent import agent, call, say, tool_results
from tests.lsp.editor import Editor
from tests.lsp.test_mcp_servers import declare
from tests.mcp.workspace import scripted_from

ASK = {"prompt": "go", "wait": True}
ROOMY = {"access": "auto", "model": {"contextWindow": 10_000_000}}
LIMIT = 50_000
HEAD = re.compile(r"lines (\d+)-(\d+) of (\d+)(?: \(bytes \d+-\d+ of the line's \d+(?:; go on at offset (\d+))?\))?\n")

TEXTS = {
    "a part of exactly the limit": "".join(f"{number:09}{'x' * 40}\n" for number in range(2_500)),
    "many short lines": "x\n" * 4_500,
    "a file of exactly the limit": "x" * LIMIT,
    "one line": "x" * 120_000,
    "characters of several bytes": "x" + "é€😀" * 15_000 + "\r\n",
    "long lines between short ones": f"one\n{'a' * 60_000}\ntwo\n{'b' * 110_000}\n{'c' * 49_990}\nthree",
}


@asynccontextmanager
async def reader(workspace: Path) -> AsyncIterator[tuple[Editor, ScriptedModel]]:
    async with agent(workspace, options=ROOMY) as (editor, model):
        editor.answers = ["Trust"]
        yield editor, model


async def result(editor: Editor, model: ScriptedModel, name: str, **arguments: Any) -> str:
    """What the model gets from one call, in a session that has no other."""
    model.replies += [call(name, **arguments), say("ok")]
    await editor.command("hel.newSession")
    await editor.command("hel.ask", ASK)
    [text] = tool_results(model.requests[-1])
    return text


async def read_whole(editor: Editor, model: ScriptedModel, path: str) -> str:
    """The text of a file, read part by part as the line above each part says."""
    parts: list[str] = []
    offset = 1
    while offset:
        text = await result(editor, model, "read_file", path=path, offset=offset)
        assert len(text.encode()) <= LIMIT + 200
        head = HEAD.match(text)
        assert head is not None, text[:200]
        first, last, total, further = (int(number or 0) for number in head.groups())
        parts.append(text[head.end() :])
        assert parts[-1]
        assert first == (offset if offset <= total else last)
        offset = further or (last + 1 if last < total else 0)
    return "".join(parts)


def kept(workspace: Path) -> list[Path]:
    """The files of results that were too large."""
    state = workspace.parent / f"{workspace.name}-state"
    return list((state / "results").rglob("*.txt"))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_file_is_read_in_parts_that_arrive_whole_whatever_its_lines_are_like(workspace, text):
    (workspace / "a.txt").write_bytes(text.encode())
    async with reader(workspace) as (editor, model):
        read = await read_whole(editor, model, "a.txt")
        assert read == text
        assert kept(workspace) == []
        past = await result(editor, model, "read_file", path="a.txt", offset=len(text))
    assert "there is no line" in past


@pytest.mark.parametrize(
    "answer", ["x" * 120_000, "\ud800é\0" * 20_000, "[" + '"item", ' * 20_000 + "]"], ids=["long", "half", "JSON"]
)
async def test_the_file_of_a_large_result_of_a_server_is_read_to_its_end_and_makes_no_other(
    workspace, tmp_path, answer
):
    content = [{"type": "text", "text": answer}]
    tool = {"name": "big", "description": "Big.", "inputSchema": {"type": "object"}}
    server = scripted_from(tmp_path / "s.json", tools=[tool], calls={"big": [{"result": {"content": content}}]})
    declare(workspace, s={**server, "alwaysLoad": True})
    async with reader(workspace) as (editor, model):
        text = await result(editor, model, "mcp__s__big")
        [file] = kept(workspace)
        assert str(file) in text.partition("\n")[0]
        assert await read_whole(editor, model, str(file)) == file.read_text(encoding="utf-8")
        assert kept(workspace) == [file]


async def test_the_file_of_a_commands_output_is_text_also_where_the_output_was_none(workspace):
    async with reader(workspace) as (editor, model):
        await result(editor, model, "bash", command="head -c 60000 /dev/zero; echo end")
        [file] = kept(workspace)
        assert await read_whole(editor, model, str(file)) == "exit code 0\n" + "?" * 60_000 + "end"
        assert kept(workspace) == [file]
