/** One scenario: a scratch workspace with an MCP server, a scripted model, and the editor; all gone at its end. */

import { copyFile, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Editor, type EditorOptions } from "./editor";
import { type Model, type Reply, startModel } from "./model";
import * as places from "./places";
import { config } from "./scripts";

export interface Scenario {
  editor: Editor;
  model: Model;
  workspace: string;
  /** The variable in the environment of this editor's server that no other has. */
  mark: string;
}

export interface ScenarioOptions {
  replies: readonly Reply[];
  /** The file that is open at the beginning, instead of config.ini, with its text. */
  file?: { name: string; text: string };
  /** Whether the workspace has the inventory, an MCP server. */
  inventory?: boolean;
  asksForTrust?: boolean;
  settings?: EditorOptions["settings"];
  keybindings?: EditorOptions["keybindings"];
  /** Milliseconds. */
  timeout?: number;
  /** Lays out more in the workspace. */
  prepare?: (workspace: string) => Promise<void>;
}

const configFile = { name: "config.ini", text: config };

/** A test in a real editor. When it fails, a picture of the editor is kept beside the other screenshots. */
export function scenario(name: string, options: ScenarioOptions, body: (scenario: Scenario) => Promise<void>): void {
  test(name, { timeout: options.timeout ?? 120_000 }, async () => {
    const home = await realpath(await mkdtemp(join(tmpdir(), "hel-e2e-")));
    try {
      const workspace = await layOut(home, options);
      const model = await startModel(places.python, home, options.replies);
      try {
        await inEditor({ home, workspace, model, options, name }, body);
      } finally {
        await model.end();
      }
    } finally {
      await rm(home, { recursive: true, force: true, maxRetries: 5 });
    }
  });
}

interface Setting {
  home: string;
  workspace: string;
  model: Model;
  options: ScenarioOptions;
  name: string;
}

async function inEditor(
  { home, workspace, model, options, name }: Setting,
  body: (scenario: Scenario) => Promise<void>,
): Promise<void> {
  const state = join(home, "state");
  const editor = await Editor.open({
    home: join(home, "editor"),
    workspace,
    file: options.file?.name ?? configFile.name,
    settings: {
      "hel.model.baseUrl": model.baseUrl,
      "hel.model.name": "scripted",
      // A busy machine may need long to start a server, and these replies do not wait.
      "hel.mcp.startWait": 60,
      ...options.settings,
    },
    keybindings: options.keybindings ?? [],
    environment: { HEL_STATE_DIR: state },
    asksForTrust: options.asksForTrust ?? false,
  });
  try {
    await body({ editor, model, workspace, mark: `HEL_STATE_DIR=${state}` });
  } catch (error) {
    await editor.showNotifications();
    await editor.screenshot(`failed: ${name}`);
    throw error;
  } finally {
    await editor.close();
  }
}

async function layOut(home: string, options: ScenarioOptions): Promise<string> {
  const workspace = join(home, "scratch");
  await mkdir(workspace);
  const { name, text } = options.file ?? configFile;
  await writeFile(join(workspace, name), text);
  if (options.inventory === true) {
    await mkdir(join(workspace, ".hel", "mcp"), { recursive: true });
    await copyFile(places.inventory, join(workspace, ".hel", "mcp", "inventory.py"));
    const servers = { inventory: { command: places.python, args: [".hel/mcp/inventory.py"] } };
    await writeFile(join(workspace, ".hel", "mcp.json"), JSON.stringify({ servers }, null, 2));
  }
  await options.prepare?.(workspace);
  return workspace;
}
