"""The built-in tools at the wire: what the model gets to read, and what it cannot reach."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.agent import agent, calls, say, tool_results

ASK = {"prompt": "go", "wait": True}


async def results(workspace: Path, *wanted: tuple[str, Any], **options: Any) -> list[str]:
    """What the model reads after one reply with these calls; whatever asks is allowed."""
    async with agent(workspace, [calls(*wanted), say("done")], **options) as (editor, model):
        editor.answers = lambda message, actions: "Allow once"
        await editor.command("hel.ask", ASK)
    return tool_results(model.requests[1])


async def test_reading_shows_the_text_as_it_is_in_parts_that_name_their_lines(workspace):
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\n\tthree")
    (workspace / "long.txt").write_text("".join(f"{number}\n" for number in range(1, 3001)))
    (workspace / "wide.txt").write_text("x" * 60_000 + "\n")
    (workspace / "empty.txt").touch()
    shown = await results(
        workspace,
        ("read_file", {"path": "a.txt"}),
        ("read_file", {"path": "a.txt", "offset": 2, "limit": 1}),
        ("read_file", {"path": "long.txt"}),
        ("read_file", {"path": "long.txt", "offset": 2999}),
        ("read_file", {"path": "a.txt", "offset": 9}),
        ("read_file", {"path": "wide.txt"}),
        ("read_file", {"path": "empty.txt"}),
    )
    assert shown[0] == "lines 1-3 of 3\none\r\ntwo\n\tthree"
    assert shown[1] == "lines 2-2 of 3\ntwo\n"
    assert shown[2].startswith("lines 1-2000 of 3000\n1\n2\n")
    assert shown[3] == "lines 2999-3000 of 3000\n2999\n3000\n"
    assert "3 lines" in shown[4]
    assert len(shown[5]) < 51_000
    assert shown[6] == "the file is empty\n"


@pytest.mark.parametrize("repository", [True, False], ids=["in a repository", "in none"])
async def test_listing_and_searching_respect_gitignore_and_skip_the_closed_folders(workspace, repository):
    if repository:
        (workspace / ".git").mkdir()
    (workspace / ".gitignore").write_text("ignored/\n")
    for name in ("src/a.py", "src/b.txt", "ignored/c.py", ".hel/d.py", ".github/e.py"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("needle = 1\n")
    shown = await results(
        workspace,
        ("list_files", {}),
        ("list_files", {"pattern": "*.py"}),
        ("list_files", {"path": "src"}),
        ("search_files", {"pattern": r"needle\s*="}),
        ("search_files", {"pattern": "needle", "glob": "*.txt"}),
        ("search_files", {"pattern": "nothing"}),
        ("search_files", {"pattern": "("}),
    )
    assert shown[0].splitlines() == [".github/e.py", ".gitignore", "src/a.py", "src/b.txt"]
    assert shown[1].splitlines() == [".github/e.py", "src/a.py"]
    assert shown[2].splitlines() == ["src/a.py", "src/b.txt"]
    assert shown[3].splitlines() == [f"{name}:1: needle = 1" for name in (".github/e.py", "src/a.py", "src/b.txt")]
    assert shown[4] == "src/b.txt:1: needle = 1"
    assert shown[5] == "No matches."
    assert "failed" in shown[6]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["started in the workspace", "started elsewhere"])
@pytest.mark.parametrize("repository", ["workspace", ".", None])
async def test_what_a_gitignore_says_holds_up_to_the_folder_of_the_repository_or_else_of_the_workspace(
    workspace, tmp_path, repository, elsewhere
):
    if repository is not None:
        (tmp_path / repository / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("above/\n")
    (workspace / ".gitignore").write_text("/src/own/\n")
    names = ["above/a.py", "own/a.py", "src/a.py", "src/above/a.py", "src/own/a.py"]
    for name in names:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("needle\n")
    wanted = [
        ("list_files", {"pattern": "*.py"}),
        ("list_files", {"pattern": "src/**"}),
        ("search_files", {"pattern": "needle"}),
        ("search_files", {"pattern": "needle", "glob": "src/**"}),
    ]
    async with agent(tmp_path if elsewhere else workspace, [calls(*wanted), say("ok")], folders=[workspace]) as (
        editor,
        model,
    ):
        await editor.command("hel.ask", ASK)
    shown = [[line.removesuffix(":1: needle") for line in text.split("\n")] for text in tool_results(model.requests[1])]
    ignored = ["src/own/a.py", *(["above/a.py", "src/above/a.py"] if repository == "." else [])]
    everywhere = [name for name in names if name not in ignored]
    assert shown == [everywhere, [name for name in everywhere if name.startswith("src/")]] * 2


async def test_a_gitignore_of_the_workspace_holds_for_a_folder_in_it_without_a_repository(workspace):
    (workspace / ".gitignore").write_text("ignored/\n")
    for name in ("src/ignored/a.py", "src/b.py"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("needle\n")
    wanted = ("list_files", {"path": "src"}), ("search_files", {"pattern": "needle", "path": "src"})
    assert await results(workspace, *wanted) == ["src/b.py", "src/b.py:1: needle"]


async def test_searching_finds_what_is_in_the_editor_and_not_what_is_on_the_disk_below_it(workspace):
    (workspace / "a.txt").write_text("old text\n")
    search = ("search_files", {"pattern": "text"})
    async with agent(workspace, [calls(search, ("read_file", {"path": "a.txt"})), say("done")]) as (editor, model):
        buffer = editor.open(workspace / "a.txt")
        editor.replace(buffer, "old", "unsaved")
        await editor.command("hel.ask", ASK)
    found, read = tool_results(model.requests[1])
    assert found == "a.txt:1: unsaved text"
    assert read == "lines 1-1 of 1\nunsaved text\n"


@pytest.mark.parametrize("elsewhere", [False, True], ids=["started in the workspace", "started elsewhere"])
async def test_a_glob_is_relative_to_the_folder_and_holds_for_new_documents_as_for_files(
    workspace, tmp_path, elsewhere
):
    names = ["a.py", "src/a.py", "src/b.txt", "src/deep/c.py", "src/deep/[d].py"]
    globs = ["", "*.py", "*.{txt,md}", "src/*.py", "/a.py", "src/**/*.py", "**/deep/*", "!*.py", "src/deep/[[]*", "*/"]
    wanted = [("search_files", {"pattern": "needle", "glob": glob}) for glob in globs]
    wanted += [("search_files", {"pattern": "needle", "glob": "deep/*", "path": "src"})]
    shown: list[list[str]] = []
    for folder, opened in ((workspace / "files", False), (workspace / "documents", True)):
        folder.mkdir()
        async with agent(tmp_path if elsewhere else folder, [calls(*wanted), say("ok")], folders=[folder]) as (
            editor,
            model,
        ):
            for path in (folder / name for name in names):
                if opened:
                    editor.open_untitled(path.as_uri(), "needle\n")
                else:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text("needle\n")
            await editor.command("hel.ask", ASK)
        shown.append(tool_results(model.requests[1]))
    found = [[line.removesuffix(":1: needle") for line in text.splitlines()] for text in shown[0]]
    assert found[:5] == [sorted(names), sorted(set(names) - {"src/b.txt"}), ["src/b.txt"], ["src/a.py"], ["a.py"]]
    assert found[-1] == ["src/deep/[d].py", "src/deep/c.py"]
    assert shown[1] == shown[0]


async def test_a_listing_and_a_search_of_what_is_not_there_say_so_unless_it_is_a_new_document(workspace):
    looks = calls(
        ("list_files", {"path": "none"}),
        ("search_files", {"pattern": "needle", "path": "none/at/all"}),
        ("search_files", {"pattern": "needle", "path": "new.txt", "glob": "*.py"}),
        ("search_files", {"pattern": "needle", "path": "folder"}),
        ("search_files", {"pattern": "needle", "path": "untitled:one"}),
    )
    async with agent(workspace, [looks, say("ok")]) as (editor, model):
        for uri in ((workspace / "new.txt").as_uri(), (workspace / "folder" / "a.txt").as_uri(), "untitled:one"):
            editor.open_untitled(uri, "needle\n")
        await editor.command("hel.ask", ASK)
    assert tool_results(model.requests[1]) == [
        "none does not exist.",
        "none/at/all does not exist.",
        "new.txt:1: needle",
        "folder/a.txt:1: needle",
        "untitled:one:1: needle",
    ]


async def test_a_command_runs_in_the_workspace_and_tells_its_exit_code_and_both_streams(workspace):
    (workspace / "a.txt").write_text("x\n")
    async with agent(
        workspace, [calls(("bash", {"command": "ls; echo no >&2; exit 3"})), say("done")], options={"access": "auto"}
    ) as (editor, model):
        editor.type(editor.open(workspace / "a.txt"), "y")
        result = await editor.command("hel.ask", ASK)
    [text] = tool_results(model.requests[1])
    unsaved, status, *output = text.splitlines()
    assert "older text" in unsaved
    assert "a.txt" in unsaved
    assert (status, output) == ("exit code 3", ["a.txt", "stderr:", "no"])
    assert result["toolCalls"][0]["status"] == "failed"


async def test_a_command_over_its_time_is_stopped_and_says_so(workspace):
    [text] = await results(workspace, ("bash", {"command": "echo begun; sleep 1000", "timeout": 0.5}))
    assert text.splitlines() == ["stopped after 0.5 s, with everything it had started", "begun"]


@pytest.mark.parametrize("sandbox", ["off", "auto"])
async def test_what_a_command_leaves_in_the_background_does_not_hold_up_its_result(workspace, sandbox):
    options = {"tools": {"bash": {"sandbox": sandbox}}}
    async with asyncio.timeout(20):
        [text] = await results(workspace, ("bash", {"command": "sleep 1000 & echo begun"}), options=options)
    assert text.splitlines() == ["exit code 0", "begun"]


async def test_a_command_does_not_see_the_key_of_the_model(workspace):
    variables = ["HEL_API_KEY", "OPENAI_API_KEY", "MY_KEY"]
    [text] = await results(
        workspace,
        ("bash", {"command": "env | cut -d= -f1"}),
        environment=dict.fromkeys(variables, "secret-value"),
        options={"model": {"apiKeyEnv": "MY_KEY"}},
    )
    assert "PATH" in text.splitlines()
    assert set(variables).isdisjoint(text.splitlines())


async def test_the_question_shows_the_whole_command_also_a_long_one(workspace):
    long = "echo " + "x" * 2000
    async with agent(workspace, [calls(("bash", {"command": long})), say("done")]) as (editor, model):
        await editor.command("hel.ask", ASK)
        [question] = editor.questions
        [shown] = editor.sent("window/showDocument") or [None]
        assert len(question.message) <= 900
        if shown is None:
            named = question.message.split("(in full: ")[1].rstrip(")")
            assert Path(named).read_text() == long


async def test_the_question_shows_the_time_that_the_model_gives_a_command(workspace):
    wanted = calls(("bash", {"command": "true", "timeout": 99999}), ("bash", {"command": "true"}))
    async with agent(workspace, [wanted, say("done")]) as (editor, model):
        await editor.command("hel.ask", ASK)
        assert ["99999 s" in question.message for question in editor.questions] == [True, False]


async def test_a_huge_result_is_shortened_and_can_be_read_from_the_file_it_names(workspace):
    many = calls(("bash", {"command": "seq 1 40000"}))
    async with agent(workspace, [many, say("ok")], options={"access": "auto"}) as (editor, model):
        await editor.command("hel.ask", ASK)
        [text] = tool_results(model.requests[1])
        path = text.split("the whole is in ")[1].split(", to be read")[0]
        looks = calls(
            ("read_file", {"path": path, "offset": 39_999, "limit": 2}),
            ("search_files", {"path": path, "pattern": "^39999$"}),
        )
        model.replies += [looks, say("done")]
        await editor.command("hel.ask", ASK)
    assert len(text) < 10_000
    read, found = tool_results(model.requests[-1])[-2:]
    assert read == "lines 39999-40000 of 40001\n39998\n39999\n"
    assert found.endswith(": 39999")


@pytest.mark.parametrize("access", ["read-only", "confirm", "auto"])
async def test_each_access_level_runs_asks_or_refuses_as_the_table_says(workspace, access):
    (workspace / "a.txt").write_text("alpha\n")
    wanted = calls(
        ("read_file", {"path": "a.txt"}),
        ("search_replace", {"path": "a.txt", "search": "alpha", "replace": "omega"}),
        ("bash", {"command": "true"}),
    )
    async with agent(workspace, [wanted, say("done")], options={"access": access}) as (editor, model):
        buffer = editor.open(workspace / "a.txt")
        editor.answers = lambda message, actions: "Allow once"
        result = await editor.command("hel.ask", ASK)
        asked, text = len(editor.questions), buffer.text
    statuses = [report["status"] for report in result["toolCalls"]]
    expected = {
        "read-only": (["completed", "rejected", "rejected"], 0, "alpha\n"),
        "confirm": (["completed"] * 3, 2, "omega\n"),
        "auto": (["completed"] * 3, 0, "omega\n"),
    }
    assert (statuses, asked, text) == expected[access]


async def test_the_access_of_one_ask_holds_for_that_turn_and_the_set_one_for_the_connection(workspace):
    (workspace / "a.txt").write_text("alpha\n")
    run = calls(("bash", {"command": "true"}))
    async with agent(workspace, [run, say("1"), run, say("2"), run, say("3")]) as (editor, model):
        first = await editor.command("hel.ask", {**ASK, "access": "auto"})
        second = await editor.command("hel.ask", ASK)
        assert await editor.command("hel.setAccess", {"access": "read-only"}) == {"access": "read-only"}
        third = await editor.command("hel.ask", ASK)
    shown = [result["toolCalls"][0]["status"] for result in (first, second, third)]
    assert shown == ["completed", "rejected", "rejected"]
    assert len(editor.questions) == 1


async def test_no_tool_reaches_outside_the_workspace_or_into_the_harness_folder(workspace, tmp_path):
    (tmp_path / "secret.txt").write_text("outside\n")
    (workspace / "link.txt").symlink_to(tmp_path / "secret.txt")
    (workspace / ".hel").mkdir()
    (workspace / ".hel" / "mcp.json").write_text("{}")
    (workspace / "inner.json").symlink_to(workspace / ".hel" / "mcp.json")
    paths = ["../secret.txt", str(tmp_path / "secret.txt"), "link.txt", ".hel/mcp.json", ".HEL/x", "inner.json"]
    wanted = [("read_file", {"path": path}) for path in paths]
    wanted += [("write_file", {"path": path, "content": "x"}) for path in [*paths, ".git/config"]]
    async with agent(workspace, [calls(*wanted), say("done")], options={"access": "auto"}) as (editor, model):
        result = await editor.command("hel.ask", ASK)
    shown = tool_results(model.requests[1])
    assert {report["status"] for report in result["toolCalls"][:5]} <= {"failed"}
    assert [report["status"] for report in result["toolCalls"] if report["status"] != "failed"] == []
    assert not any("outside\n" in text for text in shown)
    assert (tmp_path / "secret.txt").read_text() == "outside\n"
    assert (workspace / ".hel" / "mcp.json").read_text() == "{}"


async def test_a_disabled_tool_is_not_offered(workspace):
    async with agent(workspace, [say("hi")], options={"tools": {"disabled": ["bash"]}}) as (editor, model):
        await editor.command("hel.ask", ASK)
        shown = await editor.command("hel.tools")
    offered = [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert "bash" not in offered
    assert [tool["name"] for tool in shown["builtin"]] == offered
