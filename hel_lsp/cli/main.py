"""`hel-lsp`: the language server by default, or one of the commands beside it."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import hel_lsp
from hel_lsp.cli.terminal import printable
from hel_lsp.errors import HelError
from hel_lsp.messages import AccessLevel
from hel_lsp.redaction import Redaction, secret_values
from hel_lsp.settings import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code of the process."""
    options = _parser().parse_args(arguments)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_WithoutSecrets("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = logging.DEBUG if os.environ.get("HEL_LOG") == "debug" else logging.WARNING
    logging.basicConfig(handlers=[handler], level=level)
    try:
        code = _run(options)
        if sys.stdout is not None:  # a process without a console has none
            sys.stdout.flush()
        return code
    except HelError as error:
        print(f"hel-lsp: {printable(error.message, sys.stderr)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Whoever read the output wants no more; what is left of it must not fail once more at the end of the process.
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


class _WithoutSecrets(logging.Formatter):
    """Libraries log what they send and receive, and tracebacks show values."""

    def __init__(self, format: str) -> None:
        super().__init__(format)
        self._redaction = Redaction(secret_values(os.environ))

    def format(self, record: logging.LogRecord) -> str:
        return self._redaction.text(super().format(record))


def _run(options: argparse.Namespace) -> int:
    if options.command == "demo":
        from hel_lsp.demo import run_demo  # each command imports what it needs, and the server nothing of these

        return run_demo(live=options.live)
    if options.command == "ask":
        from hel_lsp.cli.ask import run_ask  # as above

        return run_ask(options.prompt, options.workspace, options.access, options.settings, as_json=options.json)
    if options.command == "doctor":
        from hel_lsp.cli.doctor import run_doctor  # as above

        return run_doctor(options.workspace, options.settings)
    if options.command == "verify":
        from hel_lsp.cli.verify import run_verify  # as above

        return run_verify(options.log)
    return _serve(options.tcp, options.host)


def _serve(port: int | None, host: str) -> int:
    from hel_lsp.cli.compose import Composition
    from hel_lsp.lsp.server import HelServer
    from hel_lsp.lsp.wire import start_stdio, start_tcp

    server = HelServer(Composition())
    return start_stdio(server) if port is None else start_tcp(server, host, port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hel-lsp", description="A coding agent behind your editor, as a language server."
    )
    parser.add_argument("--version", action="version", version=f"hel-lsp {hel_lsp.__version__}")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="serve on standard input and output (the default)")
    way.add_argument("--tcp", type=int, metavar="PORT", help="serve one client on a loopback socket")
    parser.add_argument("--host", default="127.0.0.1", help="the loopback address for --tcp (default: %(default)s)")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser("demo", help="watch one task from prompt to edit; needs no editor, key or network")
    demo.add_argument("--live", action="store_true", help="ask the configured model instead of the scripted one")
    ask = commands.add_parser(
        "ask",
        help="run one turn without an editor",
        description="Questions are asked in the terminal; where there is none, the answer is no. Ends with 0 when the "
        "turn came to its end, 1 for an error, 2 for arguments that cannot be used, 3 when it stopped early, 130 when "
        "it was cancelled.",
    )
    ask.add_argument("prompt", metavar="PROMPT")
    ask.add_argument("--workspace", type=Path, default=Path(), metavar="DIR", help="default: the current folder")
    ask.add_argument("--access", choices=get_args(AccessLevel), help=f"default: {Settings().access}")
    _add_settings(ask)
    ask.add_argument("--json", action="store_true", help="print the turn's result as JSON")
    doctor = commands.add_parser("doctor", help="say what works and what does not; asks the model for one word")
    doctor.add_argument("--workspace", type=Path, default=Path(), metavar="DIR", help="default: the current folder")
    _add_settings(doctor)
    verify = commands.add_parser("verify", help="say whether a run log was changed, or lines of it are missing")
    verify.add_argument("log", type=Path, metavar="LOG", help="a file of the folder logs/ in the state folder")
    return parser


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument("--settings", type=Path, metavar="FILE", help="a JSON file of settings, as an editor has them")
