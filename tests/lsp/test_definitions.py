"""Definitions of MCP tools in requests: when they join, and that none of them makes a provider refuse a request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.agent import agent, call, calls, records, say, tool_names, tool_results
from tests.lsp.personalities import NEVER
from tests.lsp.test_anthropic import ANTHROPIC, streamed
from tests.lsp.test_hooks import hook, trusting
from tests.lsp.test_mcp_servers import declare, last_prompt, received, shown, system
from tests.mcp.workspace import ECHO, scripted, scripted_from

ASK = {"prompt": "go", "wait": True}
AUTO = {"access": "auto"}
EVENTS = {"hel": {"events": True}}
USE = call("mcp__s__echo", n=1)
LOAD = call("load_mcp_tool", names=["mcp__s__echo"])


def mcp(request: Mapping[str, Any]) -> list[str]:
    """The tools of a request that are not built in."""
    return [name for name in tool_names(request) if name.startswith(("mcp__", "load_"))]


def notices(editor: Any) -> list[str]:
    return [event["message"] for event in editor.sent("hel/event") if event["kind"] == "notice"]


# ------------------------------------------------------------------ servers that come later


@pytest.mark.parametrize("before", ["no file", "not trusted", "dismissed", "no servers", "disabled"])
async def test_a_session_that_began_without_servers_gets_what_a_reload_starts(workspace, before):
    server = {"off": {**scripted(), "disabled": True}} if before == "disabled" else {"s": scripted()}
    if before != "no file":
        declare(workspace, **({} if before == "no servers" else server))
    (workspace / ".hel" / "skills" / "tidy").mkdir(parents=True)
    (workspace / ".hel" / "skills" / "tidy" / "SKILL.md").write_text(
        "---\nname: tidy\ndescription: Tidies.\n---\nTidy.\n"
    )
    first = {"not trusted": "Don't trust", "dismissed": None}
    async with agent(workspace, [say("1"), LOAD, USE, say("2"), say("3")], options=AUTO) as (editor, model):
        editor.answers = [first[before]] if before in first else []
        await editor.command("hel.ask", ASK)
        declare(workspace, s=scripted())
        editor.answers = ["Trust"]
        assert shown(await editor.command("hel.reloadMcp")) == {"s": ("ready", ["mcp__s__echo"])}
        await editor.command("hel.ask", ASK)
        await editor.command("hel.ask", ASK)

    assert mcp(model.requests[0]) == ["load_skill"]
    assert mcp(model.requests[1]) == ["load_mcp_tool", "load_skill"]
    told = last_prompt(model.requests[1])
    assert "mcp__s__echo: Say it again." in told
    assert "load_mcp_tool" in told
    assert mcp(model.requests[2]) == ["load_mcp_tool", "load_skill", "mcp__s__echo"]
    assert tool_results(model.requests[3])[1:] == ['{"n": 1}']
    assert {system(request) for request in model.requests} == {system(model.requests[0])}
    assert last_prompt(model.requests[4]) == last_prompt(model.requests[0])


async def test_what_joins_later_is_told_within_the_budget_of_the_catalogue(workspace):
    tools = [{**ECHO, "name": f"t{number}"} for number in range(500)]
    async with agent(workspace, [say("1"), say("2")], options={"mcp": {"catalogueBudget": 2000}}) as (editor, model):
        await editor.command("hel.ask", ASK)
        declare(workspace, s=scripted(tools=tools, instructions="Counts."))
        editor.answers = ["Trust"]
        await editor.command("hel.reloadMcp")
        await editor.command("hel.ask", ASK)
    assert "500 MCP tools" in last_prompt(model.requests[1])
    assert "s (500 tools): Counts." in last_prompt(model.requests[1])
    assert len(last_prompt(model.requests[1])) < 2500


async def test_a_session_whose_question_of_trust_was_cancelled_has_its_servers_after_the_next_one(workspace):
    declare(workspace, s=scripted())
    async with agent(workspace, [say("1")]) as (editor, model):
        editor.answers = [NEVER, "Trust"]
        asked = editor.start_command("hel.ask", ASK)
        await editor.question()
        await editor.command("hel.cancel")
        await asked.result
        await editor.command("hel.ask", ASK)
    assert mcp(model.requests[0]) == ["load_mcp_tool"]


async def test_what_is_always_loaded_joins_when_its_server_is_ready_behind_what_was_loaded_before(workspace):
    tools = [{**ECHO, "name": "late"}, {**ECHO, "name": "other"}]
    late = {**scripted(start_when=str(workspace / "gate"), tools=tools), "alwaysLoad": ["late"]}
    declare(workspace, late=late, s=scripted())
    opens = call("bash", command="touch gate")
    waits = call("load_mcp_tool", names=["mcp__late__none"])
    script = [say("0"), LOAD, opens, waits, say("1"), say("2")]
    async with agent(workspace, script, options={**AUTO, "mcp": {"startWait": 0}}) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", ASK)
        while shown(await editor.command("hel.tools"))["s"][0] != "ready":
            pass
        await editor.command("hel.ask", ASK)
        await editor.command("hel.ask", ASK)

    offered = [mcp(request) for request in model.requests]
    loaded = ["load_mcp_tool", "mcp__s__echo"]
    assert offered[:3] == [["load_mcp_tool"], ["load_mcp_tool"], loaded]
    assert offered[4:] == [[*loaded, "mcp__late__late"]] * 2
    assert system(model.requests[5]) == system(model.requests[0])
    assert "new: mcp__late__late" in last_prompt(model.requests[5])


# ------------------------------------------------------------------ parameters with names that providers refuse

ODATA = {
    "type": "object",
    "properties": {
        "$filter": {"type": "string"},
        "_filter": {"type": "integer"},
        "filter[id]": {"type": "object", "properties": {"$deep": {"type": "string"}}},
        "ü" * 70: {"$ref": "#/properties/$filter"},
        "like": {"$ref": "#/properties/filter[id]/properties/$deep"},
        "command": {"type": "string"},
    },
    "required": ["$filter", "like"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_parameter_whose_name_a_provider_refuses_has_another_for_the_model_alone(workspace, tmp_path, provider):
    record, told = tmp_path / "record", tmp_path / "told"
    server = scripted_from(tmp_path / "s.json", record=str(record), tools=[{**ECHO, "inputSchema": ODATA}])
    declare(workspace, s={**server, "alwaysLoad": True})
    hook(workspace, PreToolUse=("mcp__", f"cat >> {told}"), PostToolUse=("mcp__", f"cat >> {told}"))
    given = {"_filter_2": "x eq 1", "like": "a", "filter_id_": {"$deep": "b"}, "_filter": 5, "command": None}
    own = {"$filter": "x eq 1", "like": "a", "filter[id]": {"$deep": "b"}, "_filter": 5}
    script = [calls(("mcp__s__echo", given), ("mcp__s__echo", {**given, "_filter_2": 7})), say("done")]
    script = [streamed(reply) for reply in script] if provider == "anthropic" else script
    async with agent(workspace, script, options=ANTHROPIC if provider == "anthropic" else None) as (editor, model):
        editor.answers = trusting
        result = await editor.command("hel.ask", ASK)
        [(_, diagnostics)] = [
            (item["name"], item["diagnostics"]) for item in (await editor.command("hel.tools"))["servers"]
        ]

    [tool] = [item for item in model.requests[0]["tools"] if "mcp__s__echo" in json.dumps(item)]
    schema = tool["input_schema"] if provider == "anthropic" else tool["function"]["parameters"]
    names = list(schema["properties"])
    assert len(names) == 6
    assert [name for name in names if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name)] == []
    assert schema["required"] == ["_filter_2", "like"]
    assert schema["properties"]["like"] == {"$ref": "#/properties/filter_id_/properties/$deep"}
    assert schema["properties"][names[3]] == {"$ref": "#/properties/_filter_2"}
    assert [report["status"] for report in result["toolCalls"]] == ["completed", "failed"]
    assert [params["arguments"] for params in received(record, "tools/call")] == [own]
    assert [entry["arguments"] for entry in records(told)] == [own, own]
    assert "$filter" in editor.questions[-1].message
    assert "$filter as _filter_2, filter[id] as filter_id_" in diagnostics[0]


# ------------------------------------------------------------------ definitions that are not sent


def huge(name: str = "echo", size: int = 100_000) -> dict[str, Any]:
    return {**ECHO, "name": name, "description": "Huge.\n" + "é" * (size // 2)}


async def test_a_definition_that_is_too_large_is_not_loaded_and_the_loader_says_why(workspace, tmp_path):
    tools = [huge(), {**huge("fits"), "description": "x" * 99_900}]
    declare(workspace, s=scripted_from(tmp_path / "s.json", tools=tools))
    both = call("load_mcp_tool", names=["mcp__s__echo", "mcp__s__fits"])
    script = [both, LOAD, call("load_mcp_tool", query="huge"), USE, say("done")]
    async with agent(workspace, script, options={"model": {"contextWindow": 1_000_000}}) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", ASK)
    first, again, found, used = tool_results(model.requests[4])
    reason = r"mcp__s__echo: not loaded: its definition has 100\d\d\d bytes, and no more than 100000 are sent\."
    assert re.fullmatch(rf"{reason}\nmcp__s__fits: loaded, callable from the next request", first)
    assert re.fullmatch(reason, again)
    assert re.match(reason, found)
    assert "mcp__s__echo is not loaded" in used
    assert "100000" in used
    assert mcp(model.requests[4]) == ["load_mcp_tool", "mcp__s__fits"]


async def test_of_what_is_always_loaded_a_definition_that_is_too_large_is_left_out_and_the_user_told_once(
    workspace, tmp_path
):
    server = scripted_from(tmp_path / "s.json", tools=[huge(), {**ECHO, "name": "small"}])
    declare(workspace, s={**server, "alwaysLoad": True})
    script = [call("list_files"), say("1"), say("2")]
    async with agent(workspace, script, experimental=EVENTS) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", ASK)
        await editor.command("hel.ask", ASK)
        assert len(notices(editor)) == 1
        assert "mcp__s__echo is not loaded: its definition has 100" in notices(editor)[0]
    assert [mcp(request) for request in model.requests] == [["load_mcp_tool", "mcp__s__small"]] * 3


async def test_a_definition_that_has_become_too_large_stays_as_it_was(workspace, tmp_path):
    steps = [{"tools": [huge()]}, {"notify": "notifications/tools/list_changed"}, {"fill": 2}]
    declare(
        workspace, s={**scripted_from(tmp_path / "s.json", tools=[ECHO], calls={"echo": steps}), "alwaysLoad": True}
    )
    async with agent(workspace, [USE, say("1"), USE, say("2")], options=AUTO) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", ASK)
        await editor.command("hel.ask", ASK)
    assert model.requests[3]["tools"] == model.requests[0]["tools"]
    assert tool_results(model.requests[3])[-1] == "xx"


# ------------------------------------------------------------------ definitions that a provider refuses


def refusal(message: str) -> dict[str, Any]:
    return {"status": 400, "body": json.dumps({"error": {"message": message}})}


async def ask_thrice(workspace: Path, script: list[Any], **more: Any) -> tuple[Any, list[Mapping[str, Any]], list[str]]:
    """Two tools of a server, loaded by name in the first request; the results, the requests and the notices."""
    declare(workspace, s=scripted(tools=[ECHO, {**ECHO, "name": "other"}], **more))
    both = call("load_mcp_tool", names=["mcp__s__other", "mcp__s__echo"])
    async with agent(workspace, [both, *script], options=AUTO, experimental=EVENTS) as (editor, model):
        editor.answers = ["Trust"]
        results = [await editor.command("hel.ask", ASK) for _ in range(3)]
        return results, model.requests, notices(editor)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("tools.8.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12", ["other"]),
        ("Invalid 'tools[8].function.parameters': too deep.", ["other"]),
        ("Invalid schema for function 'mcp__s__echo': [] is too short.", ["other"]),
        ("There is something about a schema.", []),
    ],
    ids=["number", "index", "name", "nothing named"],
)
async def test_a_definition_that_the_provider_refuses_costs_itself_alone(workspace, message, left):
    again = call("load_mcp_tool", names=["mcp__s__echo"])
    script = [refusal(message), USE, again, say("1"), say("2"), say("3")]
    results, requests, told = await ask_thrice(workspace, script)
    assert [result["stopReason"] for result in results] == ["end_turn"] * 3
    kept = ["load_mcp_tool", *(f"mcp__s__{name}" for name in left)]
    assert mcp(requests[1]) == ["load_mcp_tool", "mcp__s__other", "mcp__s__echo"]
    assert [mcp(request) for request in requests[2:]] == [kept] * 5
    used, loaded = tool_results(requests[4])[-2:]
    reason = message.split(".")[0]
    assert used.startswith("mcp__s__echo is not loaded")
    assert loaded.startswith("mcp__s__echo: not loaded: ")
    assert reason in used
    assert reason in loaded
    assert reason in "\n".join(told)
    assert len([line for line in told if "is not loaded" in line]) == 2 - len(left)


async def test_definitions_with_which_the_conversation_is_too_long_are_left_out_where_no_compaction_helps(workspace):
    no_summary = say("")
    script = [refusal("This model's maximum context length is 9 tokens."), no_summary, say("1"), say("2"), say("3")]
    results, requests, told = await ask_thrice(workspace, script)
    assert [result["text"] for result in results] == ["1", "2", "3"]
    assert [mcp(request) for request in requests[3:]] == [["load_mcp_tool"]] * 3
    assert "mcp__s__echo is not loaded: The conversation is too long" in "\n".join(told)


async def test_two_definitions_that_are_refused_one_after_the_other_are_both_left_out(workspace):
    script = [refusal("tools.7.custom.input_schema: no"), refusal("tools.7.custom: no"), say("1"), say("2"), say("3")]
    results, requests, told = await ask_thrice(workspace, script)
    assert [result["stopReason"] for result in results] == ["end_turn"] * 3
    assert [mcp(request) for request in requests[3:]] == [["load_mcp_tool"]] * 3
    assert len(told) == 2


async def test_a_refusal_that_is_not_about_definitions_costs_none_of_them_and_comes_at_once(workspace):
    script = [refusal("Your credit balance is too low."), say("2"), say("3")]
    results, requests, told = await ask_thrice(workspace, script)
    assert [result["stopReason"] for result in results] == ["error", "end_turn", "end_turn"]
    assert [mcp(request) for request in requests[1:]] == [["load_mcp_tool", "mcp__s__other", "mcp__s__echo"]] * 3
    assert told == []


async def test_a_refusal_that_stays_without_the_definitions_is_told_and_costs_none_of_them(workspace):
    refused = refusal("This model has no tools.")
    script = [refused, refused, say("2"), say("3")]
    results, requests, _ = await ask_thrice(workspace, script)
    assert "no tools" in results[0]["error"]["message"]
    assert [mcp(request) for request in requests[3:]] == [["load_mcp_tool", "mcp__s__other", "mcp__s__echo"]] * 2


async def test_definitions_that_the_provider_has_taken_are_blamed_no_more(workspace):
    script = [say("1"), refusal("tools.8.custom.input_schema: no"), say("3")]
    results, requests, _ = await ask_thrice(workspace, script)
    assert [result["stopReason"] for result in results] == ["end_turn", "error", "end_turn"]
    assert mcp(requests[3]) == ["load_mcp_tool", "mcp__s__other", "mcp__s__echo"]
