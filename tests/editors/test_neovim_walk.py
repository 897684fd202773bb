"""A random walk: after every step the editor's buffer, the server's copy of it and the expected text are the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests.editors.neovim import EDITORS, ModelThread, Neovim, at_work, text

STEPS = 300
SEED = 8437

WORDS = ["port", "= 7", "ü", "😀", "e\u0301", "\t", "中文", "$&", "\\1", "(x)", ".*", "<", '"', "' "]


class Expected:
    """The text as it should be, with the undo steps that a user of Neovim expects. Lines have no line ends."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._undo: list[list[str]] = []
        self._redo: list[list[str]] = []

    def become(self, lines: list[str]) -> None:
        if lines != self.lines:
            self._undo.append(self.lines)
            self._redo.clear()
            self.lines = lines

    def undo(self) -> None:
        if self._undo:
            self._redo.append(self.lines)
            self.lines = self._undo.pop()

    def redo(self) -> None:
        if self._redo:
            self._undo.append(self.lines)
            self.lines = self._redo.pop()


class Walk:
    def __init__(self, editor: Neovim, model: ModelThread, file: Path, lines: list[str]) -> None:
        self.random = random.Random(SEED)
        self.editor = editor
        self.model = model
        self.file = file
        self.expected = Expected(lines)
        self.on_disk = list(lines)

    def words(self, least: int = 1) -> str:
        return "".join(self.random.choice(WORDS) for _ in range(self.random.randint(least, 4)))

    def type(self) -> None:
        """Type at a place, over several lines at times."""
        lines = self.expected.lines
        row = self.random.randrange(len(lines))
        column = self.random.randint(0, len(lines[row]))
        while column > 0 and lines[row][column:].startswith("\u0301"):
            column -= 1  # there is no cursor position within a character
        typed = [self.words() for _ in range(self.random.choice([1, 1, 1, 2]))]
        head, tail = lines[row][:column], lines[row][column:]
        byte = len(head.encode())
        self.editor.lua("vim.fn.cursor(...)", row + 1, byte + 1)
        keys = "<CR>".join(part.replace("<", "<lt>").replace("\t", "<C-v><Tab>") for part in typed)
        self.editor.keys(("i" if tail else "A") + keys + "<Esc>")
        self.expected.become([*lines[:row], *(head + "\n".join(typed) + tail).split("\n"), *lines[row + 1 :]])

    def delete_a_line(self) -> None:
        lines = self.expected.lines
        if len(lines) == 1:
            return
        row = self.random.randrange(len(lines))
        self.editor.keys(f"{row + 1}Gdd")
        self.expected.become([*lines[:row], *lines[row + 1 :]])

    def undo(self) -> None:
        self.editor.keys("u")
        self.expected.undo()

    def redo(self) -> None:
        self.editor.keys("<C-r>")
        self.expected.redo()

    def save(self) -> None:
        self.editor.command("write")
        self.on_disk = self.expected.lines
        assert self.file.read_text(encoding="utf-8") == "".join(line + "\n" for line in self.on_disk)

    def reload(self) -> None:
        self.editor.command("edit!")
        self.expected.become(self.on_disk)

    def agent_edits(self) -> None:
        """The model replaces something that it quotes, be it there once or several times, and reads the file."""
        whole = "".join(line + "\n" for line in self.expected.lines)
        search, replace = self.quote(whole)
        arguments = {"path": self.file.name, "search": search, "replace": replace}
        edit = {"id": "edit", "name": "search_replace", "arguments": arguments}
        read = {"id": "read", "name": "read_file", "arguments": {"path": self.file.name}}
        self.model.say({"tool_calls": [edit, read]})
        edits = self.turn()["edits"]
        if edits:
            assert whole.find(search) == whole.rfind(search), "a place was edited that is not the only one"
            assert edits[0]["applied"] is True, edits
            self.expected.become(whole.replace(search, replace)[:-1].split("\n"))
        elif whole.find(search) == whole.rfind(search) and search != replace:
            assert "already applied" in self.model.tool_results()[-2].lower()

    def quote(self, whole: str) -> tuple[str, str]:
        """A piece of the text and what is to stand there. What is left ends a line, as any text in Neovim does."""
        while True:
            start = self.random.randrange(len(whole))
            search = whole[start : start + self.random.randint(1, 12)]
            replace = self.words(0) + self.random.choice(["", "", "\n", "\n\n"]) + self.words(0)
            if whole.replace(search, replace).endswith("\n"):
                return search, replace

    def agent_reads(self) -> None:
        self.model.say({"tool_calls": [{"name": "read_file", "arguments": {"path": self.file.name}}]})
        self.turn()

    def turn(self) -> dict[str, Any]:
        self.model.say(text("Done."))
        self.editor.lua("require('hel').ask({ prompt = 'go on' })")
        return self.editor.wait_for_end()

    def check(self) -> None:
        """The model's copy is that of its newest read."""
        shown = self.model.tool_results()[-1]
        assert self.editor.text() == self.expected.lines
        assert shown.split("\n", 1)[1] == "".join(line + "\n" for line in self.expected.lines)

    def step(self) -> str:
        moves = [self.type, self.delete_a_line, self.undo, self.redo, self.save, self.reload]
        move = self.random.choices([*moves, self.agent_edits], [6, 1, 4, 2, 2, 1, 8])[0]
        move()
        if move != self.agent_edits:
            self.agent_reads()
        self.check()
        return move.__name__


@EDITORS
def test_a_random_walk_of_typing_saving_undoing_and_agent_edits_and_reads(nvim: str, tmp_path: Path) -> None:
    lines = ["[service]", "name = api", "port = 7000", "", "[ü 😀]", "\tx = 中文"]
    file = tmp_path / "workspace" / "walk.txt"
    file.parent.mkdir()
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    with at_work(nvim, tmp_path, file.name, access="auto") as (editor, model):
        editor.command("set noautoindent formatoptions= textwidth=0")
        walk = Walk(editor, model, file, lines)
        steps = [walk.step() for _ in range(STEPS)]
        assert steps.count("agent_edits") > STEPS / 5
