"""One endpoint over HTTP: a request body in, server-sent events out, every fault of the network an error of ours.

Imports httpx, so the server imports this module only when the first request is due.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import cast

import httpx

from hel_lsp import __version__
from hel_lsp.errors import HelError, ModelRefused, ModelUnavailable, StreamBroken
from hel_lsp.models.config import Endpoint
from hel_lsp.models.refusals import ErrorAnswer
from hel_lsp.models.retry import TryAgain
from hel_lsp.models.sse import MAX_EVENT, EventDecoder, ServerEvent

CONNECT_TIMEOUT = 10.0
ERROR_BODY = 64 * 1024
"""Bytes that are read of the body of an error."""
ERROR_BODY_TIME = 5.0
"""Seconds that the body of an error may take."""
MAX_REDIRECTS = 5
KEY_HEADERS = ("authorization", "x-api-key")
"""Headers that hold a key: they go to the endpoint's own server and to no other."""


class ConnectionDropped(StreamBroken):
    """The bytes stopped coming before the end of the body."""


class Connection:
    """Posts to one URL of `endpoint` and keeps the connection for the next request.

    `headers` are those of the wire format, the key among them. TLS is verified and proxies come from the environment,
    but for a server on this machine. `timeout` is the seconds without a byte after which a request is given up.
    """

    def __init__(self, endpoint: Endpoint, path: str, timeout: float, headers: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._path = path
        self._timeout = timeout
        self._headers = {
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            **headers,
        }
        self._connect_timeout = min(CONNECT_TIMEOUT, timeout)
        self._client: httpx.AsyncClient | None = None

    async def aclose(self) -> None:
        """Close the connections that are kept."""
        if self._client is not None:
            await self._client.aclose()

    async def events(self, body: bytes) -> AsyncGenerator[ServerEvent, None]:
        """The events of the reply to `body`; a reply that is one JSON document is one event.

        Raises ErrorAnswer for a status that is not 2xx, TryAgain where there was no answer and may be one,
        ModelUnavailable where there will be none, StreamBroken where the reply ends in the middle.
        """
        response = await self._open(body)
        try:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/html":
                raise ModelRefused(f"{self._endpoint.shown} answered with a web page. Check model.baseUrl.")
            if kind == "application/json":
                yield ServerEvent("", await self._document(response))
                return
            decoder = EventDecoder()
            async with aclosing(self._pieces(response)) as pieces:
                async for piece in pieces:
                    for event in decoder.feed(piece):
                        yield event
            for event in decoder.end():
                yield event
        finally:
            await response.aclose()

    async def _open(self, body: bytes) -> httpx.Response:
        """The response, its body unread. Redirects that keep the method are followed, the key stays with its host."""
        client = self._client = self._client or self._new_client()
        request: httpx.Request | None
        try:
            request = client.build_request("POST", self._endpoint.url(self._path), content=body, headers=self._headers)
            own = _server(request.url)
            response = await client.send(request, stream=True)
            for _ in range(MAX_REDIRECTS):
                request = response.next_request
                if request is None or request.method != "POST" or not _usable(request.url):
                    break
                if _server(request.url) != own:
                    for name in KEY_HEADERS:
                        request.headers.pop(name, None)
                await response.aclose()
                response = await client.send(request, stream=True)
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise self._silent() from error
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError) as error:
            raise ModelUnavailable(f"{self._endpoint.shown} cannot be asked: {_cause(error)}") from error
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        if not response.is_success:
            try:
                raise await self._error_answer(response)
            finally:
                await response.aclose()
        return response

    def _new_client(self) -> httpx.AsyncClient:
        host = self._endpoint.host
        direct: dict[str, None] = {f"all://[{host}]" if ":" in host else f"all://{host}": None}
        try:
            return httpx.AsyncClient(
                headers={"User-Agent": f"hel-lsp/{__version__}"},
                timeout=httpx.Timeout(self._timeout, connect=self._connect_timeout),
                limits=httpx.Limits(keepalive_expiry=60),
                mounts=direct if self._endpoint.loopback else None,
            )
        except (ImportError, ValueError, OSError) as error:
            # Proxy settings for which httpx has no support, or a file of certificates that is not there.
            raise ModelUnavailable(
                f"The proxy or certificate settings of the environment do not work: {error}"
            ) from error

    async def _pieces(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(_bytes(response)) as pieces:
                async for piece in pieces:
                    yield piece
        except httpx.ReadTimeout as error:
            raise self._silent() from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise ConnectionDropped(
                f"The connection to {self._endpoint.shown} dropped before the reply was complete; nothing of it ran."
            ) from error

    async def _document(self, response: httpx.Response) -> str:
        data = bytearray()
        async with aclosing(self._pieces(response)) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > MAX_EVENT:
                    raise StreamBroken("The model's reply is too large.")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise StreamBroken("The model's reply is not UTF-8.") from error

    async def _error_answer(self, response: httpx.Response) -> ErrorAnswer:
        """The answer with what of its body comes soon enough; the status says the most."""
        data = bytearray()
        try:
            async with asyncio.timeout(ERROR_BODY_TIME), aclosing(_bytes(response)) as pieces:
                async for piece in pieces:
                    data += piece[: ERROR_BODY - len(data)]
                    if len(data) == ERROR_BODY:
                        break
        except (TimeoutError, httpx.TransportError, httpx.DecodingError):
            pass
        answered = response.request.url.netloc.decode("ascii")
        return ErrorAnswer(
            response.status_code,
            data.decode("utf-8", "replace"),
            retry_after=response.headers.get("retry-after"),
            location=response.headers.get("location", ""),
            redirected="" if answered == httpx.URL(self._endpoint.base_url).netloc.decode("ascii") else answered,
        )

    def _silent(self) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self._endpoint.shown} sent nothing for {self._timeout:g} s, so the request was given up (model.timeout)."
        )

    def _unreachable(self, error: httpx.TransportError) -> TryAgain | ModelUnavailable:
        cause = _cause(error)
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ModelUnavailable(
                f"The certificate of {self._endpoint.host} is not trusted: {cause.verify_message}. A certificate "
                "authority of your own goes into the file that SSL_CERT_FILE names."
            )
        late = isinstance(error, httpx.ConnectTimeout)
        why = f"no connection within {self._connect_timeout:g} s" if late else _words(cause)
        running = " Is the server running?" if self._endpoint.loopback else ""
        return TryAgain(f"{self._endpoint.shown} cannot be reached: {why}.{running}")


def _bytes(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    # An async generator, declared as less than that.
    return cast("AsyncGenerator[bytes, None]", response.aiter_bytes())


def _usable(url: httpx.URL) -> bool:
    return url.scheme in ("http", "https") and (url.port is None or 0 < url.port < 65536)


def _server(url: httpx.URL) -> tuple[str, bytes]:
    return url.scheme, url.netloc


def _cause(error: BaseException) -> BaseException:
    """The innermost reason: what wraps it says less."""
    while (inner := error.__cause__ or error.__context__) is not None:
        if isinstance(inner, HelError):
            # What the caller was handling when it asked, no part of this failure.
            break
        error = inner
    return error


def _words(error: BaseException) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words.rstrip(".") or type(error).__name__
