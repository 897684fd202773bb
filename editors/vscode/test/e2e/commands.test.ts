/** The other ways to ask, and the settings. */

import assert from "node:assert/strict";
import type { Model } from "./model";
import { scenario } from "./scenario";
import { answer, changed, setPort } from "./scripts";

const invalid = '{\n  "host": "localhost",\n  "port": 7000,\n}\n';

async function lastPrompt(model: Model): Promise<string> {
  const messages = (await model.requests()).at(-1)?.messages ?? [];
  return messages.findLast(({ role }) => role === "user")?.content ?? "";
}

scenario(
  "a question about the selection and one about a problem take the place along",
  {
    replies: [{ text: "It is the port." }, { text: "The last comma is one too many." }],
    file: { name: "config.json", text: invalid },
  },
  async ({ editor, model }) => {
    await editor.shows(invalid);
    await editor.typeAtEnd("");
    await editor.page.keyboard.press("ArrowUp");
    await editor.page.keyboard.press("ArrowUp");
    await editor.page.keyboard.press("Shift+End");
    await editor.run("Hel: Ask About Selection");
    await editor.type("Hel: Ask About Selection", "what is this?");
    await editor.transcript.getByText("It is the port.").waitFor();
    const asked = await lastPrompt(model);
    assert.match(asked, /what is this\?/);
    assert.match(asked, /"port": 7000,/);
    assert.doesNotMatch(asked, /localhost/);

    await editor.page.locator("#status\\.problems", { hasText: /^\s*1/ }).waitFor();
    await editor.run("Hel: Fix This Problem");
    await editor.transcript.getByText("The last comma is one too many.").waitFor();
    assert.match(await lastPrompt(model), /Fix this problem: Trailing comma/);
  },
);

scenario(
  "a text that was never saved can be asked about, too",
  { replies: [{ text: "It is a poem." }] },
  async ({ editor, model }) => {
    await editor.run("File: New Untitled Text File");
    await editor.tab("Untitled-1").waitFor();
    await editor.page.keyboard.type("roses are red");
    await editor.page.keyboard.press("Shift+Home");
    await editor.run("Hel: Ask About Selection");
    await editor.type("Hel: Ask About Selection", "what is this?");
    await editor.transcript.getByText("It is a poem.").waitFor();
    assert.match(await lastPrompt(model), /roses are red/);
  },
);

scenario(
  "a comment that begins with hel: has a code action that asks",
  { replies: [{ text: "Good morning." }], file: { name: "config.ini", text: "# hel: say good morning\n" } },
  async ({ editor, model }) => {
    await editor.typeAtEnd("");
    await editor.page.keyboard.press("Control+Home");
    await editor.page.locator(".codicon-gutter-lightbulb, .lightBulbWidget").first().waitFor();
    await editor.page.keyboard.press("Control+.");
    await editor.page.locator(".action-widget .monaco-list-row", { hasText: "Ask hel: say good morning" }).click();
    await editor.transcript.getByText("Good morning.").waitFor();
    await editor.transcript.getByRole("heading", { name: "say good morning" }).waitFor();
    assert.match(await lastPrompt(model), /say good morning/);
  },
);

scenario(
  "a setting that is changed while the server runs counts at once, and a wrong one is named",
  { replies: [setPort, answer] },
  async ({ editor }) => {
    await editor.set({ "hel.access": "auto", "hel.limits.maxSteps": "many" });
    await editor.page.locator(".notification-list-item", { hasText: "limits.maxSteps" }).first().waitFor();
    await editor.ask("set the port");
    await editor.shows(changed);
  },
);
