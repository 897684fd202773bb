/** The main job in a real VS Code: asked from the palette, answered with buttons, seen in the buffer, undone. */

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readmePicture } from "./places";
import { scenario } from "./scenario";
import { answer, changed, config, lookUpPort, prompt, setPort } from "./scripts";

scenario(
  "the port is looked up over MCP, lands in the buffer, and one undo takes it back",
  { replies: [...lookUpPort, setPort, answer], inventory: true },
  async ({ editor, model }) => {
    await editor.shows(config);
    await editor.ask(prompt);
    await editor.button("Trust this project", "Trust").click();
    await editor.button("list_services", "Allow once").click();
    await editor.button("lookup_port", "Allow once").click();
    await editor.button("search_replace", "Allow once").waitFor();
    await editor.tab("search_replace").waitFor();
    await editor.transcript.getByText("search_replace").waitFor();
    await editor.page.mouse.move(600, 400);
    await editor.screenshot("approval");
    if (readmePicture !== "") {
      await mkdir(dirname(readmePicture), { recursive: true });
      await editor.page.screenshot({ path: readmePicture });
    }

    await editor.button("search_replace", "Allow once").click();
    await editor.tab("search_replace").waitFor({ state: "detached" });
    await editor.shows(changed);
    await editor.transcript.getByText("config.ini says so now").waitFor();
    await editor.transcript.getByText(/^done · 5 steps/).waitFor();
    await editor.screenshot("answer");

    await editor.page.keyboard.press("Control+z");
    await editor.shows(config);
    await editor.transcript.getByRole("button", { name: "config.ini:2" }).click();
    await editor.page.locator(".statusbar-item", { hasText: "Ln 2, Col 1" }).waitFor();

    const requests = await model.requests();
    assert.equal(requests.length, 5);
    assert.ok(requests[3]?.messages.some(({ role, content }) => role === "tool" && content?.includes("8437")));
  },
);

scenario(
  "a rejected edit leaves the buffer with its unsaved line as it was, and the turn ends well",
  { replies: [setPort, { text: "Then I leave it." }] },
  async ({ editor, model }) => {
    await editor.typeAtEnd("retries=3");
    await editor.ask("set the port");
    await editor.button("search_replace", "Reject").click();
    await editor.transcript.getByText("Then I leave it.").waitFor();
    await editor.transcript.getByText(/^done · 2 steps/).waitFor();
    await editor.screenshot("rejected");
    await editor.shows(`${config}retries=3`);
    const requests = await model.requests();
    assert.match(requests[1]?.messages.at(-1)?.content ?? "", /reject/i);
  },
);

scenario(
  "an edit goes into the buffer beside an unsaved line, and both are undone one by one",
  { replies: [setPort, answer] },
  async ({ editor }) => {
    await editor.typeAtEnd("retries=3");
    await editor.ask("set the port");
    await editor.button("search_replace", "Allow once").click();
    await editor.shows(`${changed}retries=3`);
    await editor.transcript.getByText(/^done · 2 steps/).waitFor();
    await editor.page.keyboard.press("Control+z");
    await editor.shows(`${config}retries=3`);
    await editor.page.keyboard.press("Control+z");
    await editor.shows(config);
  },
);

scenario(
  "what is typed while the question is open stays, and the edit lands beside it",
  { replies: [setPort, answer] },
  async ({ editor }) => {
    await editor.ask("set the port");
    await editor.button("search_replace", "Allow once").waitFor();
    await editor.tab("search_replace").waitFor();
    await editor.tab("config.ini").first().click();
    await editor.typeAtEnd("retries=3");
    await editor.page.keyboard.press("Control+b");
    await editor.button("search_replace", "Allow once").click();
    await editor.shows(`${changed}retries=3`);
    // With the side bar closed, the answer comes as a notification.
    await editor.button("config.ini says so now", "Show Transcript").click();
    await editor.transcript.getByText(/^done · 2 steps/).waitFor();
  },
);

scenario(
  "the agent can have an unsaved buffer saved",
  {
    replies: [
      { tool_calls: [{ name: "load_mcp_tool", arguments: { names: ["editor__save"] } }] },
      { tool_calls: [{ name: "editor__save", arguments: { paths: ["config.ini"] } }] },
      { text: "Saved." },
    ],
    settings: { "hel.access": "auto" },
  },
  async ({ editor, workspace }) => {
    await editor.typeAtEnd("retries=3");
    await editor.ask("save it");
    await editor.transcript.getByText("Saved.").waitFor();
    assert.equal(await readFile(join(workspace, "config.ini"), "utf8"), `${config}retries=3`);
  },
);
