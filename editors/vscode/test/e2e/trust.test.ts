/** Nothing is started from a workspace that is not trusted, not even the server in its own environment. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as places from "./places";
import { scenario } from "./scenario";
import { serverProcess, serverProcesses } from "./server";

scenario(
  "the server of the workspace's own environment is started once the workspace is trusted, and not before",
  {
    replies: [{ text: "Here I am." }],
    asksForTrust: true,
    settings: { "hel.server.path": "" },
    async prepare(workspace) {
      const scripts = join(workspace, ".venv", "bin");
      await mkdir(scripts, { recursive: true });
      const script = `#!/bin/sh\ntouch started\nexec ${places.server} "$@"\n`;
      await writeFile(join(scripts, "hel-lsp"), script, { mode: 0o755 });
    },
  },
  async ({ editor, workspace, mark }) => {
    await editor.run("Hel: Ask…");
    await editor.button("not trusted", "Manage Workspace Trust").waitFor();
    assert.equal(existsSync(join(workspace, "started")), false);
    assert.deepEqual(await serverProcesses(mark), []);

    await editor.button("not trusted", "Manage Workspace Trust").click();
    await editor.page.locator(".workspace-trust-editor .monaco-button", { hasText: /^Trust$/ }).click();
    await serverProcess(mark);
    assert.equal(existsSync(join(workspace, "started")), true);
    await editor.ask("are you there?");
    await editor.transcript.getByText("Here I am.").waitFor();
  },
);
