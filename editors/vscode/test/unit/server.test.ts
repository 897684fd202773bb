/** Where the server is looked for, and in which order. */

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { findServer } from "../../src/server";

async function inFolder(files: readonly string[], body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "hel-find-"));
  try {
    for (const file of files) {
      await mkdir(dirname(join(folder, file)), { recursive: true });
      await writeFile(join(folder, file), "", { mode: file.endsWith(".txt") ? 0o644 : 0o755 });
    }
    await body(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const all = ["project/.venv/bin/hel-lsp", "bin/hel-lsp", "bin/uvx"];

function places(folder: string) {
  return { setting: "", folders: [join(folder, "project")], path: join(folder, "bin"), platform: "linux" as const };
}

test("the setting comes before everything else", async () => {
  await inFolder(all, async (folder) => {
    const found = await findServer({ ...places(folder), setting: "/opt/hel-lsp" });
    assert.deepEqual(found, { command: "/opt/hel-lsp", args: [] });
  });
});

test("the workspace's environment comes before PATH, PATH before uvx", async () => {
  for (const [first, args] of [
    ["project/.venv/bin/hel-lsp", []],
    ["bin/hel-lsp", []],
    ["bin/uvx", ["hel-lsp"]],
  ] as const) {
    await inFolder(all.slice(all.indexOf(first)), async (folder) => {
      assert.deepEqual(await findServer(places(folder)), { command: join(folder, first), args });
    });
  }
});

test("without folders, as in a workspace that is not trusted, nothing of the workspace is taken", async () => {
  await inFolder(["project/.venv/bin/hel-lsp"], async (folder) => {
    assert.equal(await findServer({ ...places(folder), folders: [] }), undefined);
  });
});

test("on Windows the scripts have other names", async () => {
  await inFolder(["project/.venv/Scripts/hel-lsp.exe"], async (folder) => {
    const found = await findServer({ ...places(folder), platform: "win32" });
    assert.equal(found?.command, join(folder, "project/.venv/Scripts/hel-lsp.exe"));
  });
});
