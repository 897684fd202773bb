/** A session is resumed: from the list, by a server that has not seen it, with its conversation in the transcript. */

import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import * as places from "./places";
import { start } from "./processes";
import { type Scenario, scenario } from "./scenario";
import { serverProcess } from "./server";

const lookAndSay = [
  { text: "I look.", tool_calls: [{ name: "read_file", arguments: { path: "config.ini" } }] },
  { text: "The port is `7000`." },
];

/** Waits until the server has said what it offers. */
async function isIdle({ editor }: Scenario): Promise<void> {
  await editor.status.and(editor.page.locator("[aria-label*='Hel is idle']")).waitFor();
}

async function restart(scene: Scenario): Promise<void> {
  const { pid } = await serverProcess(scene.mark);
  await scene.editor.run("Hel: Restart Server");
  await serverProcess(scene.mark, pid);
  await isIdle(scene);
}

scenario(
  "a session is picked from the list, shown as it was, and gone on with",
  { replies: [...lookAndSay, { text: "It does." }, { text: "Here again." }] },
  async (scene) => {
    const { editor, model } = scene;
    await isIdle(scene);
    await editor.run("Hel: Resume Session…");
    await editor.page.locator(".notification-list-item", { hasText: "there is no session to resume" }).waitFor();

    await editor.ask("what is the port?");
    await editor.transcript.getByText(/^done · 2 steps/).waitFor();
    await editor.run("Hel: New Session");
    await editor.ask("does $(bug) mean a bug?");
    await editor.transcript.getByText(/^done · 1 step/).waitFor();
    await restart(scene);

    await editor.run("Hel: Resume Session…");
    await editor.row("what is the port?").waitFor();
    const rows = await editor.page.locator(".quick-input-list .monaco-list-row").allTextContents();
    assert.match(rows[0] ?? "", /^does \$\(bug\) mean a bug\?.*20\d\d.*, 1 turn/);
    assert.match(rows[1] ?? "", /^what is the port\?.*20\d\d.*, 1 turn/);
    await editor.screenshot("sessions");
    await editor.pick("what is the port?");

    const { transcript } = editor;
    await transcript.getByRole("heading", { name: "what is the port?" }).waitFor();
    assert.equal(await transcript.getByText("It does.").count(), 0);
    await editor.screenshot("resumed");
    const shown = (await transcript.locator("article").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " "));
    assert.deepEqual(shown, ["what is the port? I look. read_file config.ini The port is 7000."]);

    await editor.ask("and now?");
    await transcript.getByText("Here again.").waitFor();
    assert.equal(await transcript.locator("article").count(), 2);
    const said = (await model.requests()).at(-1)?.messages.filter(({ role }) => role === "user") ?? [];
    assert.equal(said.length, 2);
    assert.match(said[0]?.content ?? "", /what is the port\?/);
  },
);

const hold = `
import sys
from hel_lsp import platforms

with open(sys.argv[1], "r+b") as file:
    assert platforms.lock(file.fileno())
    print("locked", flush=True)
    sys.stdin.read()
`;

scenario(
  "a session that another process has is refused with the reason, and the transcript stays",
  { replies: [{ text: "Good morning." }] },
  async (scene) => {
    const { editor, mark } = scene;
    await editor.ask("say good morning");
    await editor.transcript.getByText(/^done · 1 step/).waitFor();
    await restart(scene);

    const sessions = join(mark.slice(mark.indexOf("=") + 1), "sessions");
    const files = await readdir(sessions, { recursive: true });
    const file = files.find((name) => name.endsWith(".jsonl")) ?? "";
    const { end } = await start([places.python, "-c", hold, join(sessions, file)], /^locked$/);
    try {
      await editor.run("Hel: Resume Session…");
      await editor.pick("say good morning");
      await editor.page.locator(".notification-list-item", { hasText: "is in use in another editor" }).waitFor();
      await editor.transcript.getByText("Good morning.").waitFor();
    } finally {
      await end();
    }
  },
);
