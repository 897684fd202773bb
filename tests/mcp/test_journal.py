"""What is told of a server: never what it was given in secret, in whatever way it says it."""

from __future__ import annotations

import json
import sys

import pytest

from hel_lsp.mcp.journal import STDERR_LIMIT, Journal
from tests.mcp.workspace import Log, Workspace, scripted

SECRET = "s3cr3t-value-xyz"


def written(log: Log) -> str:
    return "".join(entry["text"] for entry in log.of("mcp_stderr"))


def journal(secret: str = SECRET) -> tuple[Journal, Log]:
    log = Log()
    return Journal("s", [("API_TOKEN", secret), ("MODE", "plain-to-see")], log), log


@pytest.mark.parametrize("ending", ["\n", " is it\nand more\n", ""])
def test_a_secret_is_hidden_wherever_its_pieces_begin(ending: str) -> None:
    text = f"plain-to-see {SECRET}{ending}"
    for first in range(len(text)):
        for second in range(first, len(text)):
            told, log = journal()
            for piece in filter(None, (text[:first], text[first:second], text[second:])):
                told.heard(piece)
            told.heard("")
            assert written(log) == f"plain-to-see [hidden]{ending}"


def test_what_broke_off_in_a_secret_shows_nothing_of_it() -> None:
    for end in range(6, len(SECRET) + 1):
        told, log = journal()
        told.heard(f"the token {SECRET[:end]}")
        told.failed("ended")
        told.heard("")
        assert told.diagnostics == ["ended; its last words: the token [hidden]"]
        assert written(log) == "the token [hidden]"


def test_a_secret_of_several_lines_is_hidden_line_by_line() -> None:
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkq", "hkiG9w0BAQEFAASC"]
    told, log = journal("\n".join(lines))
    for line in lines:
        told.heard(f"{line}\n")
    assert not any(line in written(log) for line in lines)


def test_a_terminal_sequence_within_a_secret_does_not_save_it_from_being_hidden() -> None:
    told, log = journal()
    told.heard(f"{SECRET[:5]}\x1b[1m{SECRET[5:]}\n")
    assert written(log) == "[hidden]\n"


@pytest.mark.parametrize("size", [7, 1000, STDERR_LIMIT])
@pytest.mark.parametrize("line", ["x" * 70_000 + "\n", "x" * 70_000, "xé\n" * 30_000, f"{SECRET}\n" * 9_000])
def test_the_log_of_a_server_ends_at_the_limit_and_its_last_words_are_its_last(line: str, size: int) -> None:
    told, log = journal()
    text = line * 2
    for start in range(0, len(text), size):
        told.heard(text[start : start + size])
    told.heard("\nthe end\n")
    told.failed("ended")
    assert STDERR_LIMIT - 2 <= len(written(log).encode()) <= STDERR_LIMIT
    assert SECRET[:6] not in written(log)
    assert told.diagnostics[-1].endswith("the end")
    assert len(told.diagnostics[-1]) < 2100


async def test_the_limit_holds_for_all_the_starts_of_a_server(workspace: Workspace, era: str) -> None:
    server = scripted(era=era, stderr="x" * 60_000 + "\n", calls={"echo": [{"exit": 3}]})
    host = await workspace.started({"s": server})
    for _ in range(2):
        assert (await host.call("mcp__s__echo", {})).status == "failed"
    await host.aclose()
    assert len(written(workspace.log)) == STDERR_LIMIT
    assert "about to end" in host.servers()[0].diagnostics[-1]


ECHOES = {
    "an error when it is greeted": """
        for line in sys.stdin:
            message = json.loads(line)
            error = {"code": -32000, "message": "refused: " + secret}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
    """,
    "standard error, in pieces": """
        print("the token", secret[:7], end="", file=sys.stderr, flush=True)
        sys.stdin.readline()
        print(secret[7:], "is refused", file=sys.stderr, flush=True)
        sys.exit(3)
    """,
    "standard error, cut off": """
        print("the token", secret[:-1], end="", file=sys.stderr, flush=True)
        sys.exit(3)
    """,
    "lines that are no messages": """
        print("x" * 150, "the token", secret)
        print("x" * (200 - 8 - len("not JSON: ")) + secret, flush=True)
        sys.exit(3)
    """,
}


@pytest.mark.parametrize("how", ECHOES)
async def test_a_server_that_says_what_it_was_given_in_secret_is_not_quoted(workspace: Workspace, how: str) -> None:
    body = "\n".join(line[8:] for line in ECHOES[how].splitlines())
    script = f"import json, os, sys\nsecret = os.environ['API_TOKEN']\n{body}"
    host = await workspace.started(
        {"s": {"command": sys.executable, "args": ["-c", script], "env": {"API_TOKEN": SECRET}}}
    )
    await host.aclose()
    (state,) = host.servers()
    told = json.dumps([state.diagnostics, workspace.log.entries])
    assert "[hidden]" in told
    assert SECRET[:6] not in told
    assert SECRET[7:] not in told
