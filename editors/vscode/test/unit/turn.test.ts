/** How a turn is built from the server's events. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolCallStatus, TurnEvent } from "../../src/protocol";
import { applyEvent, currentCall, newTurn } from "../../src/turn";

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
