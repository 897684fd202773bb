/** A running turn and what a person can do about it: cancel, answer late, undo; and what becomes of it when the server dies. */

import assert from "node:assert/strict";
import { scenario } from "./scenario";
import { answer, changed, config, lookUpPort, setPort } from "./scripts";
import { serverProcess } from "./server";

scenario(
  "the notification's Cancel ends a turn while the model streams",
  { replies: [{ text: "Let me think about that", hold: true }, { text: "Here I am <b>again</b>." }] },
  async ({ editor }) => {
    await editor.ask("take your time");
    await editor.transcript.getByText("Let me think about that").waitFor();
    await editor.screenshot("streaming");
    await editor.button("step 1", "Cancel").click();
    await editor.transcript.getByText(/^cancelled · 1 step/).waitFor();
    await editor.button("step 1", "Cancel").waitFor({ state: "detached" });
    await editor.ask("and now?");
    await editor.transcript.getByText("Here I am <b>again</b>.").waitFor();
  },
);

scenario(
  "a question whose notification is out of sight is asked again from the status bar",
  { replies: [setPort, answer] },
  async ({ editor }) => {
    await editor.ask("set the port");
    await editor.button("search_replace", "Allow once").waitFor();
    await editor.page.keyboard.press("Escape");
    await editor.button("search_replace", "Allow once").waitFor({ state: "detached" });
    await editor.status.filter({ hasText: "waiting for your answer" }).click();
    await editor.dialogButton("search_replace", "Allow once").waitFor();
    await editor.screenshot("asked again");
    await editor.dialogButton("search_replace", "Allow once").click();
    await editor.shows(changed);
    await editor.status.filter({ hasText: "waiting" }).waitFor({ state: "detached" });
  },
);

scenario(
  "with access set to auto nothing is asked, and Undo Last Turn takes the edit back",
  { replies: [setPort, answer] },
  async ({ editor }) => {
    await editor.run("Hel: Set Access Level…");
    await editor.pick("auto");
    await editor.ask("set the port");
    await editor.shows(changed);
    await editor.transcript.getByText(/^done · 2 steps/).waitFor();
    await editor.run("Hel: Undo Last Turn");
    await editor.shows(config);
    await editor.run("Hel: New Session");
    await editor.transcript.getByText("Ask for a change").waitFor();
  },
);

scenario(
  "the picker lists the MCP server and its tools, and the run log can be read",
  { replies: [...lookUpPort.slice(0, 1), { text: "Loaded." }], inventory: true },
  async ({ editor }) => {
    await editor.ask("load the tools");
    await editor.button("Trust this project", "Trust").click();
    await editor.transcript.getByText("Loaded.").waitFor();
    await editor.run("Hel: MCP Servers and Tools");
    await editor.row("mcp__inventory__lookup_port").waitFor();
    await editor.screenshot("tools");
    await editor.page.keyboard.press("Escape");
    await editor.run("Hel: Show Run Log");
    await editor.tab(".jsonl").waitFor();
  },
);

scenario(
  "when the server dies in mid-turn the transcript says so, and the next question reaches a new one",
  { replies: [{ text: "Let me think about that", hold: true }, { text: "Here I am again." }] },
  async ({ editor, mark }) => {
    await editor.ask("take your time");
    await editor.transcript.getByText("Let me think about that").waitFor();
    const { pid } = await serverProcess(mark);
    process.kill(pid, "SIGKILL");
    await editor.transcript.getByText("The server stopped before the turn had ended.").waitFor();
    await serverProcess(mark, pid);
    await editor.ask("and now?");
    await editor.transcript.getByText("Here I am again.").waitFor();
  },
);

scenario(
  "the key from the secret storage reaches the server's environment",
  { replies: [] },
  async ({ editor, mark }) => {
    const { pid } = await serverProcess(mark);
    await editor.run("Hel: Set API Key");
    await editor.type("Hel: API Key", "not-a-real-key");
    const { environment } = await serverProcess(mark, pid);
    assert.ok(environment.includes("HEL_API_KEY=not-a-real-key"));
  },
);
