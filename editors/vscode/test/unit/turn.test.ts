/** How a turn is built from the server's events. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, ToolCallStatus, TurnEvent } from "../../src/protocol";
import { applyEvent, currentCall, isRunning, newTurn, restoredTurns } from "../../src/turn";

const id = { session: "s", turn: 1 };

function call(callId: string, status: ToolCallStatus): TurnEvent {
  return { ...id, kind: "toolCall", id: callId, name: "read_file", arguments: { path: "a" }, status };
}

test("deltas of one kind make one block, and a call between them parts them", () => {
  const turn = newTurn(id);
  const changed = (
    [
      { ...id, kind: "text", delta: "Let me " },
      { ...id, kind: "text", delta: "see." },
      call("1", "running"),
      { ...id, kind: "text", delta: "Done." },
    ] satisfies TurnEvent[]
  ).map((event) => applyEvent(turn, event));
  assert.deepEqual(changed, [0, 0, 1, 2]);
  assert.deepEqual(
    turn.blocks.map((block) => (block.type === "text" ? block.text : block.type)),
    ["Let me see.", "toolCall", "Done."],
  );
});

test("a call that uses the id of one that has ended is another call", () => {
  const turn = newTurn(id);
  for (const status of ["pending", "running", "completed", "pending"] as const) {
    applyEvent(turn, call("call_1", status));
  }
  const statuses = turn.blocks.map((block) => (block.type === "toolCall" ? block.status : ""));
  assert.deepEqual(statuses, ["completed", "pending"]);
  assert.equal(currentCall(turn)?.status, "pending");
});

const messages: Message[] = [
  { role: "user", text: "what is the port?" },
  {
    role: "assistant",
    text: "I look.",
    toolCalls: [
      { id: "call_1", name: "read_file", arguments: '{"path": "a"}' },
      { id: "call_2", name: "read_file", arguments: '{"path"' },
    ],
  },
  { role: "tool", callId: "call_1", text: "port=7000" },
  { role: "tool", callId: "call_2", text: "These arguments are no JSON." },
  { role: "assistant", text: "It is 7000." },
  { role: "user", text: "are you sure?" },
  { role: "assistant", text: "", toolCalls: [{ id: "call_1", name: "read_file", arguments: "{}" }] },
];

test("of a session that was resumed there is a turn for each prompt, with its answers and its calls, and none runs", () => {
  const turns = restoredTurns({ session: "s", messages }, []);
  assert.deepEqual(
    turns.map(({ turn, prompt, blocks }) => ({ turn, prompt, blocks })),
    [
      {
        turn: 1,
        prompt: "what is the port?",
        blocks: [
          { type: "text", text: "I look." },
          { type: "toolCall", id: "call_1", name: "read_file", arguments: { path: "a" } },
          { type: "toolCall", id: "call_2", name: "read_file", arguments: '{"path"' },
          { type: "text", text: "It is 7000." },
        ],
      },
      {
        turn: 2,
        prompt: "are you sure?",
        blocks: [{ type: "toolCall", id: "call_1", name: "read_file", arguments: {} }],
      },
    ],
  );
  assert.deepEqual(turns.map(isRunning), [false, false]);
  assert.deepEqual(turns.map(currentCall), [undefined, undefined]);
});

test("a turn that is still running when its session is resumed is there once", () => {
  const running = { ...newTurn({ session: "s", turn: 2 }), prompt: "are you sure?" };
  const elsewhere = { ...running, session: "other" };
  const prompts = (turn: typeof running) =>
    restoredTurns({ session: "s", messages }, [turn]).map(({ prompt }) => prompt);
  assert.deepEqual(prompts(running), ["what is the port?"]);
  assert.deepEqual(prompts(elsewhere), ["what is the port?", "are you sure?"]);
});
