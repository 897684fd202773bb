/** What the transcript's page and the extension tell each other. */

import type { TurnEvent } from "../protocol";
import type { Turn } from "../turn";

export type ToPage =
  | { type: "reset"; turns: readonly Turn[] }
  /** A turn began, got its prompt, or was lost. */
  | { type: "turn"; turn: Turn }
  | { type: "event"; event: TurnEvent; line: number };

export type FromPage = { type: "ready" } | { type: "ask" } | { type: "open"; uri: string; line: number };
