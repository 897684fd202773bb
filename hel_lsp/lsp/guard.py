"""A language server on pygls 2.1, with what pygls needs mending: no other module of the project works around it.

- A request that does not parse got no reply, not even `initialize`: what fits is taken, the rest is answered.
- `$/cancelRequest` was answered while the command ran on; `shutdown` failed while one was running.
- A command's argument was forced into the handler's annotations (`None` became `"None"`).
- Any JSON object with a `jsonrpc` key was taken for a message, at any depth.
- A result that is no JSON got no reply; an error elsewhere became a popup for the user.
- Documents were kept in a copy that splits lines at form feeds, or read from the disk when they were not open.

Replies are mended in `calls.py`; framing, the end of the connection and the exit code in `wire.py`.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from typing import Any, Protocol, cast

from cattrs import BaseValidationError, Converter
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from hel_lsp.errors import CommandError, EditorError, EditorSilent, HelError
from hel_lsp.lsp.calls import Calls, message_id
from hel_lsp.lsp.documents import Documents
from hel_lsp.lsp.lenient import faults, spell, structure_leniently

logger = logging.getLogger(__name__)

CLOSING_TIME = 4.4
"""Seconds that `on_close` gets when the connection has ended."""

CANCELLING_TIME = 0.3

CommandHandler = Callable[[dict[str, Any] | None], Awaitable[Any]]

_work_done_token: contextvars.ContextVar[int | str | None] = contextvars.ContextVar("work_done_token", default=None)


class Transport(Protocol):
    """Where the bytes of messages go."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class GuardedProtocol(LanguageServerProtocol):
    """Dispatches messages in both directions. Everything runs in the event loop's thread."""

    _server: GuardedServer  # pyright: ignore[reportIncompatibleVariableOverride] # set once, by pygls

    def __init__(self, server: GuardedServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self.calls = Calls(converter, self._send_data)
        self._greeted = False
        self._on_exit: Callable[[int], None] = lambda code: None
        documents = server.documents
        self._json_handlers: dict[str, Callable[[Any], Any]] = {
            types.WORKSPACE_EXECUTE_COMMAND: self._execute_command,
            types.TEXT_DOCUMENT_DID_OPEN: documents.opened,
            types.TEXT_DOCUMENT_DID_CHANGE: documents.changed,
            types.TEXT_DOCUMENT_DID_SAVE: documents.saved,
            types.TEXT_DOCUMENT_DID_CLOSE: documents.closed,
        }
        features = cast(dict[str, Any], self.fm.builtin_features)
        features.update(self._json_handlers)
        features[types.SHUTDOWN] = self._shut_down
        for method in [name for name in features if name.startswith("notebookDocument/")]:
            del features[method]
        options = cast(dict[str, Any], self.fm.feature_options)
        options[types.TEXT_DOCUMENT_DID_SAVE] = types.SaveOptions(include_text=False)

    # ---------------------------------------------------------------- the connection

    def attach(self, transport: Transport, on_exit: Callable[[int], None]) -> None:
        """Send through `transport` from now on; `on_exit` hears the exit code when the editor says `exit`."""
        self.set_writer(transport)
        self._on_exit = on_exit

    def detach(self) -> None:
        """Cancel what the editor asked for and fail what it was asked: nobody is there any more."""
        self.writer = None
        self._cancel_requests()
        self.calls.fail_all()

    @property
    def exit_code(self) -> int:
        """What the process ends with: 0 only when the editor has asked for `shutdown`."""
        return 0 if self._shutdown else 1

    # ---------------------------------------------------------------- incoming messages

    def receive(self, body: bytes) -> None:
        """Handle one message: never raises, and answers every request."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            self.refuse(str(error))
            return
        if isinstance(message, dict):
            contextvars.copy_context().run(self._dispatch, cast(dict[str, Any], message))
        else:
            self._send_error(None, JsonRpcInvalidRequest("Invalid Request: a message is one object"))

    def refuse(self, reason: str) -> None:
        """Answer what cannot be read as a message, and so has no id that is known."""
        logger.warning("what the editor sent cannot be read: %s", reason)
        self._send_error(None, JsonRpcParseError(f"Parse Error: {reason}"))

    def _dispatch(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params")
        try:
            if "method" not in message and "id" in message:
                self.calls.on_reply(message)
            elif not isinstance(method, str):
                raise JsonRpcInvalidRequest("Invalid Request: method must be a string")
            elif "id" in message:
                self._on_request(message["id"], method, params)
            else:
                self._on_notification(method, params)
        except JsonRpcException as error:
            logger.info("refused %s: %s", method, error.message)
            if "id" in message:
                self._send_error(message_id(message["id"]), error)
        except Exception as error:
            # The outermost edge: one bad message must not end the connection.
            logger.exception("failed to handle %s", method)
            if "id" in message:
                self._send_error(message_id(message["id"]), _as_reply(error))

    def _on_request(self, number: Any, method: str, params: Any) -> None:
        if message_id(number) is None or number in self._request_futures:
            raise JsonRpcInvalidRequest("Invalid Request: id must be a number or a string, and not in use")
        if self._shutdown:
            raise JsonRpcInvalidRequest("Invalid Request: the server is shutting down")
        if not self._greeted and method != types.INITIALIZE:
            raise JsonRpcServerNotInitialized("initialize comes first")
        if self._greeted and method == types.INITIALIZE:
            raise JsonRpcInvalidRequest("Invalid Request: initialize comes once")
        handler = self._get_handler(method)
        params = self._read_params(method, params)
        self._greeted = True
        self._ctx_msg_id.set(number)
        self._execute_handler(number, handler, functools.partial(self._answer, number), args=(params,))

    def _on_notification(self, method: str, params: Any) -> None:
        if method == types.EXIT:
            self._on_exit(self.exit_code)
        elif self._shutdown or not self._greeted:
            logger.debug("ignored %s outside of a session", method)
        elif method == types.CANCEL_REQUEST:
            self._cancel_request(cast(dict[str, Any], params).get("id") if isinstance(params, dict) else None)
        else:
            handler = self._get_handler(method)
            params = self._read_params(method, params)
            key = str(uuid.uuid4())
            self._execute_handler(key, handler, functools.partial(self._after_notification, key), args=(params,))

    def _read_params(self, method: str, params: Any) -> Any:
        """The parameters in their protocol type; plain JSON for methods that check them on their own."""
        target = types.METHOD_TO_TYPES[method][2] if method in types.METHOD_TO_TYPES else None
        if target is None or method in self._json_handlers:
            return params
        fields: dict[str, Any] = cast(dict[str, Any], params) if isinstance(params, dict) else {}
        if method == types.INITIALIZE and not isinstance(fields.get("capabilities"), dict):
            fields = fields | {"capabilities": {}}
        elif params and not fields:
            raise JsonRpcInvalidParams("Invalid Params: an object is expected")
        try:
            return structure_leniently(self._converter, fields, target)
        except BaseValidationError as error:
            raise JsonRpcInvalidParams(f"Invalid Params: {', '.join(map(spell, faults(error)))}") from error

    def _cancel_request(self, number: Any) -> None:
        # The request stays in the table: it is answered when its task has really ended.
        future = self._request_futures.get(number) if message_id(number) is not None else None
        if future is not None:
            future.cancel()

    def _cancel_requests(self, but: object = None) -> None:
        for future in tuple(self._request_futures.values()):
            if future is not but:
                future.cancel()

    def _answer(self, number: Any, future: Future[Any]) -> None:
        self._request_futures.pop(number, None)
        if future.cancelled():
            self._send_error(number, JsonRpcRequestCancelled("Request Cancelled"))
        elif (error := future.exception()) is not None:
            self._send_error(number, _as_reply(error))
        else:
            self._send_response(number, future.result())

    def _after_notification(self, key: str, future: Future[Any]) -> None:
        self._request_futures.pop(key, None)
        if not future.cancelled() and (error := future.exception()) is not None:
            logger.error("failed to handle a notification", exc_info=error)

    # ---------------------------------------------------------------- outgoing messages

    async def request(self, method: str, params: Any = None, timeout: float | None = None) -> Any:
        """Ask the editor and wait, `timeout` seconds at most; returns the result as plain JSON, unchecked.

        Raises EditorError for an error reply, a malformed one, none in time, and a connection that has ended. The
        editor is told when nobody waits any longer; what it still replies is ignored.
        """
        if self.writer is None:
            raise EditorError(f"{method}: there is no connection to the editor")
        number, future = self.calls.start(method, params)
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise EditorSilent(f"{method}: no reply within {timeout:g} s") from None
        except JsonRpcException as error:
            raise EditorError(f"{method}: {error.message}") from error
        finally:
            if self.calls.abandon(number):
                self.notify(types.CANCEL_REQUEST, {"id": number})

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: str | int | None = None,
    ) -> Any:
        """pygls' own way to ask, with the result in its protocol type; it always comes to an end too."""
        _, future = self.calls.start(method, params, reply=self.get_result_type(method), number=msg_id)
        if callback is not None:
            future.add_done_callback(lambda done: callback(done.result()))
        return future

    def notify(self, method: str, params: Any | None = None) -> None:
        """Send a notification; `params` may be a protocol type or plain JSON."""
        message: dict[str, Any] = {"jsonrpc": self.VERSION, "method": method}
        self._send_data(message if params is None else message | {"params": params})

    def _send_response(self, msg_id: Any, result: Any | None = None, error: types.ResponseError | None = None) -> None:
        try:
            self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "result": result})
        except (TypeError, ValueError) as reason:
            self._send_error(msg_id, _as_reply(reason))

    def _send_error(self, number: Any, error: JsonRpcException) -> None:
        fields = {"code": int(error.code), "message": error.message}
        if error.data is not None:
            fields["data"] = error.data
        self._send_data({"jsonrpc": self.VERSION, "id": number, "error": fields})

    def _send_data(self, data: Any) -> None:
        if self.writer is not None:
            body = json.dumps(data, default=self._serialize_message, separators=(",", ":"), allow_nan=False).encode()
            self.writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def _serialize_message(self, data: Any) -> Any:
        if hasattr(data, "__attrs_attrs__"):
            return self._converter.unstructure(data)
        raise TypeError(f"{type(data).__name__} is not JSON")

    # ---------------------------------------------------------------- methods that pygls handles by itself

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Agree on the capabilities, and on the position encoding with the client's first preference."""
        result = yield from super().lsp_initialize(params)
        encoding = result.capabilities.position_encoding or types.PositionEncodingKind.Utf16
        self._server.documents.encoding = types.PositionEncodingKind(encoding).value
        return result

    async def _shut_down(self, params: Any) -> None:
        self._shutdown = True
        self._cancel_requests(but=asyncio.current_task())
        handler = cast(dict[str, Callable[[Any], Any]], self.fm.features).get(types.SHUTDOWN)
        outcome = handler(params) if handler is not None else None
        if inspect.isawaitable(outcome):
            await outcome

    async def _execute_command(self, params: Any) -> Any:
        fields = cast(dict[str, Any], params) if isinstance(params, dict) else {}
        name, arguments = fields.get("command"), cast(Any, fields.get("arguments") or [])
        handler = self._server.commands.get(name) if isinstance(name, str) else None
        if handler is None:
            raise JsonRpcInvalidParams(f"command: {name!r} is no command of this server")
        if not isinstance(arguments, list) or len(cast(list[Any], arguments)) > 1:
            raise JsonRpcInvalidParams("arguments: at most one object is expected")
        argument = cast(list[Any], arguments)[0] if arguments else None
        if argument is not None and not isinstance(argument, dict):
            raise JsonRpcInvalidParams("arguments[0]: an object is expected")
        _work_done_token.set(message_id(fields.get("workDoneToken")))
        return await handler(cast(dict[str, Any] | None, argument))


class GuardedServer(LanguageServer):
    """The server's side of one connection: features and commands are registered on it before it is started."""

    protocol: GuardedProtocol  # pyright: ignore[reportIncompatibleVariableOverride] # set once, by pygls

    def __init__(self, name: str, version: str) -> None:
        self.documents = Documents()
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            name, version, text_document_sync_kind=types.TextDocumentSyncKind.Full, protocol_cls=GuardedProtocol
        )

    @property
    def commands(self) -> dict[str, CommandHandler]:
        """The commands by name; to be filled before `initialize`.

        A handler gets the one argument object that the client sent, or None. Its CommandError becomes
        InvalidParams, any other HelError RequestFailed; `$/cancelRequest` cancels its task.
        """
        return cast(dict[str, CommandHandler], self.protocol.fm.commands)

    @property
    def work_done_token(self) -> int | str | None:
        """The `workDoneToken` that came with the command which runs in the current task."""
        return _work_done_token.get()

    async def request(self, method: str, params: Any = None, timeout: float | None = None) -> Any:
        """See `GuardedProtocol.request`."""
        return await self.protocol.request(method, params, timeout)

    def notify(self, method: str, params: Any = None) -> None:
        """See `GuardedProtocol.notify`."""
        self.protocol.notify(method, params)

    async def on_close(self) -> None:
        """To be overridden: end what the server has started; the editor may be gone already."""

    async def close(self) -> None:
        """End everything, in bounded time, whether the editor said `exit` or vanished."""
        self.protocol.detach()
        try:
            async with asyncio.timeout(CLOSING_TIME):
                await self.on_close()
        except TimeoutError:
            logger.error("not everything could be ended within %g s", CLOSING_TIME)
        except Exception:
            # The outermost edge: the process ends now, and the log says what went wrong with that.
            logger.exception("failed to end cleanly")
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCELLING_TIME)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors of the server are for its log, never for a popup."""
        logger.error("%s", error, exc_info=error)


def _as_reply(error: BaseException) -> JsonRpcException:
    if isinstance(error, JsonRpcException):
        return error
    if isinstance(error, CommandError):
        return JsonRpcInvalidParams(error.message)
    if isinstance(error, HelError):
        return JsonRpcException(error.message, types.LSPErrorCodes.RequestFailed)
    logger.error("failed to handle a request", exc_info=error)
    return JsonRpcInternalError(f"{type(error).__name__}: {error}")
