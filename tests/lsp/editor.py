"""An editor for tests at the wire: a real child process, real buffers, and the habits of a `Personality`.

    async with Editor.started(NEOVIM, workspace=folder) as editor:
        buffer = editor.open(folder / "config.ini")
        editor.answers = ["Allow once"]
        result = await editor.command("hel.ask", {"prompt": "…", "wait": True})
        editor.save(buffer)

Everything that the server sends is kept in `received`, in order and as JSON; `wait_for` waits until something is so.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.request import url2pathname

from lsprotocol import types
from pygls.client import JsonRPCClient
from pygls.io_ import run_async
from pytest_lsp import LanguageClient
from pytest_lsp.client import register_lsp_features

from tests.lsp import forking
from tests.lsp.editor_protocol import EditorProtocol, converter
from tests.lsp.personalities import (
    DISMISSED,
    VSCODE,
    Answer,
    AnswerPolicy,
    Held,
    Personality,
    Refused,
    Reply,
    applied,
)

SERVER = (sys.executable, "-m", "hel_lsp")
"""Its processes are forked from one that has done the imports."""
FRESH = (*SERVER, "--stdio")
"""The same, with a start of its own: for tests of what a process is made of."""

T = TypeVar("T")


@dataclass(eq=False)
class Buffer:
    """An open document. `undo` is what to go back to, the last step at the end; `texts` every text by its version."""

    uri: str
    path: Path | None
    held: Held
    version: int
    saved_text: str
    undo: list[Held] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.held.text

    @property
    def dirty(self) -> bool:
        return self.text != self.saved_text


@dataclass(frozen=True)
class Question:
    """A `window/showMessageRequest`; `answer` may come at any time, also for one that was left open at first."""

    editor: Editor
    id: int | str
    message: str
    actions: list[str]

    def answer(self, answer: Answer) -> None:
        if isinstance(answer, str):
            answer = Reply({"result": {"title": answer}})
        self.editor.reply(self.id, answer or DISMISSED)


@dataclass(frozen=True)
class Command:
    """A command on its way: its id, for a cancel, and its result."""

    id: str
    result: asyncio.Future[Any]


class Editor(LanguageClient):
    """An editor with one server. Paths and URIs are as a user would give them; texts are what the server gets."""

    protocol: EditorProtocol

    def __init__(self, personality: Personality = VSCODE, *, settings: Any = None) -> None:
        super().__init__(
            protocol_cls=EditorProtocol,
            converter_factory=converter,
            configuration={"": {"hel": settings or {}}},
        )
        register_lsp_features(self)
        self.personality = personality
        self.received: list[dict[str, Any]] = []
        self.news = asyncio.Event()
        self.buffers: dict[str, Buffer] = {}
        self.questions: list[Question] = []
        self.answers: list[Answer] | AnswerPolicy = []
        """Answers to questions, used up in order, or a function; a question beyond them is dismissed."""
        self.before_edit: Callable[[], None] = lambda: None
        """Called when an edit has arrived and before it is looked at: the user is typing all the time."""
        self.handlers: dict[str, Callable[[Any, Any], Reply | None]] = {
            types.WINDOW_SHOW_MESSAGE_REQUEST: self._on_question,
            types.WORKSPACE_APPLY_EDIT: self._on_edit,
        }
        """What answers a request, by method: gets its id and parameters; None is a reply that comes later or never."""
        self.stderr = ""
        self.initialize_result: types.InitializeResult | None = None
        self._commands = 0

    # ---------------------------------------------------------------- the server's process

    @classmethod
    @asynccontextmanager
    async def started(
        cls,
        personality: Personality = VSCODE,
        *,
        workspace: Path | None = None,
        command: Sequence[str] = SERVER,
        environment: dict[str, str] | None = None,
        options: Any = None,
        settings: Any = None,
        experimental: Any = None,
        folders: Sequence[Path] | None = None,
        root_uri_alone: bool = False,
    ) -> AsyncIterator[Editor]:
        """An editor with an initialized server, which is ended with `shutdown` and `exit` unless it is gone by then.

        `options` are the initializationOptions, `settings` what `workspace/configuration` says for `hel`. With
        `root_uri_alone` it is a client that knows no workspace folders.
        """
        editor = cls(personality, settings=settings)
        await editor.start(command, environment or {}, cwd=workspace)
        try:
            roots = list(folders) if folders is not None else [workspace] if workspace else []
            await editor.initialize(roots, options, experimental, root_uri_alone=root_uri_alone)
            yield editor
        finally:
            await editor.end()

    async def start(self, command: Sequence[str], environment: dict[str, str], cwd: Path | None = None) -> None:
        paths = [str(forking.PROJECT), os.environ.get("PYTHONPATH", "")]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | environment
        if forking.AVAILABLE and command == SERVER:
            await self._start_forked(env, cwd)
        else:
            await JsonRPCClient.start_io(self, *command, env=env, cwd=cwd)
        self._stderr_reader = asyncio.create_task(self._read_stderr())

    async def _start_forked(self, environment: Mapping[str, str], folder: Path | None) -> None:
        """What `start_io` does, with a process of the same kind that takes less time to start."""
        server, watching = await forking.start(environment, folder)
        self._server = cast("asyncio.subprocess.Process", server)
        self.protocol.set_writer(server.stdin)
        reading = run_async(
            stop_event=self._stop_event,
            reader=server.stdout,
            protocol=self.protocol,
            error_handler=self.report_server_error,
        )
        self._async_tasks += [asyncio.create_task(reading), asyncio.create_task(self._server_exit()), watching]

    async def initialize(
        self, folders: Sequence[Path], options: Any = None, experimental: Any = None, *, root_uri_alone: bool = False
    ) -> None:
        capabilities = self.personality.capabilities | ({"experimental": experimental} if experimental else {})
        params = {
            "processId": os.getpid(),
            "clientInfo": {"name": self.personality.name, "version": "1"} if self.personality.tells_name else None,
            "rootUri": folders[0].as_uri() if folders else None,
            "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders],
            "capabilities": capabilities,
            "initializationOptions": options,
        }
        if root_uri_alone:
            params["workspaceFolders"] = None
        structured = self.protocol._converter.structure(params, types.InitializeParams)
        self.initialize_result = await self.initialize_session(structured)

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._server is not None
        return self._server

    async def end(self) -> int:
        """`shutdown` and `exit`, or a kill where that does not help; the exit code."""
        if self.process.returncode is None and self.initialize_result is not None:
            try:
                async with asyncio.timeout(10):
                    await self.protocol.send_request_async(types.SHUTDOWN)
                    self.protocol.notify(types.EXIT)
                    await self.process.wait()
            except (RuntimeError, ConnectionError, TimeoutError) as error:
                self.stderr += f"(the server did not end as it should: {error!r})"
        return await self.kill()

    async def kill(self) -> int:
        """End the process at once where it has not ended; the exit code."""
        if self.process.returncode is None:
            self.process.kill()
        if self.process.stdin is not None:
            self.process.stdin.close()
        await self.process.wait()
        self._stop_event.set()
        async with asyncio.timeout(10):
            await asyncio.gather(self._stderr_reader, *self._async_tasks, return_exceptions=True)
        assert self.process.returncode is not None
        return self.process.returncode

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.stderr += line.decode(errors="replace")

    # ---------------------------------------------------------------- talking to the server

    async def command(self, name: str, argument: Any = None, *, token: str | None = None) -> Any:
        """Run a command to its end; raises JsonRpcException for an error reply."""
        return await self.start_command(name, argument, token=token).result

    def start_command(self, name: str, argument: Any = None, *, token: str | None = None) -> Command:
        """Send a command; `token` is a workDoneToken, for progress in `progress_reports[token]`."""
        self._commands += 1
        number = f"command {self._commands}"
        if token is not None:
            self.progress_reports.setdefault(token, [])
        params = types.ExecuteCommandParams(name, None if argument is None else [argument], token)
        future = self.protocol.send_request(types.WORKSPACE_EXECUTE_COMMAND, params, msg_id=number)
        return Command(number, asyncio.wrap_future(future))

    def cancel(self, command: Command) -> None:
        """`$/cancelRequest`."""
        self.protocol.notify(types.CANCEL_REQUEST, types.CancelParams(command.id))

    def reply(self, number: int | str, reply: Reply) -> None:
        if reply.fields is not None:
            self.protocol._send_data({"jsonrpc": "2.0", "id": number} | reply.fields)

    def sent(self, method: str) -> list[Any]:
        """The parameters of every message of this kind that the server has sent, in order, as JSON."""
        return [message.get("params") for message in self.received if message.get("method") == method]

    async def wait_for(self, predicate: Callable[[], T], timeout: float = 20) -> T:
        """Wait until `predicate` gives something true, which is looked at after each message; returns that."""
        try:
            async with asyncio.timeout(timeout):
                while not (found := predicate()):
                    self.news.clear()
                    await self.news.wait()
        except TimeoutError:
            methods = [message.get("method", "a reply") for message in self.received]
            raise AssertionError(f"in vain after {timeout} s; received {methods}; stderr:\n{self.stderr}") from None
        return found

    async def question(self, index: int = 0) -> Question:
        """The question with this index, when it is there."""
        return (await self.wait_for(lambda: self.questions[index : index + 1]))[0]

    # ---------------------------------------------------------------- buffers

    def open(self, path: Path, *, uri: str | None = None, language: str = "plaintext") -> Buffer:
        """Open a file, under another spelling of its URI if one is given."""
        return self._opened(uri or path.as_uri(), path, self.personality.load(path.read_bytes()), language)

    def open_untitled(self, uri: str, text: str) -> Buffer:
        """A new document without a file."""
        return self._opened(uri, None, Held(text), "plaintext")

    def buffer(self, path: Path) -> Buffer:
        """The buffer that shows a file, also one that the editor opened by itself."""
        [found] = [
            buffer for buffer in self.buffers.values() if buffer.path and buffer.path.resolve() == path.resolve()
        ]
        return found

    def replace(self, buffer: Buffer, old: str, new: str) -> None:
        """The user changes the first occurrence of a text: one undo step."""
        assert old in buffer.text
        self._change(buffer, replace(buffer.held, text=buffer.text.replace(old, new, 1), empty=False))

    def type(self, buffer: Buffer, text: str, at: int | None = None) -> None:
        """The user types at an offset, or at the end: one undo step."""
        at = len(buffer.text) if at is None else at
        self._change(buffer, replace(buffer.held, text=buffer.text[:at] + text + buffer.text[at:], empty=False))

    def undo(self, buffer: Buffer) -> None:
        """Take back the last step."""
        before = buffer.undo.pop()
        self._change(buffer, before)
        buffer.undo.pop()

    def save(self, buffer: Buffer) -> None:
        assert buffer.path is not None
        buffer.path.write_bytes(self.personality.save(buffer.held))
        buffer.saved_text = buffer.text
        self.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(buffer.uri)))

    def close(self, buffer: Buffer) -> None:
        del self.buffers[buffer.uri]
        self.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(buffer.uri)))

    def _opened(self, uri: str, path: Path | None, held: Held, language: str = "plaintext") -> Buffer:
        version = self.personality.first_version
        saved_text = held.text if path is not None else ""
        buffer = self.buffers[uri] = Buffer(uri, path, held, version, saved_text, texts={version: held.text})
        item = types.TextDocumentItem(uri, language, version, held.text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return buffer

    def _change(self, buffer: Buffer, held: Held, *, tell: bool = True) -> None:
        buffer.undo.append(buffer.held)
        buffer.held = held
        buffer.version += 1
        buffer.texts[buffer.version] = held.text
        if tell:
            self._tell_change(buffer)

    def _tell_change(self, buffer: Buffer) -> None:
        identifier = types.VersionedTextDocumentIdentifier(buffer.version, buffer.uri)
        change = types.TextDocumentContentChangeWholeDocument(buffer.text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))

    # ---------------------------------------------------------------- what the server asks

    def _on_question(self, number: Any, params: types.ShowMessageRequestParams) -> None:
        question = Question(self, number, params.message, [action.title for action in params.actions or []])
        self.questions.append(question)
        if callable(self.answers):
            question.answer(self.answers(question.message, question.actions))
        else:
            question.answer(self.answers.pop(0) if self.answers else None)

    def _on_edit(self, number: Any, params: types.ApplyWorkspaceEditParams) -> None:
        self.before_edit()
        changed: list[Buffer] = []
        try:
            if self.personality.applies:
                changed = self._apply(params.edit)
            reply = applied(True)
        except Refused as refused:
            reply = refused.reply
        reply = self.personality.says or reply
        if self.personality.changes_after_reply:
            self.reply(number, reply)
        for buffer in changed:
            self._tell_change(buffer)
        if not self.personality.changes_after_reply:
            self.reply(number, reply)

    def _apply(self, edit: types.WorkspaceEdit) -> list[Buffer]:
        """Do what a workspace edit says, each document being one undo step; the buffers that have changed."""
        changed: list[Buffer] = []
        documents = 0
        for change in _document_changes(edit):
            if isinstance(change, types.CreateFile):
                self._create(change)
                continue
            assert isinstance(change, types.TextDocumentEdit)
            uri, wanted = change.text_document.uri, change.text_document.version
            buffer = self.buffers.get(uri) or self._open_in_background(uri)
            self.personality.check_version(buffer.version, wanted, documents)
            documents += 1
            edits = [cast(types.TextEdit, one) for one in change.edits]
            if self.personality.versions == "rebased" and wanted in buffer.texts:
                edits = [self.personality.rebase(buffer.texts[wanted], buffer.text, one) for one in edits]
            held = buffer.held
            # All ranges are about the text before the first edit: from the last to the first none moves another.
            for one in sorted(edits, key=_start, reverse=True):
                held = self.personality.apply(held, one)
            self._change(buffer, held, tell=False)
            changed.append(buffer)
        return changed

    def _open_in_background(self, uri: str) -> Buffer:
        path = path_of(uri)
        if path.exists():
            data = path.read_bytes()
        elif self.personality.creates == "cannot":
            data = b""  # to Emacs a file that is not there is a new one
        else:
            raise Refused(applied(False, failureReason=f"{path} does not exist"))
        return self._opened(uri, path, self.personality.load(data))

    def _create(self, change: types.CreateFile) -> None:
        path, options = path_of(change.uri), change.options or types.CreateFileOptions()
        if self.personality.creates == "cannot":
            raise Refused(Reply({"error": {"code": -32603, "message": "unknown kind of change"}}))
        if path.exists() and options.ignore_if_exists:
            return
        if path.exists() and not options.overwrite and self.personality.creates == "fails when there":
            raise Refused(applied(False))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def path_of(uri: str) -> Path:
    """The path of a file URI, worked out apart from the server's code."""
    return Path(url2pathname(uri.removeprefix("file://")))


def _document_changes(edit: types.WorkspaceEdit) -> list[Any]:
    if edit.document_changes is not None:
        return list(edit.document_changes)
    return [
        types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri), edits)
        for uri, edits in (edit.changes or {}).items()
    ]


def _start(edit: types.TextEdit) -> tuple[int, int]:
    return edit.range.start.line, edit.range.start.character
