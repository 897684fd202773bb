"""Hooks at the wire: what they are told, what each outcome does to a call, and when they do not run at all."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lsp.agent import agent, call, calls, records, say, tool_results
from tests.lsp.test_turns import appears, gone

ASK = {"prompt": "go", "wait": True}
AUTO = {"access": "auto", "tools": {"bash": {"sandbox": "off"}}}


def hook(workspace: Path, /, **events: Any) -> None:
    """Write `.hel/hooks.json`: for each event a command, or (matcher, command), or several of those in a list."""
    file = workspace / ".hel" / "hooks.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"hooks": {event: groups(wanted) for event, wanted in events.items()}}))


def groups(wanted: Any) -> list[dict[str, Any]]:
    several = wanted if isinstance(wanted, list) else [wanted]
    pairs = [entry if isinstance(entry, tuple) else ("", entry) for entry in several]
    return [
        {"matcher": matcher, "hooks": [{"type": "command", "command": entry}]}
        if isinstance(entry, str)
        else {"matcher": matcher, "hooks": [{"type": "command", **entry}]}
        for matcher, entry in pairs
    ]


def trusting(message: str, actions: list[str]) -> str:
    return "Trust" if "Trust" in actions else "Allow once"


def warnings(editor: Any) -> list[str]:
    return [shown["message"] for shown in editor.sent("window/showMessage") if shown["message"].startswith("hel: ")]


def statuses(result: Mapping[str, Any]) -> list[str]:
    return [report["status"] for report in result["toolCalls"]]


async def run(workspace: Path, wanted: Any, **options: Any) -> tuple[list[str], list[str], list[str]]:
    """One turn that trusts and allows: how the calls ended, what the model was told, what the user was warned of."""
    async with agent(workspace, [wanted, say("done")], **{"options": AUTO, **options}) as (editor, model):
        editor.answers = trusting
        result = await editor.command("hel.ask", ASK)
        return statuses(result), tool_results(model.requests[1]), warnings(editor)


async def test_hooks_are_told_the_call_and_its_result_in_the_workspace_without_the_key_of_the_model(workspace):
    note = "cat >> told.jsonl; env | cut -d= -f1 >> environment.txt"
    hook(workspace, PreToolUse=("bash", note), PostToolUse=("^bash$", note))
    wanted = calls(("bash", {"command": "echo hi", "timeout": None}), ("read_file", {"path": "gone.txt"}))
    ended, told, warned = await run(workspace, wanted, environment={"HEL_API_KEY": "secret-value"})
    assert (ended, warned) == (["completed", "failed"], [])
    assert told[0] == "exit code 0\nhi"
    before, after = records(workspace / "told.jsonl")
    assert set(before) == {"event", "session", "turn", "tool", "arguments"}
    assert (before["event"], before["turn"], before["tool"]) == ("PreToolUse", 1, "bash")
    assert before["arguments"]["command"] == "echo hi"
    assert after == {**before, "event": "PostToolUse", "result": "exit code 0\nhi"}
    names = (workspace / "environment.txt").read_text().splitlines()
    assert "PATH" in names
    assert "HEL_API_KEY" not in names


OUTPUT = f"{shlex.quote(sys.executable)} -c \"print('x' * (9 << 17))\""

# Each command names its outcome; the hook of these tests looks for the name and does it.
DOES = {
    "go-on": "exit 0",
    "chats": "echo all is well",
    "allows": """echo '{"decision": "allow"}'""",
    "blocks": "echo because of 2 >&2; exit 2",
    "says-block": """echo '{"decision": "block", "reason": "because of JSON"}'""",
    "fails": "echo went wrong >&2; exit 1",
    "odd": """echo '{"decision": "perhaps"}'""",
    "broken-json": """echo '{"decision": "block'""",
    "floods": OUTPUT,
    "hangs": "exit 0",
}
SCRIPT = "\n".join(["told=$(cat)", 'case "$told" in', *(f"*{name}*) {does};;" for name, does in DOES.items()), "esac"])
CHECKS = [SCRIPT, ("bash", {"command": "case $(cat) in *hangs*) sleep 1000;; esac", "timeout": 4})]
WANTED = calls(*(("bash", {"command": f"echo {name} | tee -a ran"}) for name in DOES))


async def test_before_a_call_each_outcome_lets_it_run_or_not_and_a_broken_hook_is_a_no(workspace):
    hook(workspace, PreToolUse=CHECKS)
    ended, told, warned = await run(workspace, WANTED)
    assert (workspace / "ran").read_text().split() == ["go-on", "chats", "allows"]
    assert ended == ["completed"] * 3 + ["rejected"] * 7
    assert told[3:5] == ["because of 2", "because of JSON"]
    for text, why in zip(
        told[5:], ("exit code 1", "perhaps", "not valid", "1048576 bytes", "longer than 4 s"), strict=True
    ):
        assert why in text
    assert len(warned) == 5
    assert all("PreToolUse hook" in text and "bash was not run" in text for text in warned)
    assert "went wrong" in warned[0]


async def test_after_a_call_blocking_replaces_the_text_and_a_broken_hook_leaves_a_note(workspace):
    hook(workspace, PostToolUse=CHECKS)
    ended, told, warned = await run(workspace, WANTED)
    assert (workspace / "ran").read_text().split() == list(DOES)
    assert ended == ["completed"] * 10
    assert told[:5] == [f"exit code 0\n{name}" for name in ("go-on", "chats", "allows")] + [
        "because of 2",
        "because of JSON",
    ]
    for text, name in zip(told[5:], list(DOES)[5:], strict=True):
        assert text.startswith(f"exit code 0\n{name}\n[A hook that checks results ")
    assert len(warned) == 5
    assert all("PostToolUse hook" in text for text in warned)


async def test_a_hook_that_allows_does_not_replace_the_users_yes_and_comes_before_the_question(workspace):
    hook(workspace, PreToolUse="""cat > asked; echo '{"decision": "allow"}'""")
    async with agent(workspace, [call("bash", command="touch ran"), say("done")]) as (editor, model):
        editor.answers = ["Trust"]
        running = editor.start_command("hel.ask", ASK)
        question = await editor.question(1)
        assert (workspace / "asked").exists()
        assert "touch ran" in question.message
        assert statuses(await running.result) == ["rejected"]
    assert not (workspace / "ran").exists()


async def test_a_call_that_is_refused_before_runs_no_hook(workspace):
    hook(workspace, PreToolUse="cat >> told.jsonl", PostToolUse="cat >> told.jsonl")
    (workspace / ".hel" / "permissions.json").write_text('{"deny": ["list_files"]}')
    wanted = calls(
        ("read_fiel", {}),
        ("read_file", {"wrong": 1}),
        ("read_file", "{"),
        ("write_file", {"path": "a.txt", "content": "x"}),
        ("bash", {"command": "true"}),
        ("list_files", {}),
    )
    ended, _, _ = await run(workspace, wanted, options={"access": "read-only"})
    assert set(ended) == {"failed", "rejected"}
    assert not (workspace / "told.jsonl").exists()


async def test_hooks_run_in_the_order_of_the_file_and_the_first_that_blocks_ends_it(workspace):
    say_and = "cat > /dev/null; echo {} >> order; exit {}"
    hook(
        workspace,
        PreToolUse=[
            ("write", say_and.format("other", 2)),
            ("", say_and.format("first", 0)),
            ("bash|x", say_and.format("second", 2)),
            ("bash", say_and.format("third", 0)),
        ],
        PostToolUse=say_and.format("after", 0),
    )
    ended, _, _ = await run(workspace, call("bash", command="true"))
    assert ended == ["rejected"]
    assert (workspace / "order").read_text().split() == ["first", "second"]


async def test_hooks_that_are_not_trusted_do_not_run_and_the_user_is_told_once(workspace):
    hook(workspace, PreToolUse=("bash", "touch hooked; exit 2"), PostToolUse="touch after")
    wanted = call("bash", command="true")
    async with agent(workspace, [wanted, say("done")] * 3, options=AUTO) as (editor, model):
        editor.answers = ["Don't trust"]
        first = await editor.command("hel.ask", ASK)
        second = await editor.command("hel.ask", ASK)
        [question] = editor.questions
        assert question.actions == ["Don't trust", "Trust"]
        assert "PreToolUse of bash: touch hooked; exit 2" in question.message
        assert "PostToolUse: touch after" in question.message
        [warning] = warnings(editor)
        assert "not trusted" in warning
        assert statuses(first) + statuses(second) == ["completed"] * 2
        assert not (workspace / "hooked").exists()

        hook(workspace, PreToolUse=("bash", "touch hooked; exit 2"))
        editor.answers = ["Trust"]
        third = await editor.command("hel.ask", ASK)
        assert statuses(third) == ["rejected"]
        assert (workspace / "hooked").exists()
    async with agent(workspace, [wanted, say("done")], options=AUTO) as (editor, model):
        assert statuses(await editor.command("hel.ask", ASK)) == ["rejected"]
        assert editor.questions == []


async def test_what_was_shown_runs_even_if_the_file_changes_in_the_turn(workspace):
    hook(workspace, PreToolUse=("bash", "touch shown"))
    change = "sed -i s/shown/hidden/ .hel/hooks.json"
    ended, _, _ = await run(workspace, calls(("bash", {"command": change}), ("bash", {"command": "true"})))
    assert ended == ["completed"] * 2
    assert "hidden" in (workspace / ".hel" / "hooks.json").read_text()
    assert (workspace / "shown").exists()
    assert not (workspace / "hidden").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"hooks": {\n  "PreToolUse": [}', "line 2, column 18"),
        ('{"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}', "command: Field required"),
        ('{"hooks": {"PreTool": []}}', "line 1, column 12: PreTool is no event"),
        ('{"hooks": {"PreToolUse": [{"matcher": "(", "hooks": []}]}}', "line 1, column 39: '(' is not a regular"),
        ('{"hooks": {"PreToolUse": [{"hooks": [{"type": "http", "command": "x"}]}]}}', "type: Input should be"),
    ],
)
async def test_a_file_that_cannot_be_used_is_told_of_and_nothing_of_it_runs(workspace, text, told):
    (workspace / ".hel").mkdir()
    (workspace / ".hel" / "hooks.json").write_text(text)
    async with agent(workspace, [call("bash", command="true"), say("done")], options=AUTO) as (editor, model):
        assert statuses(await editor.command("hel.ask", ASK)) == ["completed"]
        assert editor.questions == []
        [warning] = warnings(editor)
    assert str(workspace / ".hel" / "hooks.json") in warning
    assert told in warning


async def test_a_cancel_ends_a_hook_with_all_it_started_and_the_call_does_not_run(workspace):
    script = "echo $$ > pid; sleep 1000 & echo $! >> pid; mv pid pids; wait"
    hook(workspace, PreToolUse=script)
    async with agent(workspace, [call("bash", command="touch ran"), say("done")], options=AUTO) as (editor, model):
        editor.answers = trusting
        running = editor.start_command("hel.ask", ASK)
        await appears(workspace / "pids")
        pids = [int(pid) for pid in (workspace / "pids").read_text().split()]
        assert all(map(psutil.pid_exists, pids))
        began = time.monotonic()
        assert await editor.command("hel.cancel") == {"cancelled": True}
        assert statuses(await running.result) == ["cancelled"]
        assert time.monotonic() - began < 5
        await gone(pids)
    assert not (workspace / "ran").exists()


async def test_an_edit_that_is_made_is_reported_even_if_the_turn_is_cancelled_in_the_hook_after_it(workspace):
    (workspace / "a.txt").write_text("alpha\n")
    hook(workspace, PostToolUse=("search_replace", "touch looking; sleep 1000"))
    edit = call("search_replace", path="a.txt", search="alpha", replace="omega")
    async with agent(workspace, [edit, say("done")], options=AUTO) as (editor, model):
        editor.answers = trusting
        buffer = editor.open(workspace / "a.txt")
        running = editor.start_command("hel.ask", ASK)
        await appears(workspace / "looking")
        await editor.command("hel.cancel")
        result = await running.result
        assert buffer.text == "omega\n"
        assert [report["applied"] for report in result["edits"]] == [True]
        assert statuses(result) == ["completed"]
        assert (await editor.command("hel.undo"))["reverted"] == [buffer.uri]
        assert buffer.text == "alpha\n"


async def test_a_hook_sees_a_call_of_an_mcp_tool_with_its_arguments(workspace):
    hook(workspace, PreToolUse=("^mcp__inventory__", "cat > told.jsonl; echo no ports >&2; exit 2"))
    server = {"command": sys.executable, "args": ["-m", "hel_lsp.demo.inventory"], "alwaysLoad": True}
    (workspace / ".hel" / "mcp.json").write_text(json.dumps({"servers": {"inventory": server}}))
    ended, told, _ = await run(workspace, call("mcp__inventory__lookup_port", service="api"))
    assert (ended, told) == (["rejected"], ["no ports"])
    [seen] = records(workspace / "told.jsonl")
    assert (seen["tool"], seen["arguments"]) == ("mcp__inventory__lookup_port", {"service": "api"})
