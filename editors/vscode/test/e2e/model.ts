/** The scripted model, as a process: the replies that it will give, and the requests that it got. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { start } from "./processes";

export interface Reply {
  text?: string;
  reasoning?: string;
  tool_calls?: { name: string; arguments: Record<string, unknown> }[];
  /** Keeps the stream open after the text, until the client hangs up. */
  hold?: boolean;
}

interface Message {
  role: string;
  content: string | null;
}

export interface ModelRequest {
  messages: Message[];
  tools: { function: { name: string } }[];
}

export interface Model {
  baseUrl: string;
  requests: () => Promise<ModelRequest[]>;
  end: () => Promise<void>;
}

export async function startModel(python: string, folder: string, replies: readonly Reply[]): Promise<Model> {
  const script = join(folder, "replies.json");
  const record = join(folder, "requests.jsonl");
  await writeFile(script, JSON.stringify(replies));
  await writeFile(record, "");
  const command = [python, "-m", "hel_lsp.demo.scripted_model", "--script", script, "--record", record];
  const { value, end } = await start(command, /^(http:.*)$/);
  return {
    baseUrl: value,
    end,
    async requests() {
      const lines = (await readFile(record, "utf8")).split("\n").filter((line) => line !== "");
      return lines.map((line) => (JSON.parse(line) as { request: ModelRequest }).request);
    },
  };
}
