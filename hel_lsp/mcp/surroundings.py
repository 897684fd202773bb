"""What surrounds a connection: what a server may learn from its host, and what it says beside its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from hel_lsp.ports import Person


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`roots` are the workspace folders; `changed` is called when a server's status or its tools have changed.

    Without a `person` a server is told that nothing can be asked.
    """

    roots: Callable[[], Sequence[Path]]
    changed: Callable[[], None]
    person: Person | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """Told of lines that are no messages, of changes to the list of tools, and of the end of the server's output.

    While a person is being asked, `asking` is entered: the time of calls stands still. `hide` is told of what the
    server is sent in secret beside what its entry says.
    """

    skipped: Callable[[str], None]
    list_changed: Callable[[], None]
    lost: Callable[[], None]
    asking: Callable[[], AbstractContextManager[None]]
    hide: Callable[[str], None]
