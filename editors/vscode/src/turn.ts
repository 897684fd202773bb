/** One turn as it is shown: built from the server's events, in the extension and again in the transcript's page. */

import type { Edit, ResumedSession, ToolCall, TurnEvent, TurnId, TurnResult } from "./protocol";

export type Block =
  | { type: "text" | "reasoning"; text: string }
  | ({ type: "toolCall" } & ShownCall)
  | ({ type: "edit"; line: number } & Edit)
  | { type: "notice"; message: string };

/** A call; without a status where it is not known how it ended. */
export type ShownCall = Omit<ToolCall, "status"> & Partial<Pick<ToolCall, "status">>;

export interface Turn extends TurnId {
  prompt: string;
  step: number;
  blocks: Block[];
  /** Set when the turn has ended as it should. */
  result?: TurnResult;
  /** The server went away before the turn ended. */
  lost?: boolean;
  /** It is from before the session was resumed; how it ended is not known. */
  restored?: boolean;
}

export function newTurn({ session, turn }: TurnId): Turn {
  return { session, turn, prompt: "", step: 0, blocks: [] };
}

export function sameTurn(one: TurnId, other: TurnId): boolean {
  return one.session === other.session && one.turn === other.turn;
}

export function isRunning(turn: Turn): boolean {
  return turn.result === undefined && turn.lost !== true && turn.restored !== true;
}

/** The call that the turn is at, if any. */
export function currentCall(turn: Turn): ShownCall | undefined {
  return turn.blocks.findLast((block) => block.type === "toolCall" && isOpen(block)) as ShownCall | undefined;
}

/** The turns of a conversation, as far as it tells of them, less one of `running`: more is known from its events. */
export function restoredTurns({ session, messages }: ResumedSession, running: readonly Turn[]): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    if (message.role === "user") {
      const id = { session, turn: turns.length + 1 };
      turns.push({ ...newTurn(id), prompt: message.text, restored: true });
    } else if (message.role === "assistant") {
      const text: Block[] = message.text === "" ? [] : [{ type: "text", text: message.text }];
      const calls = (message.toolCalls ?? []).map((call): Block => ({
        type: "toolCall",
        ...call,
        arguments: parsed(call.arguments),
      }));
      turns.at(-1)?.blocks.push(...text, ...calls);
    }
  }
  const last = turns.at(-1);
  const goesOn = running.some((turn) => turn.session === session && turn.prompt === last?.prompt);
  return goesOn ? turns.slice(0, -1) : turns;
}

/** The arguments of a call as an event has them. */
function parsed(written: string): unknown {
  try {
    return JSON.parse(written);
  } catch {
    return written;
  }
}

/**
 * Adds what `event` says to `turn`. `line` (from 0) is where an edit begins.
 *
 * Returns the index of the block that is new or changed, or -1 where no block is concerned.
 */
export function applyEvent(turn: Turn, event: TurnEvent, line = 0): number {
  const { blocks } = turn;
  switch (event.kind) {
    case "text":
    case "reasoning":
      return addText(blocks, event.kind, event.delta);
    case "toolCall":
      return updateCall(blocks, event);
    case "edit": {
      const { uri, applied, added, removed, reason } = event;
      const edit: Block = { type: "edit", uri, applied, added, removed, line };
      return blocks.push(reason === undefined ? edit : { ...edit, reason }) - 1;
    }
    case "notice":
      return blocks.push({ type: "notice", message: event.message }) - 1;
    case "step":
      turn.step = event.step;
      return -1;
    case "end":
      turn.result = event.result;
      return -1;
    case "usage":
      return -1; // the sum comes with the result
  }
}

function addText(blocks: Block[], type: "text" | "reasoning", delta: string): number {
  const last = blocks.at(-1);
  if (last?.type === type) {
    last.text += delta;
    return blocks.length - 1;
  }
  return blocks.push({ type, text: delta }) - 1;
}

function updateCall(blocks: Block[], call: ToolCall): number {
  // Some models number their calls anew in each reply, so only a call that is still open can be meant.
  const index = blocks.findLastIndex((block) => block.type === "toolCall" && block.id === call.id && isOpen(block));
  const block = blocks[index];
  if (block?.type === "toolCall") {
    block.status = call.status;
    return index;
  }
  return (
    blocks.push({ type: "toolCall", id: call.id, name: call.name, arguments: call.arguments, status: call.status }) - 1
  );
}

function isOpen(call: ShownCall): boolean {
  return call.status === "pending" || call.status === "running";
}
