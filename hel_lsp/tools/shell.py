"""`bash`: a command in the workspace's folder, ended with everything that it started."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from hel_lsp import processes
from hel_lsp.errors import ToolError
from hel_lsp.messages import Access, ToolDefinition, ToolResult
from hel_lsp.platforms import environment_without
from hel_lsp.ports import Prepared, Preview, Workspace
from hel_lsp.settings import BashSettings
from hel_lsp.tools.arguments import Arguments, check, define
from hel_lsp.tools.sandbox import Sandbox


class _Bash(Arguments):
    command: str
    timeout: float | None = Field(None, gt=0, description="Seconds")


@dataclass(frozen=True, slots=True)
class Bash:
    workspace: Workspace
    root: Path
    shell: str
    settings: BashSettings
    secret: frozenset[str]
    sandbox: Sandbox

    @property
    def definition(self) -> ToolDefinition:
        return _BASH

    @property
    def access(self) -> Access:
        return "execute"

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        wanted = check(_Bash, "bash", arguments)
        if not wanted.command.strip() or "\0" in wanted.command:
            raise ToolError("bash needs a command, without NUL characters.")
        trouble = await self._trouble()
        if trouble and self.settings.sandbox == "require":
            raise ToolError(f"tools.bash.sandbox is `require`, and {trouble}: bash runs nothing.")
        if trouble:
            how, scope = f"not sandboxed, {trouble}: it can reach any file, .hel included", "bash, not sandboxed"
        else:
            network = "" if self.sandbox.network else ", no network"
            how, scope = f"sandboxed: it can change the workspace alone{network}", "bash"
        if wanted.timeout is not None:
            how += f", for up to {wanted.timeout:g} s"
        run = partial(self._run, wanted, not trouble)
        scope = f"{scope}({wanted.command})"
        return Prepared("execute", Preview(f"run ({how})", wanted.command), run, scope, command=wanted.command)

    async def _trouble(self) -> str:
        """Why a command does not run in the sandbox; empty where it does."""
        if self.settings.sandbox == "off":
            return "as tools.bash.sandbox says"
        return await self.sandbox.trouble(self.root, self.shell, environment_without(self.secret))

    async def _run(self, wanted: _Bash, sandboxed: bool) -> ToolResult:
        limit = wanted.timeout or self.settings.timeout
        argv = [self.shell, "-c", wanted.command]
        with self.sandbox.harness_closed() if sandboxed else nullcontext():
            finished = await processes.run(
                self.sandbox.wrap(argv, self.root) if sandboxed else argv,
                folder=self.root,
                environment=environment_without(self.secret),
                timeout=limit,
            )
        status = f"exit code {finished.code}"
        if finished.code is None:
            status = f"stopped after {limit:g} s, with everything it had started"
        errors = finished.stderr.text()
        shown = (self._unsaved(), status, finished.stdout.text(), errors and f"stderr:\n{errors}")
        return ToolResult("\n".join(part for part in shown if part), "completed" if finished.code == 0 else "failed")

    def _unsaved(self) -> str:
        opened = self.workspace.open_documents()
        names = [self.workspace.display(document.path) for document in opened if document.unsaved]
        return f"Unsaved in the editor, so the command saw older text on the disk: {', '.join(names)}" if names else ""


_BASH = define(
    "bash", "Run a shell command in the workspace. What it leaves in the background ends with the call", _Bash
)
