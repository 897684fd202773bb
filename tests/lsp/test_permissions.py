"""Rules, grants and questions at the wire: what runs, what is refused, what is asked, and how often."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.agent import agent, call, calls, records, say, tool_results
from tests.lsp.editor import Editor

ASK = {"prompt": "go", "wait": True}
ALL = ["Reject", "Allow once", "Allow for session", "Always allow"]
ONCE = ["Reject", "Allow once"]


def permit(workspace: Path, **rules: Sequence[str]) -> None:
    file = workspace / ".hel" / "permissions.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(rules))


def bash(*commands: str) -> dict[str, Any]:
    return calls(*(("bash", {"command": command}) for command in commands))


def statuses(result: Mapping[str, Any]) -> list[str]:
    return [report["status"] for report in result["toolCalls"]]


async def ask(editor: Editor, *answers: str, **more: Any) -> tuple[list[str], list[Any]]:
    """One turn with these answers: how its calls ended, and the questions that it took."""
    before = len(editor.questions)
    editor.answers = list(answers)
    result = await editor.command("hel.ask", {**ASK, **more})
    return statuses(result), editor.questions[before:]


def warnings(editor: Editor) -> list[str]:
    return [shown["message"] for shown in editor.sent("window/showMessage") if shown["message"].startswith("hel: ")]


# ------------------------------------------------------------------ rules


async def test_deny_wins_everywhere_and_needs_no_trust(workspace):
    (workspace / "secret").mkdir()
    (workspace / "secret" / "key").write_text("hidden\n")
    (workspace / "link").symlink_to("secret")
    permit(workspace, deny=["bash(touch *)", "read_file(secret/**)", "write_file"])
    wanted = calls(
        ("bash", {"command": "touch ran"}),
        ("read_file", {"path": "secret/key"}),
        ("read_file", {"path": "link/key"}),
        ("write_file", {"path": "a.txt", "content": "x"}),
        ("bash", {"command": "true"}),
    )
    async with agent(workspace, [wanted, say("1"), wanted, say("2")]) as (editor, model):
        in_auto, questions = await ask(editor, access="auto")
        assert (in_auto, questions) == (["rejected"] * 4 + ["completed"], [])
        in_confirm, questions = await ask(editor, "Allow once")
        assert in_confirm == ["rejected"] * 4 + ["completed"]
        assert len(questions) == 1
    told = tool_results(model.requests[1])
    assert "bash(touch *)" in told[0]
    assert not any("hidden" in text for text in told)
    assert not (workspace / "ran").exists()
    assert not (workspace / "a.txt").exists()


async def test_ask_asks_in_auto_too_and_each_time_anew(workspace):
    (workspace / "a.txt").write_text("alpha\n")
    permit(workspace, ask=["bash(git push*)", "read_file(a.txt)"])
    wanted = calls(("bash", {"command": "git push"}), ("read_file", {"path": "a.txt"}), ("bash", {"command": "true"}))
    async with agent(workspace, [wanted, say("1"), wanted, say("2")], options={"access": "auto"}) as (editor, model):
        ended, questions = await ask(editor, "Reject", "Allow once")
        assert ended == ["rejected", "completed", "completed"]
        assert [question.actions for question in questions] == [ONCE, ONCE]
        assert "git push" in questions[0].message
        assert "the rule bash(git push*)" in questions[0].message
        _, questions = await ask(editor, "Allow for session", "Allow for session")
        assert len(questions) == 2


async def test_an_ask_rule_comes_before_what_was_granted(workspace):
    async with agent(workspace, [bash("true"), say("done")] * 3) as (editor, model):
        await ask(editor, "Always allow")
        assert await ask(editor) == (["completed"], [])
        permit(workspace, ask=["bash(true)"])
        ended, questions = await ask(editor)
        assert (ended, len(questions)) == (["rejected"], 1)


async def test_allow_counts_after_trust_alone_and_the_trust_is_for_these_very_bytes(workspace):
    permit(workspace, allow=["bash(echo *)", "bash(true; true)"])
    wanted = bash("echo one", "true; true", "echo one; true")
    replies = [wanted, say("done")] * 2
    async with agent(workspace, replies) as (editor, model):
        ended, questions = await ask(editor, "Don't trust")
        assert ended == ["rejected"] * 3
        trust, *others = questions
        assert trust.actions == ["Don't trust", "Trust"]
        assert "bash(echo *)" in trust.message
        assert "bash(true; true)" in trust.message
        assert len(others) == 3
        # The no holds while the file stays as it is: nobody wants to be asked in every turn.
        _, questions = await ask(editor)
        assert [question.actions for question in questions] == [ALL] * 3

    async with agent(workspace, replies) as (editor, model):
        ended, questions = await ask(editor, "Trust")
        assert ended == ["completed", "completed", "rejected"]
        assert len(questions) == 2
        assert "echo one; true" in questions[1].message
        ended, questions = await ask(editor, access="read-only")
        assert (ended, questions) == (["rejected"] * 3, [])

    async with agent(workspace, replies) as (editor, model):
        ended, questions = await ask(editor, "Reject")
        assert (ended[:2], len(questions)) == (["completed"] * 2, 1)
        permit(workspace, allow=["bash(echo *)", "bash(true; true)", "bash"])
        ended, questions = await ask(editor)
        assert ended == ["rejected"] * 3
        assert questions[0].actions == ["Don't trust", "Trust"]


async def test_a_file_that_cannot_be_used_is_told_of_with_its_place_and_counts_as_absent(workspace):
    permit(workspace)
    file = workspace / ".hel" / "permissions.json"
    file.write_text('{\n  "deny": ["bash"],,\n}')
    async with agent(workspace, [bash("true"), say("done")] * 2, options={"access": "auto"}) as (editor, model):
        ended, _ = await ask(editor)
        assert ended == ["completed"]
        [warning] = warnings(editor)
        assert f"{file}, line 2, column " in warning
        permit(workspace, deny=["bash"])
        ended, _ = await ask(editor)
        assert ended == ["rejected"]


async def test_the_list_of_commands_that_ask_in_any_case_holds_in_auto_and_over_every_grant(workspace):
    permit(workspace, allow=["bash"])
    wanted = bash("rm -rf ../elsewhere", "rm -rf build", "git push --force")
    async with agent(workspace, [wanted, say("1"), wanted, say("2")]) as (editor, model):
        ended, questions = await ask(editor, "Trust", access="auto")
        assert ended == ["rejected", "completed", "rejected"]
        _, first, second = questions
        assert first.actions == second.actions == ONCE
        assert "outside the workspace" in first.message
        ended, questions = await ask(editor)
        assert (ended, len(questions)) == (["rejected", "completed", "rejected"], 2)


# ------------------------------------------------------------------ what the user allowed


async def test_allow_once_is_for_one_call_session_for_that_command_and_always_for_the_next_session_too(workspace):
    once, session, always = "echo once", "echo session", "echo always"
    wanted = bash(once, session, always)
    async with agent(workspace, [wanted, say("done")] * 3) as (editor, model):
        ended, questions = await ask(editor, "Allow once", "Allow for session", "Always allow")
        assert (ended, [question.actions for question in questions]) == (["completed"] * 3, [ALL] * 3)
        ended, questions = await ask(editor)
        assert ended == ["rejected", "completed", "completed"]
        assert [once in question.message for question in questions] == [True]
        other = await editor.command("hel.newSession")
        ended, questions = await ask(editor, **other)
        assert ended == ["rejected", "rejected", "completed"]
        assert len(questions) == 2

    async with agent(workspace, [bash(always, f"{always} more"), say("done")]) as (editor, model):
        ended, questions = await ask(editor)
        assert ended == ["completed", "rejected"]
    assert not (workspace / ".hel").exists()
    elsewhere = workspace.parent / "elsewhere"
    elsewhere.mkdir()
    state = str(workspace.parent / f"{workspace.name}-state")
    async with agent(elsewhere, [bash(always), say("done")], environment={"HEL_STATE_DIR": state}) as (editor, model):
        ended, _ = await ask(editor)
        assert ended == ["rejected"]


async def test_a_session_grant_for_an_edit_is_for_that_tool(workspace):
    wanted = calls(*(("write_file", {"path": f"{name}.txt", "content": name}) for name in "ab"))
    other = call("search_replace", path="a.txt", search="a", replace="c")
    async with agent(workspace, [wanted, other, say("done")]) as (editor, model):
        ended, questions = await ask(editor, "Allow for session")
        assert ended == ["completed", "completed", "rejected"]
        assert len(questions) == 2


async def test_a_question_spells_out_what_would_hide_in_it(workspace):
    async with agent(workspace, [bash("echo \u202egnihtemos\u202c \u200b\x1b[2K"), say("done")]) as (editor, model):
        _, [question] = await ask(editor)
    assert question.message.endswith("echo \\u202egnihtemos\\u202c \\u200b\\x1b[2K")


async def test_everything_decided_is_in_the_run_log_with_who_decided_it(workspace):
    permit(workspace, deny=["bash(false)"], ask=["bash(echo asked)"])
    wanted = bash("false", "echo asked", "true")
    async with agent(workspace, [wanted, say("done")], options={"access": "auto"}) as (editor, model):
        await ask(editor, "Allow once")
        log = await editor.command("hel.openLog")
    entries = [entry for entry in records(Path(log["uri"].removeprefix("file://"))) if entry["kind"] == "decision"]
    shown = [(entry["allowed"], entry["by"], entry["grounds"]) for entry in entries]
    assert shown == [(False, "rule", "bash(false)"), (True, "user", "allow_once"), (True, "access", "auto")]
    assert all("bash" in entry["scope"] for entry in entries)


# ------------------------------------------------------------------ MCP tools


@pytest.mark.parametrize(
    ("rules", "access", "ended", "asked"),
    [
        ({}, "read-only", "rejected", 0),
        ({}, "confirm", "rejected", 1),
        ({}, "auto", "completed", 0),
        ({"deny": ["mcp__inventory__*"]}, "auto", "rejected", 0),
        ({"ask": ["mcp__inventory__lookup_port"]}, "auto", "rejected", 1),
        ({"allow": ["mcp__inventory__*"]}, "confirm", "completed", 0),
        ({"allow": ["mcp__inventory__*"]}, "read-only", "rejected", 0),
    ],
)
async def test_an_mcp_tool_takes_the_same_way(workspace, rules, access, ended, asked):
    permit(workspace, **rules)
    server = {"command": sys.executable, "args": ["-m", "hel_lsp.demo.inventory"], "alwaysLoad": True}
    (workspace / ".hel" / "mcp.json").write_text(json.dumps({"servers": {"inventory": server}}))
    wanted = call("mcp__inventory__lookup_port", service="api")
    async with agent(workspace, [wanted, say("done")], options={"access": access}) as (editor, model):
        editor.answers = lambda message, actions: "Trust" if "Trust" in actions else "Reject"
        result = await editor.command("hel.ask", ASK)
        questions = [question for question in editor.questions if "Trust" not in question.actions]
    assert (statuses(result), len(questions)) == ([ended], asked)
