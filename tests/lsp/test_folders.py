"""Which folder a session works in: with several in the workspace, and with none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lsprotocol import types

from tests.lsp.agent import agent, call, calls, say, tool_results
from tests.lsp.personalities import NEVER

AUTO = {"access": "auto"}


@pytest.fixture
def folders(workspace: Path) -> tuple[Path, Path]:
    """Two folders that hold files of the same names, one of them also below the other's name."""
    api, lib = workspace / "api", workspace / "lib"
    for folder in (api, lib, api / "lib"):
        folder.mkdir()
        (folder / "x.txt").write_text(f"{folder.relative_to(workspace)} 1\n")
    return api, lib


def about(path: Path, **more: object) -> dict[str, object]:
    return {"prompt": "go", "textDocument": {"uri": path.as_uri()}, "wait": True, **more}


EDIT = call("search_replace", path="x.txt", search="1", replace="2")


async def test_a_session_works_in_the_folder_of_the_first_document_that_it_is_asked_about(folders):
    api, lib = folders
    looks = calls(("read_file", {"path": "x.txt"}), ("list_files", {}), ("bash", {"command": "pwd"}))
    async with agent(api, [looks, EDIT, say("done")], folders=[api, lib], options=AUTO) as (editor, model):
        result = await editor.command("hel.ask", about(lib / "x.txt"))

    read, listed, shell = tool_results(model.requests[1])
    assert read.endswith("lib 1\n")
    assert listed == "x.txt"
    assert shell.endswith(str(lib))
    assert [edit["uri"] for edit in result["edits"]] == [(lib / "x.txt").as_uri()]
    system, user = (message["content"] for message in model.requests[0]["messages"])
    assert f"Workspace: {lib} (paths are relative to it), and by absolute paths {api}" in system
    assert "Current file: x.txt" in user


@pytest.mark.parametrize("first", ["hel.tools", "hel.newSession", "hel.reloadMcp"])
async def test_what_was_looked_at_before_the_first_question_settles_no_folder(folders, first):
    api, lib = folders
    for folder in folders:
        (folder / ".hel").mkdir()
        (folder / ".hel" / "mcp.json").write_text(json.dumps({"servers": {folder.name: {"command": "none"}}}))
    async with agent(api, [EDIT, say("done")], folders=[api, lib], options=AUTO) as (editor, _):
        await editor.command(first)
        assert [server["name"] for server in (await editor.command("hel.tools"))["servers"]] == ["api"]
        result = await editor.command("hel.ask", about(lib / "x.txt"))
        assert [server["name"] for server in (await editor.command("hel.tools"))["servers"]] == ["lib"]
    assert [edit["uri"] for edit in result["edits"]] == [(lib / "x.txt").as_uri()]


async def test_the_folder_of_a_client_that_knows_no_workspace_folders_is_its_root_uri(folders):
    api, lib = folders
    looks = calls(("read_file", {"path": "x.txt"}), ("read_file", {"path": str(lib / "x.txt")}))
    async with agent(lib, [looks, say("done")], folders=[api], root_uri_alone=True) as (editor, model):
        await editor.command("hel.ask", {"prompt": "go", "wait": True})
    inside, outside = tool_results(model.requests[1])
    assert inside.endswith("api 1\n")
    assert "leads out of the workspace" in outside
    assert model.requests[0]["messages"][0]["content"].endswith(f"\nWorkspace: {api}")


async def test_folders_that_are_added_are_open_from_then_on_and_removed_ones_closed(folders):
    api, lib = folders
    looks = calls(("read_file", {"path": str(api / "x.txt")}), ("read_file", {"path": str(lib / "x.txt")}))
    replies = [looks, say("1"), looks, say("2"), EDIT, say("3"), looks, say("4"), looks, say("5")]
    async with agent(api, replies, folders=[api], options=AUTO) as (editor, model):

        def change(added: list[str], removed: list[str]) -> None:
            event = types.WorkspaceFoldersChangeEvent(
                [types.WorkspaceFolder(uri, "added") for uri in added],
                [types.WorkspaceFolder(uri, "removed") for uri in removed],
            )
            editor.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))

        async def readable() -> list[bool]:
            await editor.command("hel.ask", {"prompt": "go", "wait": True})
            return ["leads out" not in text for text in tool_results(model.requests[-1])[-2:]]

        assert await readable() == [True, False]
        change([lib.as_uri(), lib.as_uri().replace("lib", "%6Cib") + "/", "untitled:folder"], [])
        assert await readable() == [True, True]
        await editor.command("hel.newSession")
        result = await editor.command("hel.ask", about(lib / "x.txt"))
        assert [edit["uri"] for edit in result["edits"]] == [(lib / "x.txt").as_uri()]
        assert "absolute paths" in model.requests[-1]["messages"][0]["content"]
        assert model.requests[-1]["messages"][0]["content"].count(str(lib)) == 1
        change([], [api.as_uri().replace("api", "%61pi"), "untitled:folder"])
        assert await readable() == [False, True]
        change([], [lib.as_uri()])
        change([api.as_uri()], [])
        assert await readable() == [True, False]


async def test_every_path_that_the_model_is_shown_leads_back_to_that_file(folders):
    api, lib = folders
    opened = [api / "x.txt", lib / "x.txt", api / "lib" / "x.txt"]
    async with agent(api, [say("ok")], folders=[api, lib]) as (editor, model):
        for path in opened:
            editor.open(path)
        await editor.command("hel.ask", about(api / "x.txt"))
        shown = model.requests[0]["messages"][1]["content"].partition("Open: ")[2].split(", ")
        model.replies += [calls(*(("read_file", {"path": path}) for path in shown)), say("ok")]
        await editor.command("hel.ask", about(api / "x.txt"))

    texts = [result.split("\n", 1)[1] for result in tool_results(model.requests[2])]
    assert texts == [path.read_text() for path in opened]


async def test_questions_name_files_of_two_folders_differently(folders):
    api, lib = folders
    wanted = calls(
        ("search_replace", {"path": "lib/x.txt", "search": "1", "replace": "2"}),
        ("search_replace", {"path": str(lib / "x.txt"), "search": "1", "replace": "2"}),
    )
    async with agent(api, [wanted, say("done")], folders=[api, lib]) as (editor, _):
        editor.answers = ["Reject", "Reject"]
        await editor.command("hel.ask", about(api / "x.txt"))
    one, other = (question.message for question in editor.questions)
    assert "edit lib/x.txt " in one
    assert f"edit {(lib / 'x.txt').as_posix()} " in other


async def test_rules_and_instructions_are_those_of_the_folder_that_holds_the_document(folders):
    api, lib = folders
    (lib / ".hel").mkdir()
    (lib / ".hel" / "permissions.json").write_text(json.dumps({"deny": ["bash"]}))
    (lib / "AGENTS.md").write_text("Be kind to lib.\n")
    run = call("bash", command="true")
    replies = [run, say("one"), run, say("two"), say("three")]
    async with agent(api, replies, folders=[api, lib], options=AUTO) as (editor, model):
        first = await editor.command("hel.ask", about(api / "x.txt"))
        second = await editor.command("hel.ask", about(lib / "x.txt"))
        await editor.command("hel.ask", about(lib / "x.txt"))

    assert [result["toolCalls"][0]["status"] for result in (first, second)] == ["completed", "rejected"]
    prompts = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "user"]
    assert ["Be kind to lib." in prompt for prompt in prompts] == [False, True, False]


async def test_without_folders_a_session_keeps_to_its_own_while_another_one_is_asked(folders):
    api, lib = folders
    replies = [call("bash", command="true"), say("second"), EDIT, say("first")]
    async with agent(api.parent, replies, folders=[]) as (editor, _):
        editor.answers = [NEVER, "Allow once"]
        first = editor.start_command("hel.ask", about(api / "x.txt"))
        question = await editor.question()
        session = (await editor.command("hel.newSession"))["session"]
        await editor.command("hel.ask", about(lib / "x.txt", session=session))
        question.answer("Allow once")
        result = await first.result
    assert [edit["uri"] for edit in result["edits"]] == [(api / "x.txt").as_uri()]


async def test_without_folders_a_second_folder_is_reached_by_absolute_paths(folders):
    api, lib = folders
    looks = calls(("read_file", {"path": "x.txt"}), ("read_file", {"path": str(lib / "x.txt")}))
    async with agent(api.parent, [looks, say("one"), looks, say("two")], folders=[]) as (editor, model):
        await editor.command("hel.ask", about(api / "x.txt"))
        await editor.command("hel.ask", about(lib / "x.txt"))

    before, after = tool_results(model.requests[1]), tool_results(model.requests[3])[2:]
    assert [text.endswith("api 1\n") for text in (before[0], after[0])] == [True, True]
    assert "leads out of the workspace" in before[1]
    assert after[1].endswith("lib 1\n")
    assert f"Current file: {(lib / 'x.txt').as_posix()}" in model.requests[2]["messages"][-1]["content"]


async def test_without_folders_a_session_can_be_resumed_by_the_one_who_asks_about_its_file_again(folders):
    api, lib = folders
    async with agent(api.parent, [say("one"), say("two")], folders=[]) as (editor, _):
        first = await editor.command("hel.ask", about(api / "x.txt"))
        await editor.command("hel.newSession")
        second = await editor.command("hel.ask", about(lib / "x.txt"))
        listed = [kept["session"] for kept in await editor.command("hel.sessions")]
    assert listed == [second["session"], first["session"]]
