"""What a workspace folder itself says about calls, `.hel/permissions.json` and `.hel/hooks.json`, as far as it counts.

A project may take away unasked, and gives only what the user trusts it to give. Each file is read anew when its bytes
have changed, and what was shown in the question is what holds.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hel_lsp.errors import ConfigError
from hel_lsp.jsonfile import read_bytes
from hel_lsp.permissions.hooks import Hook, Hooks, parse_hooks
from hel_lsp.permissions.rules import Rules, parse_rules
from hel_lsp.ports import Trust, TrustRequest

PERMISSIONS = ".hel/permissions.json"
HOOKS = ".hel/hooks.json"


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules and hooks that hold in a turn."""

    rules: Rules = field(default_factory=Rules)
    hooks: Hooks | None = None


class ProjectPolicy:
    """Reads the two files of the folder `root`; `warn` tells the user, once each, what in them does not count."""

    def __init__(self, root: Path, warn: Callable[[str], None]) -> None:
        self._root = root
        self._warn = warn
        self._told: set[str] = set()
        self._reading = asyncio.Lock()
        self._rules_data: bytes | None = None
        self._rules = Rules()
        self._hooks_data: bytes | None = None
        self._hooks: Sequence[Hook] = ()

    async def read(self, trust: Trust, secret: Collection[str]) -> Policy:
        """The policy of the files as they are now; asks for trust where one is new or has changed. Raises ConfigError.

        `secret` names environment variables that hooks do not get. A file that cannot be used counts as absent.
        """
        # Two turns that start at once must not ask twice.
        async with self._reading:
            data = self._data(PERMISSIONS)
            if data != self._rules_data:
                self._rules = await self._new_rules(data, trust)
                self._rules_data = data
            data = self._data(HOOKS)
            if data != self._hooks_data:
                self._hooks = await self._new_hooks(data, trust)
                self._hooks_data = data
        hooks = Hooks(self._hooks, self._root, secret, self._warn) if self._hooks else None
        return Policy(self._rules, hooks)

    def _data(self, name: str) -> bytes | None:
        try:
            return read_bytes(self._root / name)
        except ConfigError as error:
            self._tell(error.message)
            return None

    async def _new_rules(self, data: bytes | None, trust: Trust) -> Rules:
        if data is None:
            return Rules()
        path = self._root / PERMISSIONS
        try:
            rules, problems = parse_rules(path, data)
        except ConfigError as error:
            self._tell(f"{error.message} None of its rules holds.")
            return Rules()
        for problem in problems:
            self._tell(problem)
        lines = [rule.text for rule in rules.allow]
        wanted = TrustRequest(path, hashlib.sha256(data).hexdigest(), lines, "allow without asking")
        return rules if not lines or await trust(wanted) else rules.without_allow()

    async def _new_hooks(self, data: bytes | None, trust: Trust) -> Sequence[Hook]:
        if data is None:
            return ()
        path = self._root / HOOKS
        try:
            hooks = parse_hooks(path, data)
        except ConfigError as error:
            self._tell(f"{error.message} None of its hooks runs.")
            return ()
        wanted = TrustRequest(path, hashlib.sha256(data).hexdigest(), [hook.line for hook in hooks])
        if not hooks or await trust(wanted):
            return hooks
        self._tell(f"The hooks of {path} are not trusted: calls go on without them.")
        return ()

    def _tell(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._warn(message)
