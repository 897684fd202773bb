from __future__ import annotations

import hashlib
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from hel_lsp.errors import ConfigError
from hel_lsp.mcp.config import DeclaredServer, ServerFile, read_servers


def read(path: Path, content: Any, environment: dict[str, str] | None = None, refused: Any = ()) -> ServerFile:
    data = content if isinstance(content, bytes) else json.dumps({"servers": content}).encode()
    path.write_bytes(data)
    file = read_servers(path, "servers", environment or {}, refused)
    assert file is not None
    return file


def only(file: ServerFile) -> DeclaredServer:
    (server,) = file.servers
    return server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def test_a_missing_file_declares_nothing(path: Path) -> None:
    assert read_servers(path, "servers", {}, ()) is None


def test_every_key_of_a_server_is_read(path: Path) -> None:
    entry = only(
        read(
            path,
            {
                "a-b_c1": {
                    "command": "run",
                    "args": ["x"],
                    "env": {"A": "1"},
                    "cwd": "sub",
                    "timeout": 5,
                    "startTimeout": 2.5,
                    "tools": {"include": ["get_*"], "exclude": ["get_all"]},
                    "alwaysLoad": ["get_one"],
                    "trustAnnotations": True,
                }
            },
        )
    ).entry
    assert entry is not None
    assert (entry.command, entry.args, entry.env, entry.cwd) == ("run", ["x"], {"A": "1"}, "sub")
    assert (entry.timeout, entry.start_timeout, entry.always_load) == (5, 2.5, ["get_one"])
    assert (entry.tools.include, entry.tools.exclude, entry.trust_annotations) == (["get_*"], ["get_all"], True)


def test_variables_expand_in_all_strings(path: Path) -> None:
    server = {
        "command": "${DIR}/run",
        "args": ["--name=${NAME:-nobody}", "${EMPTY:-full}", "$NAME", "${not a variable}"],
        "env": {"TOKEN": "${TOKEN}"},
    }
    entry = only(read(path, {"s": server}, {"DIR": "/opt", "TOKEN": "t0", "EMPTY": ""})).entry
    assert entry is not None
    assert entry.command == "/opt/run"
    assert entry.args == ["--name=nobody", "full", "$NAME", "${not a variable}"]
    assert entry.env == {"TOKEN": "t0"}


def test_an_unset_variable_disables_that_server_alone_and_names_the_field(path: Path) -> None:
    file = read(path, {"s": {"command": "x", "env": {"TOKEN": "${NOWHERE}"}}, "t": {"command": "y"}})
    broken, sound = file.servers
    assert (broken.entry, broken.status) == (None, "disabled")
    assert broken.problem == "env.TOKEN: the environment variable NOWHERE is not set"
    assert sound.entry is not None


@pytest.mark.parametrize("text", ["${THE_KEY}", "${THE_KEY:-}", "Bearer ${THE_KEY}"])
def test_the_models_key_is_refused(path: Path, text: str) -> None:
    server = only(read(path, {"s": {"url": "http://x", "headers": {"A": text}}}, {"THE_KEY": "secret"}, {"THE_KEY"}))
    assert server.entry is None
    assert "headers.A" in server.problem
    assert "secret" not in server.problem


@pytest.mark.parametrize("variable", ["THE_KEY", "the_key", "The_Key"])
@pytest.mark.parametrize("entry", [{"headers": {"A": "${%s}"}}, {"auth": {"clientId": "c", "clientSecretEnv": "%s"}}])
def test_where_the_system_ignores_case_so_does_the_refusal_of_the_key(
    path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, entry: dict[str, Any]
) -> None:
    content = json.loads(json.dumps({"s": {"url": "http://x", **entry}}) % variable)
    environment = {variable: "secret"}  # as `os.environ` finds it there
    elsewhere = only(read(path, content, environment, {"The_Key"}))
    assert (elsewhere.entry is None) == (variable == "The_Key")
    monkeypatch.setattr(sys, "platform", "win32")
    server = only(read(path, content, environment, {"The_Key"}))
    assert server.entry is None
    assert "is the model's key" in server.problem
    assert "secret" not in server.problem


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'{"servers": {\n  "s": {"command": }\n}}', "line 2, column 20"),
        (b'{"servers": {}\n', "line 2, column 1"),
        (b'{"servers":\n "\xff"}', "line 2, column 3"),
        (b"", "line 1, column 1"),
        (b"[]", "line 1, column 1"),
        (b'{"servers": []}', "line 1, column 1"),
        (b'{"mcpServers": {}}', "line 1, column 1"),
        (b"[" * 100_000, "line 1, column 1"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_reported_with_its_place(path: Path, data: bytes, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(path, data)
    assert caught.value.message.startswith(f"{path}, {place}")


@pytest.mark.parametrize(
    ("declaration", "problem"),
    [
        ({"command": 5}, "command"),
        ({"command": "x", "args": "y"}, "args"),
        ({"command": "x", "args": ["y", 1]}, "args.1"),
        ({"command": "x", "timeout": 0}, "timeout"),
        ({"command": "x", "timeout": True}, "timeout"),
        ({}, "either command or url"),
        ({"command": "x", "url": "http://y"}, "either command or url"),
        ({"command": None, "url": None}, "either command or url"),
        ({"command": "x", "args": None}, "args"),
        ({"command": "x", "url": 5}, "url"),
        ("x", ""),
    ],
)
def test_a_server_of_a_wrong_shape_fails_alone(path: Path, declaration: Any, problem: str) -> None:
    broken, sound = read(path, {"s": declaration, "t": {"command": "y"}}).servers
    assert (broken.entry, broken.status) == (None, "failed")
    assert broken.problem.startswith(problem) or problem in broken.problem
    assert sound.entry is not None


@pytest.mark.parametrize("name", ["a__b", "a b", "", "é", "a/b"])
def test_a_name_that_cannot_be_part_of_a_tools_name_is_refused(path: Path, name: str) -> None:
    assert only(read(path, {name: {"command": "x"}})).entry is None


def test_unknown_keys_are_named_and_ignored(path: Path) -> None:
    server = only(read(path, {"s": {"command": "x", "type": "stdio", "comand": "y"}}))
    assert server.entry is not None
    assert server.diagnostics == ("comand: not a setting of a server, ignored",)


def test_a_byte_order_mark_is_no_error(path: Path) -> None:
    assert only(read(path, b'\xef\xbb\xbf{"servers": {"s": {"command": "x"}}}')).entry is not None


def test_the_lines_show_what_would_run_and_no_values(path: Path) -> None:
    file = read(
        path,
        {
            "one": {"command": "npx", "args": ["a b", "${DIR}"], "env": {"TOKEN": "hush"}, "cwd": "sub"},
            "two": {"url": "https://example.com/mcp", "headers": {"Authorization": "hush"}},
            "off": {"command": "rm", "disabled": True},
            "sly": {"command": "true\x1b[2K\u202e"},
        },
        {"DIR": "hush"},
    )
    assert file.lines == (
        "one: npx 'a b' '${DIR}' in sub with the variables TOKEN",
        "two: https://example.com/mcp with the headers Authorization",
        "sly: 'true\\x1b[2K\\u202e'",
    )


ABSENT = object()


@pytest.mark.parametrize("url", [ABSENT, None, "", "https://example.com", 5, [], {}])
@pytest.mark.parametrize("command", [ABSENT, None, "", "./run it", 5, [], {}])
@pytest.mark.parametrize("more", [{}, {"disabled": False}, {"disabled": None}, {"disabled": True}, {"args": None}])
def test_a_line_shows_what_runs_and_there_is_none_for_what_cannot(
    path: Path, command: object, url: object, more: dict[str, Any]
) -> None:
    declared = {key: value for key, value in (("command", command), ("url", url)) if value is not ABSENT}
    file = read(path, {"s": {**declared, **more}})
    entry = only(file).entry
    if entry is None:
        assert file.lines == ()
    else:
        runs = shlex.quote(entry.command or "") if entry.url is None else entry.url
        assert file.lines == (f"s: {runs}",)


def test_the_lines_show_whatever_of_the_environment_goes_along(path: Path) -> None:
    file = read(
        path,
        {
            "seen": {"command": "${A}", "args": ["${B:-b}"], "cwd": "${C}", "env": {"X": "${A}${B}", "Y": "${C}"}},
            "env": {"command": "run", "env": {"X": "${A}", "Y": "a ${B:-} ${A}"}},
            "headers": {"url": "https://example.com/${A}", "headers": {"X": "Bearer ${A} ${B}"}},
            "secret": {"url": "https://example.com", "auth": {"clientId": "c", "clientSecretEnv": "D"}},
            "auth": {
                "url": "https://example.com",
                "auth": {"clientId": "${A}", "scopes": ["${B}"], "metadataUrl": "https://c.example/${C}"},
            },
            "unset": {"command": "run", "env": {"X": "${NOWHERE}"}},
        },
        dict.fromkeys("ABCD", "hush"),
    )
    assert file.lines == (
        "seen: '${A}' '${B:-b}' in ${C} with the variables X, Y",
        "env: run with the variables X, Y, using A, B of your environment",
        "headers: https://example.com/${A} with the headers X, using B of your environment",
        "secret: https://example.com, using D of your environment",
        "auth: https://example.com as the client of https://c.example/${C}, using A, B of your environment",
        "unset: run with the variables X, using NOWHERE of your environment",
    )


def test_the_hash_is_of_the_bytes(path: Path) -> None:
    file = read(path, b'{"servers": {} }')
    assert file.sha256 == hashlib.sha256(b'{"servers": {} }').hexdigest()
