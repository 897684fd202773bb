"""A place to wait for each other: a command or a server connects when it runs, and goes on when it is let go."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

SCRIPT = """\
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as meeting:
    meeting.recv(1)
"""


@dataclass(frozen=True)
class Guest:
    """A process that has come, and does nothing until it is let go."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def let_go(self) -> None:
        self.writer.close()

    async def gone(self) -> None:
        """Return when the process has ended, or has hung up."""
        with contextlib.suppress(ConnectionError):
            await self.reader.read()
        self.writer.close()


class Meeting:
    """Listens on loopback; guests are given out in the order in which they come."""

    async def __aenter__(self) -> Self:
        self._guests: asyncio.Queue[Guest] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []
        self._server = await asyncio.start_server(self._come, "127.0.0.1", 0)
        return self

    def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._guests.put_nowait(Guest(reader, writer))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()

    @property
    def port(self) -> int:
        return self._server.sockets[0].getsockname()[1]

    def command(self, folder: Path) -> str:
        """A shell command that comes here; its script is put into `folder`."""
        script = folder / "meet.py"
        script.write_text(SCRIPT)
        # The interpreter itself: an environment under /tmp is not there in the sandbox.
        return f"{Path(sys.executable).resolve()} -S -E {script} {self.port}"

    async def arrived(self) -> Guest:
        """The next guest, when it is there."""
        return await self._guests.get()
