/** What is on the disk after an edit of the agent and a save, byte by byte, and again after its undo. */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitUntil } from "./editor";
import { scenario } from "./scenario";

interface Edit {
  before: string;
  search: string;
  replace: string;
  after: string;
}

const bom = "\ufeff";
const first = { name: "lf.txt", text: "a\nb\nc\n" };
const notOpen = "not-open.txt";

const edits: Record<string, Edit> = {
  [first.name]: { before: first.text, search: "a\nb", replace: "A\nn\nB", after: "A\nn\nB\nc\n" },
  "crlf.txt": { before: "a\r\nb\r\nc\r\n", search: "a\nb", replace: "A\nn\nB", after: "A\r\nn\r\nB\r\nc\r\n" },
  "no-final-newline.txt": { before: "x\r\na", search: "a", replace: "b\nc", after: "x\r\nb\r\nc" },
  "bom.txt": {
    before: `${bom}a\r\nb\r\n`,
    search: "a\nb",
    replace: "A\nn\nB",
    after: `${bom}A\r\nn\r\nB\r\n`,
  },
  "emoji.txt": { before: "😀😀 e\u0301 x\n", search: "x", replace: "y😀", after: "😀😀 e\u0301 y😀\n" },
  "tabs.txt": {
    before: "\tif x:\n\t\ty \t\n",
    search: "\t\ty",
    replace: "\t\tz\n\t\t\tw",
    after: "\tif x:\n\t\tz\n\t\t\tw \t\n",
  },
  [notOpen]: { before: `${bom}😀\ta\r\nb`, search: "\ta\nb", replace: "\tA\nB", after: `${bom}😀\tA\r\nB` },
};

/** Each file of the table, with one character for each byte. */
function bytes(which: "before" | "after"): Record<string, string> {
  return Object.fromEntries(
    Object.entries(edits).map(([name, edit]) => [name, Buffer.from(edit[which]).toString("latin1")]),
  );
}

async function onDisk(workspace: string): Promise<Record<string, string>> {
  const read = Object.keys(edits).map(async (name) => [name, await readFile(join(workspace, name), "latin1")] as const);
  return Object.fromEntries(await Promise.all(read));
}

/** Waits until every file has the bytes that are expected. */
async function saved(workspace: string, expected: Record<string, string>): Promise<void> {
  await waitUntil(
    () => onDisk(workspace),
    (found): found is Record<string, string> => Object.keys(edits).every((name) => found[name] === expected[name]),
    `the files to be saved as ${JSON.stringify(expected)}`,
  );
}

scenario(
  "saved bytes are those that were meant, and an undo gives back the first ones",
  {
    replies: [
      {
        tool_calls: Object.entries(edits).map(([path, { search, replace }]) => ({
          name: "search_replace",
          arguments: { path, search, replace },
        })),
      },
      { text: "Each is edited." },
    ],
    file: first,
    settings: { "hel.access": "auto" },
    async prepare(workspace) {
      for (const [name, { before }] of Object.entries(edits)) {
        await writeFile(join(workspace, name), before);
      }
    },
  },
  async ({ editor, workspace }) => {
    for (const name of Object.keys(edits).filter((name) => name !== first.name && name !== notOpen)) {
      await editor.openFile(name);
      await editor.tab(name).waitFor();
    }
    assert.equal(await editor.tab(notOpen).count(), 0);

    await editor.ask("edit each");
    await editor.transcript.getByText(/^done · 2 steps/).waitFor();
    assert.deepEqual(await onDisk(workspace), bytes("before"), "nothing is saved before the user does");
    await editor.run("File: Save All");
    await saved(workspace, bytes("after"));

    await editor.run("Hel: Undo Last Turn");
    await editor.page.locator(".notification-list-item", { hasText: "Hel: undone in" }).waitFor();
    await editor.run("File: Save All");
    await saved(workspace, bytes("before"));
  },
);
