"""`hel-lsp doctor`: what works and what does not, a line each, with what to do about it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import hel_lsp
from hel_lsp.agent.skills import read_skills
from hel_lsp.cli.compose import Composition
from hel_lsp.cli.terminal import printable_line, settings_of, workspace_folder
from hel_lsp.errors import ConfigError, FileRefused, ModelError
from hel_lsp.jsonfile import read_bytes
from hel_lsp.mcp.config import read_servers
from hel_lsp.mcp.host import FILES
from hel_lsp.messages import UserMessage
from hel_lsp.models.config import choose_endpoint
from hel_lsp.permissions.hooks import parse_hooks
from hel_lsp.permissions.project import HOOKS, PERMISSIONS
from hel_lsp.permissions.rules import parse_rules
from hel_lsp.permissions.trust import TrustStore
from hel_lsp.platforms import find_shell, safe_environment
from hel_lsp.ports import ModelReply, ModelRequest, Retrying, ServerStatus, TrustRequest
from hel_lsp.settings import Settings, key_variables
from hel_lsp.state import state_folder
from hel_lsp.textfile import read
from hel_lsp.tools.sandbox import Sandbox

ANSWER = 16
"""Tokens of the answer that the model is asked for."""

TO_TRUST = (
    "Nothing in it counts yet: ask something in your editor, or with hel-lsp ask in a terminal, and answer Trust."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: `ok`, a `note` that needs nothing done, or a `problem` with what to do."""

    kind: Literal["ok", "note", "problem"]
    what: str
    text: str


def run_doctor(workspace: Path, settings: Path | None) -> int:
    """Print what is found, as it is found; 0 when there is no problem, else 1. Raises ConfigError."""
    return asyncio.run(_report(workspace_folder(workspace), settings, settings_of(settings)))


async def _report(root: Path, file: Path | None, settings: Settings) -> int:
    problems = 0
    async for finding in _findings(root, file, settings):
        problems += finding.kind == "problem"
        line = f"{finding.kind:<8} {finding.what}: {finding.text}"
        print(printable_line(line, sys.stdout), flush=True)
    print("Everything that was looked at works." if not problems else f"{problems} to mend.")
    return 1 if problems else 0


async def _findings(root: Path, file: Path | None, settings: Settings) -> AsyncIterator[Finding]:
    version = f"{hel_lsp.__version__}, Python {platform.python_version()}, {platform.system()}"
    yield Finding("ok", "hel-lsp", version)
    if file is None:
        yield Finding(
            "note", "settings", "those of your editor are not known here; name a file of them with --settings"
        )
    else:
        yield Finding("ok", "settings", str(file))
    try:
        folder = state_folder()
        trusted = _State(folder)
        yield Finding("ok", "state folder", str(folder))
    except ConfigError as error:
        yield Finding("problem", "state folder", error.message)
        return
    async for finding in _model(settings):
        yield finding
    for finding in _files(root, settings, trusted):
        yield finding
    for finding in await _servers(root, settings, trusted):
        yield finding
    yield await _sandbox(root, folder)


class _State:
    """The state folder, and what is trusted according to it. Raises ConfigError where it cannot be used."""

    def __init__(self, folder: Path) -> None:
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise ConfigError(
                f"{folder} cannot be written: {error.strerror}. Mend that, or set HEL_STATE_DIR."
            ) from error
        self._store = TrustStore(folder)
        self._store.knows(TrustRequest(folder, "", ()))

    def knows(self, request: TrustRequest) -> bool:
        return self._store.knows(request)

    async def trust(self, request: TrustRequest) -> bool:
        """What is trusted already: here nobody is asked."""
        return self._store.knows(request)


# ------------------------------------------------------------------ the model


async def _model(settings: Settings) -> AsyncIterator[Finding]:
    """The endpoint and the key, then one small request, which shows what no look at the settings could."""
    try:
        endpoint = choose_endpoint(settings.model, os.environ)
        small = replace(settings, model=replace(settings.model, max_output_tokens=ANSWER))
        model = Composition().model(small)
    except ModelError as error:
        yield Finding("problem", "model", error.message)
        return
    yield Finding("ok", "model endpoint", f"{endpoint.shown}, model {endpoint.model}")
    if endpoint.api_key:
        yield Finding("ok", "model key", f"from the environment variable {endpoint.key_variable}")
    else:
        yield Finding("ok", "model key", "none, and none is needed on this machine")
    began = time.monotonic()
    try:
        async with aclosing(model.stream(ModelRequest([UserMessage("Answer with one word: ready")], ()))) as events:
            async for event in events:
                if isinstance(event, Retrying):
                    yield Finding("problem", "model answer", event.reason)
                    break
                if isinstance(event, ModelReply):
                    yield Finding("ok", "model answer", f"after {time.monotonic() - began:.1f} s")
    except ModelError as error:
        yield Finding("problem", "model answer", error.message)
    finally:
        await model.aclose()


# ------------------------------------------------------------------ the project's files


def _files(root: Path, settings: Settings, trusted: _State) -> Iterator[Finding]:
    found = False
    for name, check in ((PERMISSIONS, _permissions), (HOOKS, _hooks)):
        path = root / name
        try:
            data = read_bytes(path)
            if data is not None:
                found = True
                yield from check(path, data, trusted)
        except ConfigError as error:
            found = True
            yield Finding("problem", name, f"{error.message} It counts as absent until that is mended.")
    for name, key in FILES:
        try:
            servers = read_servers(root / name, key, os.environ, key_variables(settings.model))
        except ConfigError as error:
            yield Finding("problem", name, f"{error.message} It counts as absent until that is mended.")
            continue
        if servers is not None:
            found = True
            yield _trust(name, TrustRequest(servers.path, servers.sha256, servers.lines), trusted)
    skills, problems = read_skills(root)
    yield from (Finding("problem", "skill", problem) for problem in problems)
    if skills:
        yield Finding("ok", "skills", ", ".join(skill.name for skill in skills))
    if (root / "AGENTS.md").exists():
        yield _instructions(root / "AGENTS.md")
    if not found:
        yield Finding("ok", "project files", "none in .hel, and none are needed")


def _permissions(path: Path, data: bytes, trusted: _State) -> Iterator[Finding]:
    rules, problems = parse_rules(path, data)
    yield from (Finding("problem", PERMISSIONS, problem) for problem in problems)
    request = TrustRequest(path, _sha256(data), [rule.text for rule in rules.allow], "allow without asking")
    yield _trust(PERMISSIONS, request, trusted)


def _hooks(path: Path, data: bytes, trusted: _State) -> Iterator[Finding]:
    yield _trust(HOOKS, TrustRequest(path, _sha256(data), [hook.line for hook in parse_hooks(path, data)]), trusted)


def _trust(name: str, request: TrustRequest, trusted: _State) -> Finding:
    if not request.lines or trusted.knows(request):
        return Finding("ok", name, "trusted" if request.lines else "nothing in it needs trust")
    return Finding("problem", name, f"not trusted, or changed since. {TO_TRUST}")


def _instructions(path: Path) -> Finding:
    try:
        return Finding("ok", path.name, f"{len(read(path).text)} characters, part of every system text")
    except FileRefused as error:
        return Finding("problem", path.name, f"{error.message} No turn starts before that is mended.")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ------------------------------------------------------------------ what is started


class _NoLog:
    """Implements the RunLog port for what is not part of any session."""

    def write(self, kind: str, **fields: Any) -> None:
        pass


class _Nobody:
    """Implements the Person port: a look at the project asks nothing, and its own findings are what it tells."""

    async def choose(self, message: str, actions: Sequence[str]) -> None:
        return None

    async def open(self, url: str) -> bool:
        return False

    def tell(self, message: str) -> None:
        pass


async def _servers(root: Path, settings: Settings, trusted: _State) -> Sequence[Finding]:
    """Each declared server, those that are trusted started and ended again."""
    host = Composition().deferred_tools(root, lambda: [root], lambda: settings, trusted.trust, _NoLog(), _Nobody())
    try:
        await host.start()
        await host.settle()
        return [_server(server) for server in host.servers()]
    finally:
        await host.aclose()


def _server(server: ServerStatus) -> Finding:
    what, why = f"MCP server {server.name}", "; ".join(server.diagnostics)
    match server.status:
        case "ready":
            count = f"ready, {len(server.tools)} tools, protocol {server.protocol_version}"
            return Finding("problem" if why else "ok", what, f"{count}. {why}" if why else count)
        case "untrusted":
            return Finding("note", what, "not started: its file is not trusted")
        case "disabled":
            return Finding("note", what, f"not started: {why or 'disabled'}")
        case status:
            return Finding(
                "problem", what, f"{status}: {why or 'it gave no reason'}. Run its command by hand to see more."
            )


async def _sandbox(root: Path, folder: Path) -> Finding:
    shell = find_shell()
    if shell is None:
        return Finding(
            "problem", "bash", "no POSIX shell on the PATH, so the model gets no bash. On Windows install Git."
        )
    trouble = await Sandbox([root], folder, network=True).trouble(root, shell, safe_environment())
    if trouble:
        return Finding(
            "note", "sandbox", f"{trouble}, so commands run unsandboxed unless tools.bash.sandbox is `require`"
        )
    return Finding("ok", "sandbox", "bubblewrap works")
