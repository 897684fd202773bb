"""A coding agent behind your editor, as a language server."""

__version__ = "0.1.0"
