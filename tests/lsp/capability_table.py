"""What really happens in each editor without a plugin, as the table of docs/editors/README.md.

    python -m tests.lsp.capability_table      runs the server against each of them and writes the table

Each cell is made of what came over the wire in turns of the real server, and of the buffer or file afterwards.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lsprotocol import types

from tests.lsp import turns
from tests.lsp.personalities import (
    EGLOT,
    HELIX,
    KATE,
    KATE_LATER,
    NEOVIM,
    VSCODE,
    ZED,
    Answer,
    Personality,
    Reply,
    applied,
    plain,
)
from tests.lsp.turns import Work, at_work

PAGE = Path(__file__).parents[2] / "docs" / "editors" / "README.md"
BEGIN, END = "<!-- python -m tests.lsp.capability_table -->\n\n", "\n<!-- end -->"

WINDOW = {"workDoneProgress": True, "showDocument": {"support": True}}
OPERATIONS = {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]}

EGLOT_30 = replace(EGLOT, capabilities={**EGLOT.capabilities, "window": WINDOW})
"""As recorded from Emacs 30.2 with its eglot 1.17.30."""

LSP_MODE = replace(
    EGLOT,
    name="emacs",
    capabilities=plain(["utf-32", "utf-8", "utf-16"], edit=OPERATIONS, window=WINDOW),
    versions="exact above 0",
    refusal=applied(False),
    # Its delayed `didChange` goes out before anything else that it sends.
    changes_after_reply=False,
    creates="empties what is there",
)
"""As recorded from lsp-mode 10.0.0. A file that is there it leaves as it is; the server never asks for that."""

SUBLIME = Personality(
    "Sublime Text LSP",
    plain(["utf-16"], edit={**OPERATIONS, "failureHandling": "abort", "normalizesLineEndings": True}, window=WINDOW),
    refusal=applied(False, failureReason="Document version for URI is another", failedChange=0),
    changes_after_reply=True,
    line_end=r"\n",
    holds_lf=True,
    inserts="lf",
)
"""As read in the source of LSP 2.13.0."""

HELIX_25_07 = replace(HELIX, capabilities={**HELIX.capabilities, "window": {"workDoneProgress": True}})
"""As read in the source of Helix 25.07.1."""

UNKNOWN_METHOD = Reply({"error": {"code": -32601, "message": "Method not found: window/showMessageRequest"}})


@dataclass(frozen=True, eq=False)
class Client:
    """A row: what the user of this editor does, besides what its `personality` does."""

    name: str
    personality: Personality
    cancels_progress: bool = False
    """Whether its user can cancel a progress that the server has made."""
    answer: Answer = "Allow once"


CLIENTS = (
    Client("VS Code", VSCODE),
    Client("Neovim", NEOVIM),
    Client("Helix after 25.07.1", HELIX),
    Client("Helix 25.07.1", HELIX_25_07, answer=UNKNOWN_METHOD),
    Client("Emacs 29, eglot", EGLOT),
    Client("Emacs 30, eglot", EGLOT_30),
    Client("Emacs, lsp-mode", LSP_MODE),
    Client("Sublime Text, LSP", SUBLIME),
    Client("Kate, for 2 s after a command", KATE),
    Client("Kate, later", KATE_LATER),
    Client("Zed", ZED, cancels_progress=True),
)


# ---------------------------------------------------------------- the cells


async def positions(work: Work, client: Client) -> str:
    [encoding] = [
        message["result"]["capabilities"]["positionEncoding"]
        for message in work.editor.received
        if "capabilities" in (message.get("result") or {})
    ]
    return encoding


async def open_file(work: Work, client: Client) -> str:
    buffer = work.open("open.txt", b"one\n")
    turn, edits = await edited(work, turns.replace("open.txt", "one", "two"))
    how = {documents(edit)[0] for edit in edits}
    assert len(how) == 1
    if turn.statuses == ["failed"]:
        assert buffer.text == "one\n"
        return f"{how.pop()}: refused, and said so"
    assert turn.edits[0]["applied"]
    assert buffer.text == "two\n"
    return how.pop()


async def closed_file(work: Work, client: Client) -> str:
    path = work.file("closed.txt", b"one\n")
    turn, edits = await edited(work, turns.replace("closed.txt", "one", "two"))
    assert turn.statuses == ["completed"]
    return outcome(work, turn, edits, path, "two\n")


async def new_file(work: Work, client: Client) -> str:
    turn, edits = await edited(work, turns.write("new/file.txt", "one\n"))
    assert turn.statuses == ["completed"]
    return outcome(work, turn, edits, work.folder / "new" / "file.txt", "one\n")


async def cancel(work: Work, client: Client) -> str:
    """A turn that would go on for ever is ended by the means of this client; `hel.cancel` ends it in any case."""
    editor, shown = work.editor, len(begun(work))
    work.model.replies.append({"text": "half", "hold": True})
    asked = work.ask(wait=True)
    await work.model.wait_for_requests(len(work.model.replies))
    begin = (await editor.wait_for(lambda: begun(work)[shown:]))[0]
    assert begin["value"]["cancellable"]
    if client.cancels_progress:
        editor.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(begin["token"]))
    else:
        await editor.command("hel.cancel")
    assert (await asked.result)["stopReason"] == "cancelled"
    return "yes" if client.cancels_progress else "no"


async def progress(work: Work, client: Client) -> str:
    """Of the turns so far; one that is over before the client has made its progress shows none."""
    sent = work.editor.sent
    created = [params["token"] for params in sent("window/workDoneProgress/create")]
    if not created:
        return "no"
    shown = [params["token"] for params in begun(work)]
    ended = [params["token"] for params in sent("$/progress") if params["value"]["kind"] == "end"]
    assert shown
    assert shown == ended
    assert {*shown} <= {*created}
    return "yes"


async def question(work: Work, client: Client) -> str:
    """A short one, and one whose diff does not fit."""
    editor = work.editor
    work.file("asked.txt", "".join(f"line {number}\n" for number in range(100)).encode())
    short = await work.turn(turns.replace("asked.txt", "line 7\n", "line seven\n"), access="confirm")
    shown = len(editor.sent("window/showDocument"))
    long = await work.turn(turns.write("asked.txt", "other\n" * 100), access="confirm")
    assert len(editor.questions) == 2
    assert all(asked.actions[:2] == ["Reject", "Allow once"] for asked in editor.questions)
    if {*short.statuses, *long.statuses} == {"rejected"}:
        return "unknown to it, which is a no"
    assert [*short.statuses, *long.statuses] == ["completed", "completed"]
    if len(editor.sent("window/showDocument")) > shown:
        return "asked, long: document beside"
    assert "(in full: " in editor.questions[1].message
    return "asked, long: names a file"


async def answer(work: Work, client: Client) -> str:
    return f"{await answered(work, 'Short.')}, long: {await answered(work, 'long ' * 100)}"


async def undo(work: Work, client: Client) -> str:
    buffer = work.open("undone.txt", b"one\n")
    turn = await work.turn(turns.replace("undone.txt", "one", "two"))
    if turn.statuses == ["failed"]:
        return "nothing arrives"
    steps = len(buffer.undo)
    work.editor.undo(buffer)
    assert (steps, buffer.text) == (1, "one\n")
    await work.turn(turns.replace("undone.txt", "one", "two"))
    assert await work.editor.command("hel.undo") == {"reverted": [buffer.uri], "kept": []}
    assert buffer.text == "one\n"
    return "one step, or `hel.undo`"


COLUMNS: Mapping[str, Callable[[Work, Client], Awaitable[str]]] = {
    "positions": positions,
    "edit of an open file": open_file,
    "file that is not open": closed_file,
    "new file": new_file,
    "question": question,
    "answer": answer,
    "undo": undo,
    "cancel by progress": cancel,
    "progress": progress,
}


# ---------------------------------------------------------------- what they are made of


async def edited(work: Work, call: turns.Call) -> tuple[turns.Turn, list[Any]]:
    """A turn with this call, and the edits that were sent in it."""
    before = len(work.editor.sent("workspace/applyEdit"))
    turn = await work.turn(call)
    return turn, [params["edit"] for params in work.editor.sent("workspace/applyEdit")[before:]]


def documents(edit: Mapping[str, Any]) -> list[str]:
    """What an edit says of each document."""
    if "documentChanges" not in edit:
        return ["`changes`, no version"] * len(edit["changes"])
    return [
        f"`{change['kind']}`" if "kind" in change else f"`documentChanges`, {version(change['textDocument'])}"
        for change in edit["documentChanges"]
    ]


def version(document: Mapping[str, Any]) -> str:
    return "version `null`" if document["version"] is None else "versioned"


def outcome(work: Work, turn: turns.Turn, edits: list[Any], path: Path, text: str) -> str:
    if not edits:
        assert path.read_text() == text
        assert turn.unsaved == []
        return "written to the disk"
    [edit] = edits
    buffer = work.editor.buffer(path)
    assert (buffer.text, turn.unsaved) == (text, [buffer.uri])
    assert not path.exists() or path.read_text() != text
    creates = "`create`" in documents(edit)
    return "`create`, unsaved buffer" if creates else "unsaved buffer"


def begun(work: Work) -> list[Any]:
    return [params for params in work.editor.sent("$/progress") if params["value"]["kind"] == "begin"]


async def answered(work: Work, text: str) -> str:
    """How the end of a turn that says this is shown."""
    editor = work.editor
    ways = {"window/showMessage": "message", "window/showDocument": "document"}
    before = {method: len(editor.sent(method)) for method in ways}
    work.model.replies.append({"text": text})
    await work.ask(wait=True).result
    [method] = await editor.wait_for(lambda: [way for way in ways if len(editor.sent(way)) > before[way]])
    return ways[method]


# ---------------------------------------------------------------- the table


async def observe(client: Client, scratch: Path) -> list[str]:
    """The cells of a client, from one server."""
    async with at_work(scratch, client.personality) as work:
        work.editor.answers = lambda message, titles: client.answer
        return [await cell(work, client) for cell in COLUMNS.values()]


async def table() -> str:
    rows = [["client", *COLUMNS], ["---"] * (1 + len(COLUMNS))]
    for client in CLIENTS:
        with tempfile.TemporaryDirectory() as scratch:
            rows.append([client.name, *await observe(client, Path(scratch))])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def page() -> tuple[str, str, str]:
    """What is before the table, the table as it is on the disk, and what follows."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    written, _, after = rest.partition(END)
    return before, written, after


def write(text: str) -> None:
    before, _, after = page()
    PAGE.write_text(before + BEGIN + text + END + after, encoding="utf-8")


if __name__ == "__main__":
    write(asyncio.run(table()))
