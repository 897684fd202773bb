/** Child processes that a test starts, with the line that says they are ready, and their end. */

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

export interface Started {
  /** What `ready` found in the line. */
  value: string;
  /** Ends the process and its children. */
  end: () => Promise<void>;
}

/** Starts a process and waits for the line of its output that `ready` matches; the first group is its value. */
export async function start(
  [command = "", ...args]: string[],
  ready: RegExp,
  options: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<Started> {
  // A group of its own, so that its children can be ended with it.
  const child = spawn(command, args, { ...options, stdio: ["pipe", "pipe", "pipe"], detached: true });
  const end = () => endGroup(child);
  let output = "";
  const value = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        output += `${line}\n`;
        const found = ready.exec(line);
        if (found !== null) {
          resolve(found[1] ?? "");
        }
      });
    }
    child.once("error", reject);
    child.once("exit", (code) => {
      reject(new Error(`${command} ended with ${String(code)} before it was ready:\n${output}`));
    });
  });
  try {
    return { value: await value, end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Returns when the last of the group has gone, so that none writes into a folder that is being removed. */
async function endGroup(child: ChildProcess): Promise<void> {
  const group = child.pid === undefined ? 0 : -child.pid;
  const deadline = Date.now() + 5_000;
  let signal: NodeJS.Signals | 0 = "SIGTERM";
  while (group !== 0 && signalled(group, signal)) {
    await setTimeout(20);
    signal = Date.now() > deadline ? "SIGKILL" : 0;
  }
}

/** False where there is no such group any more. */
function signalled(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(group, signal);
  } catch {
    return false;
  }
}
