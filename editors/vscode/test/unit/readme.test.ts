/** README's table of commands, against those that the extension declares. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { test } from "node:test";
import manifest from "../../package.json";

test("README lists the commands of the palette, in its order", async () => {
  const readme = await readFile(resolve(import.meta.dirname, "../../../README.md"), "utf8");
  const listed = [...readme.matchAll(/^\| (Hel: .*?) \|/gm)].map(([, title]) => title);
  const declared = manifest.contributes.commands.map(({ category, title }) => `${category}: ${title}`);
  assert.deepEqual(listed, declared);
});
