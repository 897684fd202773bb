/** Where the server's executable is. */

import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";

export interface ServerCommand {
  command: string;
  args: string[];
}

export interface Places {
  /** The setting `hel.server.path`; empty when unset. */
  setting: string;
  /** Workspace folders that may hold a Python environment; none in a workspace that is not trusted. */
  folders: readonly string[];
  /** The value of `PATH`. */
  path: string;
  platform: NodeJS.Platform;
}

/** The command that starts the server, or undefined where there is none. A path in the settings is taken as it is. */
export async function findServer({ setting, folders, path, platform }: Places): Promise<ServerCommand | undefined> {
  if (setting !== "") {
    return { command: setting, args: [] };
  }
  const windows = platform === "win32";
  const [scripts, suffix] = windows ? ["Scripts", ".exe"] : ["bin", ""];
  const onPath = path.split(delimiter).filter((folder) => folder !== "");
  const environments = folders.flatMap((folder) => [".venv", "venv"].map((name) => join(folder, name, scripts)));
  const server = await firstExecutable([...environments, ...onPath], `hel-lsp${suffix}`);
  if (server !== undefined) {
    return { command: server, args: [] };
  }
  const uvx = await firstExecutable(onPath, `uvx${suffix}`);
  return uvx === undefined ? undefined : { command: uvx, args: ["hel-lsp"] };
}

async function firstExecutable(folders: readonly string[], name: string): Promise<string | undefined> {
  for (const folder of folders) {
    const file = join(folder, name);
    try {
      await access(file, constants.X_OK);
      return file;
    } catch {
      continue; // not there, or not ours to run
    }
  }
  return undefined;
}
