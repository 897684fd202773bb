/** The server's process, found among those of this machine by the state folder that it was given. */

import { readdir, readFile } from "node:fs/promises";
import { waitUntil } from "./editor";

export interface ServerProcess {
  pid: number;
  environment: readonly string[];
}

/** Waits for a server whose environment has `variable`, other than the one with the process id `not`. */
export async function serverProcess(variable: string, not?: number): Promise<ServerProcess> {
  const look = async () => (await serverProcesses(variable)).find(({ pid }) => pid !== not);
  return await waitUntil(look, (found) => found !== undefined, "the server to run");
}

export async function serverProcesses(variable: string): Promise<ServerProcess[]> {
  const found: ServerProcess[] = [];
  for (const entry of await readdir("/proc")) {
    const pid = Number(entry);
    if (Number.isInteger(pid)) {
      const [command, environment] = await Promise.all([words(pid, "cmdline"), words(pid, "environ")]);
      if (command.some((word) => word.endsWith("hel-lsp")) && environment.includes(variable)) {
        found.push({ pid, environment });
      }
    }
  }
  return found;
}

async function words(pid: number, file: "cmdline" | "environ"): Promise<string[]> {
  try {
    return (await readFile(`/proc/${String(pid)}/${file}`, "utf8")).split("\0");
  } catch {
    return []; // it has ended, or is another user's
  }
}
