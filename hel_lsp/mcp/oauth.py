"""Signing in to a server over HTTP: the SDK's OAuth, a page in the browser, a callback on loopback, tokens on disk."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from hel_lsp.mcp.config import ServerEntry
from hel_lsp.mcp.surroundings import Listener
from hel_lsp.ports import Person
from hel_lsp.state import read_json, state_folder, write_json

_PATIENCE = 600.0
"""Seconds that a person has to sign in."""

_REQUEST_LIMIT = 1 << 14


def sign_in(name: str, entry: ServerEntry, person: Person | None, listener: Listener) -> OAuthClientProvider:
    """What adds a token to requests, and gets one when the server asks for it."""
    assert entry.url is not None
    record = _Record(entry, listener.hide)
    auth = entry.auth
    callback = _Callback(name, record.port, auth.scopes if auth else [], person, listener)
    return OAuthClientProvider(
        server_url=entry.url,
        client_metadata=OAuthClientMetadata(
            client_name="hel-lsp",
            redirect_uris=[AnyUrl(callback.address)],
        ),
        storage=record,
        redirect_handler=callback.show,
        callback_handler=callback.wait,
        client_metadata_url=auth.metadata_url if auth else None,
    )


class _Record:
    """One server's tokens and registration, in a file for the user alone; implements the SDK's TokenStorage.

    The port of the callback belongs to the registration: a server may insist on the address that was registered.
    """

    def __init__(self, entry: ServerEntry, hide: Callable[[str], None]) -> None:
        assert entry.url is not None
        self._auth = entry.auth
        self._hide = hide
        self._file = _folder() / f"{hashlib.sha256(entry.url.encode()).hexdigest()[:32]}.json"
        stored: object = self._read().get("port")
        self.port = stored if isinstance(stored, int) else _free_port()

    async def get_tokens(self) -> OAuthToken | None:
        stored = self._read().get("tokens")
        tokens = OAuthToken.model_validate(stored) if stored else None
        self._hide_all(tokens and tokens.access_token, tokens and tokens.refresh_token)
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._hide_all(tokens.access_token, tokens.refresh_token)
        self._write(tokens=tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._auth is not None and self._auth.client_id is not None:
            secret = os.environ.get(self._auth.client_secret_env) if self._auth.client_secret_env else None
            self._hide_all(secret)
            return OAuthClientInformationFull(
                client_id=self._auth.client_id,
                client_secret=secret,
                token_endpoint_auth_method="client_secret_basic" if secret else "none",
                redirect_uris=[AnyUrl(_address(self.port))],
            )
        stored = self._read().get("client")
        client = OAuthClientInformationFull.model_validate(stored) if stored else None
        self._hide_all(client and client.client_secret)
        return client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._hide_all(client_info.client_secret)
        self._write(client=client_info.model_dump(mode="json", exclude_none=True))

    def _hide_all(self, *secrets: str | None) -> None:
        for secret in filter(None, secrets):
            self._hide(secret)

    def _read(self) -> dict[str, Any]:
        return read_json(self._file)

    def _write(self, **values: Any) -> None:
        write_json(self._file, {**self._read(), "port": self.port, **values})


class _Callback:
    """Waits on loopback for the browser to come back, only while a person signs in."""

    def __init__(self, name: str, port: int, scopes: Sequence[str], person: Person | None, listener: Listener) -> None:
        self.address = _address(port)
        self._name = name
        self._port = port
        self._scopes = scopes
        self._person = person
        self._listener = listener
        self._stack = AsyncExitStack()
        self._state = [""]
        self._result: asyncio.Future[AuthorizationCodeResult] | None = None

    async def show(self, url: str) -> None:
        """Open the page to sign in at. Raises OAuthFlowError where it cannot be shown."""
        if self._person is None:
            raise OAuthFlowError("it asks to sign in, and no page can be shown here")
        self._stack.enter_context(self._listener.asking())
        try:
            self._result = asyncio.get_running_loop().create_future()
            self._state = parse_qs(urlsplit(url).query).get("state", [""])
            server = await asyncio.start_server(self._answer, "127.0.0.1", self._port, limit=_REQUEST_LIMIT)
            self._stack.callback(server.close)
            self._person.tell(f"Sign in to the MCP server {self._name} in the browser: {urlsplit(url).netloc}")
            if not await self._person.open(_with_scopes(url, self._scopes)):
                raise OAuthFlowError("it asks to sign in, and the page could not be shown")
        except (OSError, OAuthFlowError):
            await self._stack.aclose()
            raise

    async def wait(self) -> AuthorizationCodeResult:
        assert self._result is not None
        async with self._stack, asyncio.timeout(_PATIENCE):
            return await self._result

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            values = self._values(head)
            if values is None:
                writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                self._settle(values)
                text = b"You can close this page and go back to your editor."
                head_of_reply = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
                writer.write(head_of_reply.encode() + b"Connection: close\r\n\r\n" + text)
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # not the browser that is waited for
        finally:
            writer.close()

    def _values(self, head: list[str]) -> Mapping[str, str] | None:
        """The parameters of a request for the callback; None for any other.

        A page that had its own name lead to loopback would give itself away by the Host it asks for, and no other
        page knows the state.
        """
        method, _, rest = head[0].partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        hosts = [line.partition(":")[2].strip() for line in head[1:] if line.lower().startswith("host:")]
        values = parse_qs(target.query)
        if method != "GET" or target.path != "/callback" or hosts != [f"127.0.0.1:{self._port}"]:
            return None
        return {key: value[0] for key, value in values.items()} if values.get("state") == self._state else None

    def _settle(self, values: Mapping[str, str]) -> None:
        if self._result is None or self._result.done():
            return
        if "code" not in values:
            self._result.set_exception(OAuthFlowError(f"signing in failed: {values.get('error', 'no code')}"))
        else:
            result = AuthorizationCodeResult(code=values["code"], state=values.get("state"), iss=values.get("iss"))
            self._result.set_result(result)


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}/callback"


def _with_scopes(url: str, scopes: Sequence[str]) -> str:
    """The page with the entry's scopes beside those that the SDK took from the server: it forgets any others."""
    if not scopes:
        return url
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    query["scope"] = [" ".join(dict.fromkeys([*query.get("scope", [""])[0].split(), *scopes]))]
    return urlunsplit(parts._replace(query=urlencode(query, doseq=True)))


def _folder() -> Path:
    return state_folder() / "mcp-auth"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
