"""The command line: arguments, and the one place where the parts are wired together."""

from hel_lsp.cli.main import main

__all__ = ["main"]
