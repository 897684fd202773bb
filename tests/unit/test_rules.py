"""The rules of a project's permissions: what they match, which of them decides, and where a fault in the file is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hel_lsp.errors import ConfigError
from hel_lsp.messages import ToolResult
from hel_lsp.permissions.rules import parse_rules
from hel_lsp.ports import Prepared, Preview

FILE = Path("/w/.hel/permissions.json")


async def nothing() -> ToolResult:
    return ToolResult("")


def about(root: Path, argument: str | None, tool: str = "bash") -> Prepared:
    """A call about a command, or, for every other tool, about a path."""
    path = root / argument if argument is not None and tool != "bash" else None
    return Prepared("execute", Preview("do"), nothing, "scope", path=path, command=argument if tool == "bash" else None)


def decides(root: Path, rules: str, tool: str, argument: str | None) -> str | None:
    found = parse_rules(FILE, rules.encode())[0].decide(tool, about(root, argument, tool), root)
    return found[0] if found else None


@pytest.mark.parametrize("kind", ["deny", "ask", "allow"])
@pytest.mark.parametrize(
    ("rule", "tool", "argument", "matches"),
    [
        ("bash", "bash", "ls; rm x", True),
        ("bash", "bashful", "ls", False),
        ("bash(git status)", "bash", "git status", True),
        ("bash(git status)", "bash", "git status -s", False),
        ("bash(git *)", "bash", "git log a/b", True),
        ("bash(git *)", "bash", "gitk", False),
        ("bash(ls ?)", "bash", "ls a", True),
        ("bash([ -f x ])", "bash", "[ -f x ]", True),
        ("bash(echo $(date) > a; ls)", "bash", "echo $(date) > a; ls", True),
        ("mcp__git__*", "mcp__git__log", None, True),
        ("mcp__git__*", "mcp__github__log", None, False),
        ("*", "read_file", "a", True),
        ("read_file(secret/*)", "read_file", "secret/key", True),
        ("read_file(secret/*)", "read_file", "secret/deep/key", False),
        ("read_file(secret/**)", "read_file", "secret/deep/key", True),
        ("list_files(secret/**)", "list_files", "secret", True),
        ("read_file(a/**/b/**/c)", "read_file", "a/x/b/b/y/z/c", True),
        ("read_file(a/**/b/**/c)", "read_file", "a/x/y/z/c", False),
        ("read_file(*a*b*.py)", "read_file", "xaxabb.py", True),
        ("read_file(**/.env)", "read_file", ".env", True),
        ("read_file(**/.env)", "read_file", "a/b/.env", True),
        ("read_file(**/.env)", "read_file", "a/b/x.env", False),
        ("read_file(./a.txt)", "read_file", "sub/../a.txt", True),
        ("read_file(a?c)", "read_file", "a/c", False),
        ("read_file(app/[id]/page.tsx)", "read_file", "app/[id]/page.tsx", True),
        ("read_file(a.txt)", "write_file", "a.txt", False),
        ("mcp__x__y(a*)", "mcp__x__y", None, False),
    ],
)
def test_a_rule_matches_a_tool_and_the_path_or_command_it_is_about(tmp_path, kind, rule, tool, argument, matches):
    found = decides(tmp_path, f'{{"{kind}": ["{rule}"]}}', tool, argument)
    assert found == (kind if matches else None)


@pytest.mark.parametrize("more", ["; x", " & x", " | x", " $(x)", " `x`", " > x", " < x", "\nx", "\rx", " && x"])
def test_a_glob_for_a_command_allows_a_single_plain_command_alone_and_denies_all(tmp_path, more):
    command = f"git log{more}"
    assert decides(tmp_path, '{"allow": ["bash(git *)"]}', "bash", command) is None
    assert decides(tmp_path, '{"deny": ["bash(git *)"]}', "bash", command) == "deny"
    assert decides(tmp_path, '{"ask": ["bash(git *)"]}', "bash", command) == "ask"


def test_a_rule_made_to_take_for_ever_does_not(tmp_path):
    stars = "*a" * 30
    began = time.process_time()
    assert decides(tmp_path, f'{{"deny": ["bash({stars}b)"]}}', "bash", "a" * 30_000) is None
    assert decides(tmp_path, f'{{"deny": ["read_file({stars}b)"]}}', "read_file", "a" * 250) is None
    assert decides(tmp_path, f'{{"deny": ["read_file({"**/a/" * 30}b)"]}}', "read_file", "a/" * 120 + "c") is None
    assert time.process_time() - began < 2


def test_deny_comes_before_ask_and_ask_before_allow(tmp_path):
    everything = '{"allow": ["*"], "ask": ["bash"], "deny": ["bash(rm *)"]}'
    assert decides(tmp_path, everything, "bash", "rm x") == "deny"
    assert decides(tmp_path, everything, "bash", "ls") == "ask"
    assert decides(tmp_path, everything, "read_file", "a") == "allow"


def test_a_link_is_judged_by_where_it_leads(tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "harmless").symlink_to("secret")
    assert decides(tmp_path, '{"deny": ["read_file(secret/**)"]}', "read_file", "harmless/key") == "deny"
    assert decides(tmp_path, '{"allow": ["write_file(harmless/**)"]}', "write_file", "harmless/key") is None


def test_another_spelling_of_a_name_is_denied_and_not_allowed(tmp_path):
    assert decides(tmp_path, '{"deny": ["read_file(secret)"]}', "read_file", "SECRET") == "deny"
    assert decides(tmp_path, '{"allow": ["read_file(secret)"]}', "read_file", "SECRET") is None


def test_a_path_outside_of_the_workspace_is_matched_as_a_whole(tmp_path):
    rules = '{"deny": ["read_file(/etc/**)"], "allow": ["read_file(**)"]}'
    assert decides(tmp_path, rules, "read_file", "/etc/passwd") == "deny"
    assert decides(tmp_path, '{"allow": ["read_file(*)"]}', "read_file", "/etc/passwd") is None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b'{\n  "deny": [,]\n}', "line 2, column 12"),
        (b'{"deny": "bash"}', "line 1, column 2"),
        (b'{\n "allow": [1]}', "line 2, column 2"),
        (b"[]", "line 1, column 1"),
        (b'{"deny": ["\xff"]}', "line 1, column 12"),
        (b"", "line 1, column 1"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_the_place(text, place):
    with pytest.raises(ConfigError, match=f"permissions.json, {place}: "):
        parse_rules(FILE, text)


def test_what_is_no_rule_is_left_out_with_its_place_and_the_others_hold(tmp_path):
    text = b'{"denied": [],\n "deny": ["bash(", "rm *", "bash(rm *)", "bash()"]}'
    rules, problems = parse_rules(FILE, text)
    assert [rule.text for rule in rules.deny] == ["bash(rm *)"]
    assert [problem.split(": ")[0].split(", ", 1)[1] for problem in problems] == [
        "line 1, column 2",
        "line 2, column 11",
        "line 2, column 20",
        "line 2, column 42",
    ]
