/** The status-bar item: idle, at step n, or waiting for an answer. */

import { type Disposable, StatusBarAlignment, ThemeColor, window } from "vscode";
import type { Turns } from "./turns";

export interface State {
  turns: Turns;
  isWaiting: boolean;
  isConnected: boolean;
}

export class Status implements Disposable {
  private readonly item = window.createStatusBarItem("hel-lsp.status", StatusBarAlignment.Left, 0);

  constructor() {
    this.item.name = "Hel";
    this.item.show();
  }

  update({ turns, isWaiting, isConnected }: State): void {
    const running = turns.running.at(-1);
    if (isWaiting) {
      this.set("bell-dot", "waiting for your answer", "Hel has a question. Click to answer it.", "hel-lsp.answer");
    } else if (running !== undefined) {
      const step = running.step > 0 ? `step ${String(running.step)}` : "starting";
      this.set("sync~spin", step, `Hel is working on: ${running.prompt}`, "hel-lsp.transcript.focus");
    } else if (isConnected) {
      this.set("comment-discussion", "", "Hel is idle. Click to ask.", "hel-lsp.ask");
    } else {
      this.set("circle-slash", "", "The server of Hel is not running. Click to ask, which starts it.", "hel-lsp.ask");
    }
    this.item.backgroundColor = isWaiting ? new ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  dispose(): void {
    this.item.dispose();
  }

  private set(icon: string, state: string, tooltip: string, command: string): void {
    const text = state === "" ? "Hel" : `Hel: ${state}`;
    this.item.text = `$(${icon}) ${text}`;
    this.item.tooltip = tooltip;
    this.item.command = command;
    this.item.accessibilityInformation = { label: `${text}. ${tooltip}`, role: "button" };
  }
}
