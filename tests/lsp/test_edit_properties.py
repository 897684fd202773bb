"""For any text, in any editor: an edit is exact when it is saved and gone when it is undone, or nothing has happened.

Through the real server, one for each personality. `HEL_EXAMPLES=2000` tries more than the few that run by default.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from tests.lsp import turns
from tests.lsp.personalities import EDITORS, NEOVIM, Held, Personality
from tests.lsp.turns import Work, at_work

EXAMPLES = int(os.environ.get("HEL_EXAMPLES", "40"))

PIECES = [
    *("\n", "\n", "\n", "a", "b", "ab", "x\n", " ", "\t", "é", "e\u0301", "😀", "中", "$&"),
    *("\f", "\v", "\u0085", "\u2028", "\u00a0", "\u200b", "“", "\\n"),
]
pieces = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)


@dataclass(frozen=True)
class Example:
    """`quoted` is a part of `text`, mostly; all three have `\\n` alone, and `content` is how the file has the text."""

    text: str
    content: str
    search: str
    replace: str
    whole: bool
    opened: bool
    bom: bool
    typed: str


@st.composite
def examples(draw: st.DrawFn) -> Example:
    text = draw(pieces)
    start = draw(st.integers(0, len(text)))
    search = text[start : draw(st.integers(start, len(text)))] or draw(pieces)
    cut = draw(st.integers(0, len(search)))
    new = (
        draw(st.sampled_from([search[:cut], search[cut:], ""])) + draw(pieces) + draw(st.sampled_from(["", "\r", "\n"]))
    )
    kind = draw(st.sampled_from(["lf", "lf", "crlf", "crlf", "mixed", "lone"]))
    ends = {"lf": ["\n"], "crlf": ["\r\n"], "mixed": ["\n", "\r\n"], "lone": ["\n", "\r\n", "\r"]}[kind]
    content = "".join(draw(st.sampled_from(ends)) if one == "\n" else one for one in text)
    if kind == "lone":
        text = content.replace("\r\n", "\n")
        search = draw(st.sampled_from([search, search.replace("\n", "\r")]))
    return Example(
        text=text,
        content=content,
        search=search,
        replace=new,
        whole=draw(st.integers(0, 3)) == 0,
        opened=draw(st.booleans()),
        bom=draw(st.booleans()),
        typed=draw(st.sampled_from(["", "", "§\n", "§"])),
    )


class Server:
    """A server and its editor, for as long as the examples of one personality take."""

    def __init__(self, personality: Personality, scratch: Path) -> None:
        self.personality = personality
        self._runner = asyncio.Runner()
        self._work = at_work(scratch, personality)
        self.work: Work = self._runner.run(self._work.__aenter__())
        self._count = 0

    def close(self) -> None:
        self._runner.run(self._work.__aexit__(None, None, None))
        self._runner.close()

    def check(self, example: Example) -> None:
        self._count += 1
        path = self.work.file(f"{self._count}.txt", example.content.encode("utf-8-sig" if example.bom else "utf-8"))
        try:
            self._runner.run(_check(self.work, path, example))
        finally:
            for buffer in list(self.work.editor.buffers.values()):
                self.work.editor.close(buffer)
            path.unlink()
            self.work.editor.received.clear()


@pytest.fixture(scope="module", params=EDITORS, ids=lambda personality: personality.name)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(request.param, tmp_path_factory.mktemp("properties"))
    yield server
    server.close()


def plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def found(content: str, replace: str, *, search: str = "", **more: Any) -> Example:
    """One that has failed once."""
    fields = {"whole": False, "opened": False, "bom": False, "typed": "", **more}
    return Example(plain(content), content, search, replace, **fields)


@pytest.mark.timeout(max(120, 5 * EXAMPLES))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(example=examples())
@example(found("\r\n", "a", whole=True, typed="§\n"))
@example(found("p\rq\r\nr\n", "R", search="r"))
@example(found("a\r\nb\nc\r\n", "C\nC", search="c", opened=True))
@example(found("a\r\nb\nc\r\nd\nA\n", "C", search="c"))
@example(found("\r\nab\r\n", "\r", search="\nab"))
@example(found("a\rb\r\n", "", search="b"))
@example(found("x\r", "", search="x"))
@example(found("a", "a\n", search="a"))
@example(found("a", "", whole=True))
@example(found("", "\r", whole=True))
@example(found("", "\na", whole=True, opened=True))
@example(found("\n\r\n", "", whole=True))
def test_an_edit_is_exact_or_not_made(server: Server, example: Example) -> None:
    server.check(example)


# -------------------------------------------------------------------- one example


async def _check(work: Work, path: Path, example: Example) -> None:
    personality, disk = work.editor.personality, path.read_bytes()
    await work.editor.command("hel.newSession", {})
    first = personality.load(disk)
    buffer = work.editor.open(path) if example.opened else None
    base = first.text if buffer is not None else example.content
    if example.whole:
        example = replace(example, search=plain(base))
        made = turns.write(path.name, example.replace)
    else:
        made = turns.replace(path.name, example.search, example.replace)
    turn = await work.turn(made)
    [status], [told] = turn.statuses, turn.told
    if status != "completed":
        event(f"refused: {re.sub('[0-9]+', '0', told)[:40]}")
        assert may_be_refused(example, base, personality), told
        assert not work.editor.sent("workspace/applyEdit"), "what is refused has not been sent"
        assert not turn.edits
        assert path.read_bytes() == disk
        assert [one.text for one in work.editor.buffers.values()] == [first.text] * example.opened
    elif buffer is None and not takes_edits(personality):
        event("written")
        assert turn.unsaved == []
        assert_exact(example, example.content, text_of(path), personality)
        assert path.read_bytes().startswith(b"\xef\xbb\xbf") == example.bom
        assert (await work.editor.command("hel.undo"))["kept"] == []
        assert path.read_bytes() == disk
    else:
        event("applied")
        buffer = work.editor.buffer(path)
        assert turn.edits[0]["applied"] is True
        assert turn.unsaved == [buffer.uri]
        assert path.read_bytes() == disk, "nothing is written before a save"
        assert len(buffer.undo) == 1
        saved = work.saved(buffer)
        if personality is NEOVIM or not example.opened:
            assert_exact(example, base, text_of(path), personality)
            assert saved.startswith(b"\xef\xbb\xbf") == example.bom
        else:
            assert_exact(example, base, buffer.text, personality)
            assert saved == personality.save(replace(first, text=buffer.text))
        await undo(work, path, example, first)


def takes_edits(personality: Personality) -> bool:
    return personality.capabilities.get("workspace", {}).get("applyEdit", False)


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8-sig")


async def undo(work: Work, path: Path, example: Example, first: Held) -> None:
    buffer, personality = work.editor.buffer(path), work.editor.personality
    typed = example.typed if personality.holds_lf else example.typed.replace("\n", first.ending)
    if typed:
        work.editor.type(buffer, typed, at=0)
    edited = buffer.text
    undone = await work.editor.command("hel.undo")
    if undone["kept"]:
        event("undo refused")
        # Text with such line ends cannot be put back by an edit in every editor.
        assert typed or has_odd_line_ends(example.content), undone
        assert buffer.text == edited
    else:
        event("undone")
        assert undone["reverted"] == [buffer.uri]
        # To Neovim an empty file is an empty line, as long as nothing else is in it.
        empty = {typed} if personality is NEOVIM and not example.content else set[str]()
        assert buffer.text in {typed + first.text} | empty
        work.saved(buffer)
        if personality is NEOVIM:
            assert text_of(path).strip("\r\n") == (typed + example.content).strip("\r\n")
            assert text_of(path) in (with_final_newline(typed + example.content), typed + first.text, "")
        else:
            assert path.read_bytes() == personality.save(replace(first, text=typed + first.text))


def assert_exact(example: Example, before: str, after: str, personality: Personality) -> None:
    """`after` is what it should be, and nothing around the change has another line end than before."""
    old, search, new = plain(before), example.search, plain(example.replace)
    [start] = [0] if example.whole else places(old, search)
    expected = new if example.whole else old[:start] + new + old[start + len(search) :]
    if personality is NEOVIM:
        # It always saves a final newline, and an empty line that is the only one as an empty file.
        assert plain(after) in (plain(with_final_newline(expected)), "" if expected == "\n" else expected)
        if plain(after) != expected:
            return
    if "\r" in new:
        # In front of a `\n` it makes one line end of two, in front of a `\r\n` it does not.
        assert plain(after) in (expected, plain(expected))
        return
    assert plain(after) == expected
    kinds = set(re.findall(r"\r\n|\n", before))
    if len(kinds) == 1:
        assert set(re.findall(r"\r\n|\n", after)) <= kinds
    head, tail = tokens(before)[:start], tokens(before)[start + len(search) :]
    if not example.whole:
        assert tokens(after)[: len(head)] == head
        assert tokens(after)[len(tokens(after)) - len(tail) :] == tail


def with_final_newline(text: str) -> str:
    """As Neovim saves it."""
    return text if not text or text.endswith("\n") else text + NEOVIM.ending_of(text)


def may_be_refused(example: Example, base: str, personality: Personality) -> bool:
    """Whether there is a reason: it is not there once, nothing would change, or the line ends forbid it."""
    old, search, new = plain(base), example.search, plain(example.replace)
    if example.whole:
        nothing_to_do = old == new or (personality is NEOVIM and old.removesuffix("\n") == new.removesuffix("\n"))
    else:
        applied = search.rstrip("\n") in new or not search
        only_final_newline = search.rstrip("\n") == new.rstrip("\n")
        nothing_to_do = len(places(old, search)) != 1 or applied or only_final_newline
    if personality is NEOVIM and not old.endswith("\n") and new.endswith("\n"):
        return True  # an empty line at the end would look like the final newline
    return nothing_to_do or "\r" in new or has_odd_line_ends(base)


def has_odd_line_ends(text: str) -> bool:
    ends = set(re.findall(r"\r\n|\n|\r", text))
    return "\r" in ends or len(ends) > 1


def places(text: str, search: str) -> list[int]:
    return [place for place in range(len(text) - len(search) + 1) if search and text.startswith(search, place)]


def tokens(text: str) -> list[str]:
    """Characters, with each `\\r\\n` as one."""
    return re.findall(r"(?s)\r\n|.", text)
