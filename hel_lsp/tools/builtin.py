"""The built-in tools, in the order in which the model is sent them."""

from __future__ import annotations

from pathlib import Path

from hel_lsp.platforms import find_shell
from hel_lsp.ports import Tool, Workspace
from hel_lsp.settings import Settings, key_variables
from hel_lsp.state import state_folder
from hel_lsp.tools.files import file_tools
from hel_lsp.tools.sandbox import Sandbox
from hel_lsp.tools.search import ListFiles, SearchFiles
from hel_lsp.tools.shell import Bash


def builtin_tools(workspace: Workspace, root: Path | None, settings: Settings) -> list[Tool]:
    """Those that `tools.disabled` leaves; `bash` only where there is a folder to run in and a POSIX shell."""
    tools: list[Tool] = [*file_tools(workspace), ListFiles(workspace), SearchFiles(workspace)]
    shell = find_shell()
    if root is not None and shell is not None:
        sandbox = Sandbox({*workspace.roots, root}, state_folder(), network=settings.tools.bash.network)
        tools.append(Bash(workspace, root, shell, settings.tools.bash, key_variables(settings.model), sandbox))
    return [tool for tool in tools if tool.definition.name not in settings.tools.disabled]
