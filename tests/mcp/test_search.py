from __future__ import annotations

import pytest

from hel_lsp.mcp.search import ToolIndex
from hel_lsp.messages import ToolDefinition
from hel_lsp.ports import DeferredTool
from tests.mcp.workspace import Workspace, scripted


def tool(server: str, name: str, description: str = "", **properties: object) -> DeferredTool:
    full = f"mcp__{server}__{name}"
    parameters = {"type": "object", "properties": properties}
    return DeferredTool(full, server, ToolDefinition(full, description, parameters))


TOOLS = [
    tool("github", "create_issue", "Open a new issue in a repository.", labels={"type": "array"}),
    tool("github", "list_issues", "List issues.\n\nSupports filtering by milestone and by assignee."),
    tool("fs", "readTextFile", "Read the complete contents of a file.", encoding={"enum": ["utf-8", "latin-1"]}),
    tool("fs", "remove_directory", "Take a directory away, with all that is in it."),
    tool("clock", "now", "The time in a zone.", zone={"description": "IANA name such as Europe/Oslo"}),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create an issue", "mcp__github__create_issue"),
        ("filter by milestones", "mcp__github__list_issues"),
        ("reading files", "mcp__fs__readTextFile"),
        ("text", "mcp__fs__readTextFile"),
        ("delete a folder", "mcp__fs__remove_directory"),
        ("latin", "mcp__fs__readTextFile"),
        ("Oslo", "mcp__clock__now"),
        ("labels", "mcp__github__create_issue"),
    ],
)
def test_tools_are_found_by_their_words(query: str, first: str) -> None:
    assert ToolIndex(TOOLS).search(query, 3)[0] == first


def test_a_word_in_the_name_says_more_than_one_in_the_description() -> None:
    tools = [tool("a", "x", "About a merge of branches."), tool("a", "merge", "Does it.")]
    assert ToolIndex(tools).search("merge", 2)[0] == "mcp__a__merge"


def test_what_is_meant_never_outranks_what_was_said() -> None:
    tools = [tool("a", "remove"), tool("a", "delete"), tool("a", "other")]
    assert list(ToolIndex(tools).search("delete", 5)) == ["mcp__a__delete", "mcp__a__remove"]


def test_a_word_that_thousands_of_tools_have_still_counts_beside_a_rare_one() -> None:
    many = [tool("a", f"t{number}", "Of the office." if number % 3 else "Of the yard.") for number in range(9000)]
    rare = [tool("a", "x", "A needle of the yard."), tool("a", "y", "A needle of the office.")]
    index = ToolIndex([*many, *rare])
    assert index.search("office needle", 2) == ["mcp__a__y", "mcp__a__x"]
    assert len(index.search("office", 5)) == 5


def test_no_more_than_the_limit_come_back() -> None:
    tools = [tool("a", f"find_{number}") for number in range(50)]
    assert len(ToolIndex(tools).search("find", 18)) == 18


@pytest.mark.parametrize("query", ["", "  ", '"', "* OR (", "NEAR(", "zzz", "\0", "größe 🎉", 'zzz : "x'])
def test_no_query_is_an_error(query: str) -> None:
    assert list(ToolIndex(TOOLS).search(query, 5)) == []


def test_a_query_of_empty_words_alone_still_looks_for_them() -> None:
    assert ToolIndex([tool("a", "x", "this and that")]).search("and", 5) == ["mcp__a__x"]


async def test_the_host_searches_all_servers_and_notices_changes(workspace: Workspace) -> None:
    def listed(name: str) -> dict[str, object]:
        return {"name": name, "description": "Paint a fence.", "inputSchema": {}}

    change = [{"tools": [listed("varnish")]}, {"notify": "notifications/tools/list_changed"}, {"fill": 1}]
    host = await workspace.started(
        {"a": scripted(tools=[listed("brush")], calls={"brush": change}), "b": scripted(tools=[listed("roll")])}
    )
    assert set(host.search("paint fences", 5)) == {"mcp__a__brush", "mcp__b__roll"}
    await host.call("mcp__a__brush", {})
    await host.refresh()
    assert set(host.search("paint fences", 5)) == {"mcp__a__varnish", "mcp__b__roll"}
