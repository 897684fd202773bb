"""Skills: named in the system text, loaded by the model, and reported where they cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hel_lsp.demo import task
from tests.lsp.agent import agent, call, say, tool_names, tool_results

ASK = {"prompt": "go", "wait": True}


def skill(workspace: Path, folder: str, text: str) -> Path:
    file = workspace / folder / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


async def test_skills_are_named_in_the_system_text_and_loaded_into_the_conversation(workspace):
    release = '---\nname: release\ndescription: >\n  How to cut\n  a release: "steps".\n---\n\n# Steps\n\n1. Tag it.\n'
    skill(workspace, ".hel/skills/release", release)
    skill(workspace, ".agents/skills/on", "---\nname: on\ndescription: 2024-01-01\nlicense: MIT\n---\nBe on call.\n")
    loads = [call("load_skill", name="release"), call("load_skill", name="on"), call("load_skill", name="off")]
    async with agent(workspace, [*loads, say("done")]) as (editor, model):
        result = await editor.command("hel.ask", ASK)
        assert editor.questions == []
    system = model.requests[0]["messages"][0]["content"]
    assert 'release: How to cut a release: "steps".' in system
    assert "on: 2024-01-01" in system
    assert "Tag it" not in system
    first, second, third = tool_results(model.requests[3])
    assert first == "# Steps\n\n1. Tag it."
    assert second == "Files that belong to this skill are in .agents/skills/on.\n\nBe on call."
    assert "no skill named off" in third
    assert [made["status"] for made in result["toolCalls"]] == ["completed", "completed", "failed"]


async def test_the_loader_is_offered_after_that_of_mcp_tools_and_only_where_there_are_skills(workspace):
    task.lay_out(workspace)
    async with agent(workspace, [say("one"), say("two")]) as (editor, model):
        editor.answers = ["Trust"]
        await editor.command("hel.ask", ASK)
        skill(workspace, ".hel/skills/a", "---\nname: a\ndescription: b\n---\nc\n")
        await editor.command("hel.newSession")
        await editor.command("hel.ask", ASK)
    assert "load_skill" not in tool_names(model.requests[0])
    assert tool_names(model.requests[1])[-2:] == ["load_mcp_tool", "load_skill"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "---\nname: a\ndescription: use when: it rains\n---\n",
            "line 3, column 22: mapping values are not allowed here. A text with a colon in it needs quotes.",
        ),
        ("---\nname: [a\n---\n", "line 2, column 9"),
        ("---\nname: a\n---\nbody\n", "needs a description"),
        ("---\nname: [a]\ndescription: b\n---\n", "needs a name"),
        ("no front matter\n", "needs a name"),
        ("---\nname: a\ndescription: b\n", "needs a name"),
        ("---\n- a\n---\n", "needs a name"),
        ("---\n" + "[" * 5000 + "\n---\n", "line "),
        ("---\nname: a\0\n---\n", "NUL"),
    ],
)
async def test_a_skill_that_cannot_be_used_is_reported_and_absent(workspace, text, fault):
    file = skill(workspace, ".hel/skills/broken", text)
    async with agent(workspace, [say("done")]) as (editor, model):
        assert (await editor.command("hel.ask", ASK))["text"] == "done"
        told = [shown.message for shown in editor.messages if str(file) in shown.message]
    assert len(told) == 1
    assert fault in told[0]
    assert "load_skill" not in tool_names(model.requests[0])


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
async def test_a_skill_that_leads_out_of_the_workspace_is_not_read(workspace, tmp_path):
    (tmp_path / "secret").write_text("---\nname: a\ndescription: b\n---\nsecret\n")
    (workspace / ".hel" / "skills" / "out").mkdir(parents=True)
    (workspace / ".hel" / "skills" / "out" / "SKILL.md").symlink_to(tmp_path / "secret")
    async with agent(workspace, [say("done")]) as (editor, model):
        await editor.command("hel.ask", ASK)
        assert any("leads out of the workspace" in shown.message for shown in editor.messages)
    assert "load_skill" not in tool_names(model.requests[0])


async def test_of_two_skills_with_one_name_the_projects_own_counts_and_the_other_is_reported(workspace):
    skill(workspace, ".hel/skills/a", "---\nname: same\ndescription: first\n---\n")
    skill(workspace, ".agents/skills/b", "---\nname: same\ndescription: second\n---\n")
    async with agent(workspace, [say("done")]) as (editor, model):
        await editor.command("hel.ask", ASK)
        assert any("a skill named same already" in shown.message for shown in editor.messages)
    system = model.requests[0]["messages"][0]["content"]
    assert "same: first" in system
    assert "second" not in system


async def test_the_loader_can_be_disabled_like_any_tool(workspace):
    skill(workspace, ".hel/skills/a", "---\nname: a\ndescription: b\n---\nc\n")
    options = {"tools": {"disabled": ["load_skill"]}}
    async with agent(workspace, [say("done")], options=options) as (editor, model):
        await editor.command("hel.ask", ASK)
    assert "load_skill" not in tool_names(model.requests[0])
    assert "Skills" not in model.requests[0]["messages"][0]["content"]
