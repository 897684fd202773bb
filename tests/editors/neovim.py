"""Drives a real Neovim: msgpack-rpc over `--embed`, a screen of its own, real keys.

Nothing here sleeps. Whatever is waited for arrives as a message: an `hel/event` that the plugin passes on, or a
redraw of the screen. Requests other than keys wait until Neovim is out of a blocking prompt.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack
import psutil
import pytest

from hel_lsp.demo.scripted_model import Reply, ScriptedModel

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "editors" / "neovim"
PATIENCE = 30.0
"""Seconds after which a wait is given up; much more than anything takes."""


def installed() -> dict[str, str]:
    """The editors that are there, by version: always the one of the virtual environment."""
    candidates = [
        str(Path(sys.executable).with_name("nvim")),
        str(ROOT / ".tools" / "neovim" / "bin" / "nvim"),
        os.environ.get("HEL_NVIM", ""),
    ]
    found: dict[str, str] = {}
    for candidate in candidates:
        if candidate and Path(candidate).exists():
            shown = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=True).stdout
            found[shown.split()[1].removeprefix("v")] = candidate
    return found


EDITORS = pytest.mark.parametrize("nvim", installed().values(), ids=installed())
"""Runs a test in each of them."""


class ModelThread:
    """A scripted model that serves while the test's own thread waits for the editor."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self.script = ScriptedModel(replies)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> ModelThread:
        self._thread.start()
        self._run(self.script.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self.script.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def say(self, *replies: Reply) -> None:
        """What it says to the next requests."""
        self.script.replies.extend(replies)

    def tool_results(self) -> list[str]:
        """What the model was told of its calls, in the newest request."""
        return [message["content"] for message in self.script.requests[-1]["messages"] if message["role"] == "tool"]

    def wait_until_hung_up(self) -> None:
        self._run(asyncio.wait_for(self.script.hung_up.wait(), PATIENCE))


class Screen:
    """The grid as a user sees it, kept up to date from `redraw` notifications."""

    def __init__(self, columns: int, lines: int) -> None:
        self._cells = [[" "] * columns for _ in range(lines)]

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._cells)

    def redraw(self, batches: Sequence[Sequence[Any]]) -> None:
        for name, *calls in batches:
            for call in calls:
                if name == "grid_line":
                    self._line(*call[1:4])
                elif name == "grid_resize":
                    self._cells = [[" "] * call[1] for _ in range(call[2])]
                elif name == "grid_clear":
                    self._cells = [[" "] * len(row) for row in self._cells]
                elif name == "grid_scroll":
                    self._scroll(*call[1:6])

    def _line(self, row: int, column: int, cells: Sequence[Sequence[Any]]) -> None:
        for cell in cells:
            for _ in range(cell[2] if len(cell) > 2 else 1):
                self._cells[row][column] = cell[0]
                column += 1

    def _scroll(self, top: int, bottom: int, left: int, right: int, rows: int) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self._cells[row][left:right] = self._cells[row + rows][left:right]


class Neovim:
    """One editor process with a UI attached. Use as a context manager."""

    def __init__(
        self,
        executable: str,
        folder: Path,
        home: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        columns: int = 120,
        lines: int = 40,
    ) -> None:
        state = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self._process = subprocess.Popen(
            [executable, "--embed", "--clean", "--cmd", f"set runtimepath^={PLUGIN}", *arguments],
            cwd=folder,
            env={**os.environ, "PATH": path, **state, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.screen = Screen(columns, lines)
        self.events: list[dict[str, Any]] = []
        self._seen_events = 0
        self._messages: queue.Queue[list[Any] | None] = queue.Queue()
        self._replies: dict[int, tuple[Any, Any]] = {}
        self._last_request = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        channel = self.request("nvim_get_api_info")[0]
        self.request("nvim_ui_attach", columns, lines, {"rgb": True, "ext_linegrid": True})
        self.lua(
            """
            local channel = ...
            vim.api.nvim_create_autocmd('User', { pattern = 'HelEvent', callback = function(args)
              vim.rpcnotify(channel, 'hel_event', args.data)
            end })
            """,
            channel,
        )

    def __enter__(self) -> Neovim:
        return self

    def __exit__(self, *_: object) -> None:
        self._send([0, self._next_id(), "nvim_command", ["qall!"]])
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._reader.join()  # it sees the end of the output after the process is gone, and needs it open until then
        self._process.stdout.close()

    @property
    def server(self) -> psutil.Process:
        """The language server that this editor runs."""
        (child,) = psutil.Process(self._process.pid).children()
        return child

    # -------------------------------------------------------------- what a person does

    def keys(self, keys: str) -> None:
        """Type; works at every prompt."""
        self.request("nvim_input", keys)

    def command(self, command: str) -> None:
        self.request("nvim_command", command)

    def ask(self, prompt: str) -> None:
        """Type an ask at the command line, as a person does."""
        self.keys(":HelAsk " + prompt.replace("<", "<lt>") + "<CR>")

    def answer(self, action: str) -> None:
        """Wait for a list of choices on the screen and choose `action` by its number."""
        self.wait_for_screen(f": {action}", "Type number")
        row = next(row for row in self.screen.text.splitlines() if row.endswith(f": {action}"))
        self.keys(row.split(":")[0].strip() + "<CR>")
        self.wait_until(lambda: "Type number" not in self.screen.text, "the list to go away")

    # -------------------------------------------------------------- what a person sees

    def wait_for_screen(self, *texts: str) -> None:
        self.wait_until(lambda: all(text in self.screen.text for text in texts), f"{texts} on the screen")

    def wait_for_event(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The next event of this kind with these fields; each event is handed out in order, once."""
        found: list[dict[str, Any]] = []

        def arrived() -> bool:
            while self._seen_events < len(self.events):
                event = self.events[self._seen_events]
                self._seen_events += 1
                if event["kind"] == kind and all(event.get(key) == value for key, value in fields.items()):
                    found.append(event)
                    return True
            return False

        self.wait_until(arrived, f"the event {kind} {fields}")
        return found[0]

    def wait_for_end(self) -> dict[str, Any]:
        """The result of the next turn that ends."""
        return self.wait_for_event("end")["result"]

    def text(self, name: str = "%") -> list[str]:
        """The lines of the current buffer, or of the one with this name."""
        return self.lua(
            """
            local name = ...
            return vim.api.nvim_buf_get_lines(vim.fn.bufnr(name), 0, -1, true)
            """,
            name,
        )

    def transcript(self) -> str:
        return "\n".join(self.text("hel://session"))

    # -------------------------------------------------------------- the wire

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.request("nvim_exec_lua", code, list(arguments))

    def request(self, method: str, *arguments: Any) -> Any:
        number = self._next_id()
        self._send([0, number, method, list(arguments)])
        self.wait_until(lambda: number in self._replies, f"the reply to {method}")
        error, result = self._replies.pop(number)
        if error is not None:
            raise RuntimeError(f"{method}: {error[1]}")
        return result

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Take in messages until the condition holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            try:
                message = self._messages.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"no {what}; the screen is\n{self.screen.text}") from None
            if message is None:
                raise ConnectionError(f"the editor ended while waiting for {what}")
            self._take(message)

    def _next_id(self) -> int:
        self._last_request += 1
        return self._last_request

    def _take(self, message: list[Any]) -> None:
        if message[0] == 1:
            self._replies[message[1]] = (message[2], message[3])
        elif message[1] == "redraw":
            self.screen.redraw(message[2])
        elif message[1] == "hel_event":
            self.events.append(message[2][0])

    def _send(self, message: list[Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgpack.packb(message, unicode_errors="surrogateescape"))
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        unpacker = msgpack.Unpacker(unicode_errors="surrogateescape", ext_hook=lambda _, data: msgpack.unpackb(data))
        while data := os.read(self._process.stdout.fileno(), 65536):
            unpacker.feed(data)
            for message in unpacker:
                self._messages.put(message)
        self._messages.put(None)


@contextlib.contextmanager
def at_work(
    nvim: str, folder: Path, *files: str, replies: Iterable[Reply] = (), access: str = "confirm"
) -> Generator[tuple[Neovim, ModelThread]]:
    """An editor with `files` of `folder/workspace` open, and the model that its server asks.

    The workspace has a `.hel` folder, so it is its own root wherever it lies.
    """
    workspace = folder / "workspace"
    (workspace / ".hel").mkdir(parents=True, exist_ok=True)
    with ModelThread(replies) as model:
        env = {
            "HEL_BASE_URL": model.script.base_url,
            "HEL_MODEL": "scripted",
            "HEL_STATE_DIR": str(folder / "hel-state"),
        }
        with Neovim(nvim, workspace, folder / "home", *files, env=env) as editor:
            editor.lua("vim.lsp.config('hel', { settings = { hel = { access = ... } } })", access)
            yield editor, model


def call(name: str, **arguments: Any) -> Reply:
    """A reply that is one tool call."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def text(words: str) -> Reply:
    """A reply without a call, which ends the turn."""
    return {"text": words}


BEFORE = "[api]\nname=api\nport=7000\n"
EDIT = call("search_replace", path="config.ini", search="port=7000", replace="port=8437")


def lay_out(folder: Path, **files: str) -> Path:
    """A workspace with `config.ini`, which holds BEFORE, and with these files."""
    workspace = folder / "workspace"
    workspace.mkdir()
    for name, content in {"config.ini": BEFORE, **files}.items():
        (workspace / name).write_text(content, encoding="utf-8", newline="")
    return workspace
