/** A running turn as a notification with a Cancel button. */

import { type Disposable, type Progress, ProgressLocation, window } from "vscode";
import type { TurnId } from "./protocol";
import { currentCall, isRunning, type Turn } from "./turn";

interface Shown {
  /** Set once the editor has made the notification. */
  progress?: Progress<{ message?: string }>;
  end: () => void;
}

export class TurnProgress implements Disposable {
  private readonly shown = new Map<Turn, Shown>();

  constructor(private readonly cancel: (turn: TurnId) => Promise<void>) {}

  /** Shows, updates or takes away the notification of `turn`. */
  update(turn: Turn, isWaiting: boolean): void {
    if (!isRunning(turn)) {
      this.shown.get(turn)?.end();
      this.shown.delete(turn);
      return;
    }
    const shown = this.shown.get(turn) ?? this.begin(turn);
    shown.progress?.report({ message: describe(turn, isWaiting) });
  }

  dispose(): void {
    for (const { end } of this.shown.values()) {
      end();
    }
  }

  private begin(turn: Turn): Shown {
    let end!: () => void;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const shown: Shown = { end };
    this.shown.set(turn, shown);
    const options = { location: ProgressLocation.Notification, title: "Hel", cancellable: true };
    void window.withProgress(options, (progress, token) => {
      token.onCancellationRequested(() => this.cancel(turn));
      shown.progress = progress;
      progress.report({ message: describe(turn, false) });
      return ended;
    });
    return shown;
  }
}

function describe(turn: Turn, isWaiting: boolean): string {
  const step = turn.step > 0 ? `step ${String(turn.step)}` : "starting";
  const what = isWaiting ? "waiting for your answer" : currentCall(turn)?.name;
  return what === undefined ? step : `${step}: ${what}`;
}
