/** The turns of this window, kept from the events that the server sends. */

import { commands, type Disposable, EventEmitter } from "vscode";
import type { ResumedSession, TurnEvent, TurnId } from "./protocol";
import { applyEvent, isRunning, newTurn, restoredTurns, sameTurn, type Turn } from "./turn";

/** The turn that changed, with the event that did it and the line of an edit; no event when it began or was lost. */
export interface TurnChange {
  turn: Turn;
  event?: TurnEvent;
  line?: number;
}

export class Turns implements Disposable {
  private turns: Turn[] = [];
  private readonly editedLines = new Map<string, number>();
  private readonly changes = new EventEmitter<TurnChange>();

  readonly onChange = this.changes.event;

  get all(): readonly Turn[] {
    return this.turns;
  }

  get running(): readonly Turn[] {
    return this.turns.filter(isRunning);
  }

  /** The prompt may be known before the first event or after it. */
  asked({ prompt, ...id }: TurnId & { prompt: string }): void {
    const turn = this.find(id);
    turn.prompt = prompt;
    this.changed({ turn });
  }

  edited({ uri, line }: { uri: string; line: number }): void {
    this.editedLines.set(uri, line);
  }

  event(event: TurnEvent): void {
    const turn = this.find(event);
    const line = event.kind === "edit" ? (this.editedLines.get(event.uri) ?? 0) : 0;
    applyEvent(turn, event, line);
    this.changed({ turn, event, line });
  }

  /** The server is gone, and with it what was running. */
  lost(): void {
    for (const turn of this.running) {
      turn.lost = true;
      this.changed({ turn });
    }
  }

  /** Forgets the turns that have ended. */
  clear(): void {
    this.turns = this.turns.filter(isRunning);
  }

  /** Puts the conversation of a session in the place of the turns that have ended. */
  restore(resumed: ResumedSession): void {
    this.turns = [...restoredTurns(resumed, this.running), ...this.running];
  }

  dispose(): void {
    this.changes.dispose();
  }

  private find(id: TurnId): Turn {
    let turn = this.turns.find((one) => sameTurn(one, id));
    if (turn === undefined) {
      turn = newTurn(id);
      this.turns.push(turn);
      this.changed({ turn });
    }
    return turn;
  }

  private changed(change: TurnChange): void {
    void commands.executeCommand("setContext", "hel-lsp.running", this.running.length > 0);
    this.changes.fire(change);
  }
}
