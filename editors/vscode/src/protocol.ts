/**
 * What goes over the wire beyond the Language Server Protocol, as the server defines it: the commands, the events of a
 * turn, and the requests that this editor answers. Plain types, no behaviour; a change here goes with one in the server.
 */

import type { Range } from "vscode-languageclient";

export type AccessLevel = "read-only" | "confirm" | "auto";

export type ToolCallStatus = "pending" | "running" | "completed" | "failed" | "rejected" | "cancelled";

export type StopReason = "end_turn" | "cancelled" | "max_steps" | "max_tokens" | "refusal" | "error";

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  requests: number;
}

/** `applied` is null where the editor's answer and its text disagree. */
export interface Edit {
  uri: string;
  applied: boolean | null;
  added: number;
  removed: number;
  /** Why it was not applied. */
  reason?: string;
}

export interface TurnResult {
  session: string;
  turn: number;
  stopReason: StopReason;
  text: string;
  steps: number;
  toolCalls: { name: string; status: ToolCallStatus; decision: string | null }[];
  edits: Edit[];
  unsaved: string[];
  usage: Usage;
  error: { code: string; message: string } | null;
}

export interface TurnId {
  session: string;
  turn: number;
}

export interface ToolCall {
  id: string;
  name: string;
  /** An object, or the raw text where the model wrote no valid JSON. */
  arguments: unknown;
  status: ToolCallStatus;
}

export type TurnEvent = TurnId &
  (
    | { kind: "text" | "reasoning"; delta: string }
    | ({ kind: "toolCall" } & ToolCall)
    | ({ kind: "edit" } & Edit)
    | ({ kind: "usage" } & Usage)
    | { kind: "step"; step: number }
    | { kind: "notice"; message: string }
    | { kind: "end"; result: TurnResult }
  );

export interface AskArguments {
  prompt: string;
  textDocument?: { uri: string };
  range?: Range;
  session?: string;
  access?: AccessLevel;
}

/** A question of the server that waits for its answer; `actions` are the titles of its buttons. */
export interface PendingQuestion {
  id: string;
  session: string;
  message: string;
  actions: string[];
}

/** A session of this workspace that can be resumed. */
export interface StoredSession {
  session: string;
  title: string;
  /** As `2026-01-31T12:00:00Z`. */
  updated: string;
  turns: number;
}

/** A message of a session that was resumed. */
export type Message =
  | { role: "user"; text: string }
  /** The arguments of a call are the text that the model wrote. */
  | { role: "assistant"; text: string; toolCalls?: { id: string; name: string; arguments: string }[] }
  | { role: "tool"; text: string; callId: string };

export interface ResumedSession {
  session: string;
  messages: Message[];
}

export interface Tool {
  name: string;
  description: string;
  loaded: boolean;
  access: "read" | "edit" | "execute";
}

export interface McpServer {
  name: string;
  status: "untrusted" | "starting" | "ready" | "failed" | "stopped" | "disabled";
  protocolVersion?: string | null;
  tools: Tool[];
  diagnostics: string[];
}

/** The commands of `workspace/executeCommand` that this extension calls, each with its argument and its result. */
export interface Commands {
  "hel.ask": { argument: AskArguments; result: TurnId };
  "hel.cancel": { argument: { session?: string }; result: { cancelled: boolean } };
  "hel.newSession": { argument: Record<string, never>; result: { session: string } };
  "hel.sessions": { argument: Record<string, never>; result: StoredSession[] };
  "hel.resume": { argument: { session?: string }; result: ResumedSession };
  "hel.setAccess": { argument: { access: AccessLevel }; result: { access: AccessLevel } };
  "hel.pending": { argument: Record<string, never>; result: PendingQuestion[] };
  "hel.answer": { argument: { id: string; action: string }; result: { accepted: boolean } };
  "hel.tools": { argument: { session?: string }; result: { builtin: Tool[]; servers: McpServer[] } };
  "hel.undo": {
    argument: { session?: string; turn?: number };
    result: { reverted: string[]; kept: { uri: string; reason: string }[] };
  };
  "hel.openLog": { argument: { session?: string }; result: { uri: string } };
}

/** What this extension opts in to, sent as `capabilities.experimental.hel`. */
export const experimentalCapabilities = { events: true, diff: true, editorTools: ["save"] } as const;

export const eventNotification = "hel/event";
export const showDiffNotification = "hel/showDiff";
export const closeDiffNotification = "hel/closeDiff";
export const saveRequest = "hel/save";

/** `before` is null for a file that is to be made. */
export interface ShowDiff {
  uri: string;
  before: string | null;
  after: string;
  title: string;
}

export interface CloseDiff {
  uri: string;
}

export interface Save {
  uris: string[];
}

export interface Saved {
  saved: string[];
}
