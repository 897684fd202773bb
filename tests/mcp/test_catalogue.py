from __future__ import annotations

import re
from typing import Any

import pytest

from hel_lsp.mcp.catalogue import Listing, build_catalogue, inspect_list, inspect_tool

OBJECT: dict[str, Any] = {"type": "object"}


def listing(server: str, *names: str, **more: Any) -> Listing:
    tools, _ = inspect_list([{"name": name, "inputSchema": OBJECT, **more} for name in names], ["*"], [])
    return Listing(server, tools)


def test_names_carry_the_server_and_only_characters_that_providers_accept() -> None:
    catalogue = build_catalogue([listing("git-hub", "repo/list items", "größe")], "drop")
    assert list(catalogue.tools) == ["mcp__git-hub__repo_list_items", "mcp__git-hub__gr__e"]
    assert [offered.origin.name for offered in catalogue.tools.values()] == ["repo/list items", "größe"]


@pytest.mark.parametrize("length", [64, 65])
def test_a_name_of_more_than_64_characters_is_dropped_with_a_diagnostic(length: int) -> None:
    name = "x" * (length - len("mcp__s__"))
    catalogue = build_catalogue([listing("s", name, "ok")], "drop")
    assert ("mcp__s__" + name in catalogue.tools) == (length == 64)
    assert "mcp__s__ok" in catalogue.tools
    if length == 65:
        assert catalogue.diagnostics["s"] == [f"{name}: dropped, its name would have 65 characters, 64 are possible"]


def test_two_tools_that_become_equal_are_both_dropped() -> None:
    catalogue = build_catalogue([listing("s", "a.b", "a/b", "c")], "drop")
    assert list(catalogue.tools) == ["mcp__s__c"]
    assert len(catalogue.diagnostics["s"]) == 2


def test_equal_names_across_servers_are_dropped_too() -> None:
    catalogue = build_catalogue([listing("s_", "b"), listing("s", "_b", "c")], "drop")
    assert list(catalogue.tools) == ["mcp__s__c"]


def test_hashed_names_are_distinct_stable_and_valid() -> None:
    def names() -> list[str]:
        return list(build_catalogue([listing("s", "a.b", "a/b", "x" * 80, "y" * 300, "c")], "hash").tools)

    assert names() == names()
    assert len(set(names())) == 5
    assert "mcp__s__c" in names()
    assert all(re.fullmatch(r"mcp__s__[A-Za-z0-9_-]{1,56}", name) for name in names())


def test_the_same_name_twice_in_one_list_leaves_the_first() -> None:
    raw = [{"name": "a", "description": text, "inputSchema": OBJECT} for text in ("one", "two")]
    tools, diagnostics = inspect_list(raw, ["*"], [])
    assert [tool.description for tool in tools] == ["one"]
    assert diagnostics == ["a: listed more than once, the first one stays"]


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "tool",
        {},
        {"name": 5, "inputSchema": OBJECT},
        {"name": "", "inputSchema": OBJECT},
        {"name": "a"},
        {"name": "a", "inputSchema": None},
        {"name": "a", "inputSchema": {"type": "array"}},
        {"name": "a", "inputSchema": {"type": ["string", "null"]}},
    ],
)
def test_a_bad_tool_costs_itself_alone_and_says_why(raw: Any) -> None:
    tools, diagnostics = inspect_list([raw, {"name": "good", "inputSchema": OBJECT}], ["*"], [])
    assert [tool.name for tool in tools] == ["good"]
    assert len(diagnostics) == 1
    assert "dropped" in diagnostics[0]


@pytest.mark.parametrize("deep", [300, 100_000])
def test_a_schema_nested_too_deeply_or_too_long_costs_its_tool_alone(deep: int) -> None:
    nested: dict[str, Any] = {}
    for _ in range(deep):
        nested = {"type": "object", "properties": {"a": nested}}
    long = {"properties": {f"p{number}": {"description": "x" * 1000} for number in range(200)}}
    tools, diagnostics = inspect_list(
        [{"name": name, "inputSchema": schema} for name, schema in (("a", nested), ("b", OBJECT), ("c", long))],
        ["*"],
        [],
    )
    assert [tool.name for tool in tools] == ["b"]
    assert "nested more than 100 levels deep" in diagnostics[0]
    assert "128000 are possible" in diagnostics[1]


@pytest.mark.parametrize("schema", [{}, {"properties": {"a": {}}}, {"type": ["object", "null"]}])
def test_a_missing_type_is_repaired(schema: dict[str, Any]) -> None:
    tool = inspect_tool({"name": "a", "inputSchema": schema})
    assert not isinstance(tool, str)
    assert tool.schema == {**schema, "type": "object"}


def test_descriptions_of_a_wrong_kind_and_control_characters_do_no_harm() -> None:
    tool = inspect_tool({"name": "a", "inputSchema": {}, "description": 5, "annotations": 3, "outputSchema": []})
    assert not isinstance(tool, str)
    assert tool.description == ""
    tool = inspect_tool({"name": "a", "inputSchema": {}, "description": "\x1b[31mred\x1b[0m\x07"})
    assert not isinstance(tool, str)
    assert tool.description == "red\\x07"


def test_the_filter_takes_globs_of_the_servers_own_names() -> None:
    raw = [{"name": name, "inputSchema": OBJECT} for name in ("get_a", "get_b", "set_a")]
    tools, diagnostics = inspect_list(raw, ["get_*"], ["*_b"])
    assert [tool.name for tool in tools] == ["get_a"]
    assert diagnostics == []


@pytest.mark.parametrize(
    ("trusted", "hints", "access", "asks"),
    [
        (False, {"readOnlyHint": True}, "execute", False),
        (True, {"readOnlyHint": True}, "read", False),
        (True, {"readOnlyHint": "true"}, "execute", False),
        (True, {}, "execute", False),
        (True, {"readOnlyHint": True, "destructiveHint": True}, "read", True),
        (False, {"destructiveHint": True}, "execute", True),
    ],
)
def test_hints_count_only_where_they_are_trusted_or_warn(
    trusted: bool, hints: dict[str, Any], access: str, asks: bool
) -> None:
    tools, _ = inspect_list([{"name": "a", "inputSchema": OBJECT, "annotations": hints}], ["*"], [])
    tool = build_catalogue([Listing("s", tools, trusted)], "drop").tools["mcp__s__a"].tool
    assert (tool.access, tool.always_ask) == (access, asks)
