"""Streamable HTTP: the SDK's transport, with the headers of the entry and limits that fit long calls.

Imports the SDK, so it is imported when such a server is about to start.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from hel_lsp.mcp.bodies import MendingClient
from hel_lsp.mcp.config import ServerEntry
from hel_lsp.mcp.oauth import sign_in
from hel_lsp.mcp.surroundings import Listener, Surroundings
from hel_lsp.mcp.transport import MESSAGE_LIMIT, Transport
from hel_lsp.mcp.wire import Mender

_CONNECT = 30.0  # seconds to connect and to send; how long an answer may take is decided for each call


def over_http(name: str, entry: ServerEntry, surroundings: Surroundings, listener: Listener) -> Transport:
    """The transport to the server at the entry's `url`."""

    @asynccontextmanager
    async def transport(mender: Mender) -> AsyncGenerator[Any]:
        async def remember(response: httpx2.Response) -> None:
            if response.status_code >= 400:
                mender.hint = f"HTTP {response.status_code} {response.reason_phrase}"

        assert entry.url is not None
        authorized = any(header.lower() == "authorization" for header in entry.headers)
        client = MendingClient(
            mender,
            listener.skipped,
            headers=entry.headers,
            timeout=httpx2.Timeout(_CONNECT, read=None),
            auth=None if authorized else sign_in(name, entry, surroundings.person, listener),
            event_hooks={"response": [remember]},
        )
        async with (
            client,
            streamable_http_client(entry.url, http_client=client, max_sse_event_size=MESSAGE_LIMIT) as streams,
        ):
            yield streams

    return transport
