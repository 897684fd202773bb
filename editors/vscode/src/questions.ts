/** The server's questions: shown as they come, and again when the first showing was lost. */

import { commands, type Disposable, EventEmitter, type MessageItem, window } from "vscode";
import { type MessageActionItem, MessageType, type ShowMessageRequestParams } from "vscode-languageclient";
import type { Client } from "./client";
import type { PendingQuestion } from "./protocol";

export class Questions implements Disposable {
  private readonly changes = new EventEmitter<undefined>();
  private pending: readonly PendingQuestion[] = [];

  readonly onChange = this.changes.event;

  constructor(private readonly client: () => Client) {}

  get isWaiting(): boolean {
    return this.pending.length > 0;
  }

  /** Shows a question as a notification. Closing that is an answer too: null, which refuses. */
  async show({ type, message, actions = [] }: ShowMessageRequestParams): Promise<MessageActionItem | null> {
    const show =
      type === MessageType.Error
        ? window.showErrorMessage
        : type === MessageType.Warning
          ? window.showWarningMessage
          : window.showInformationMessage;
    void this.refresh();
    const chosen = await show(message, ...actions);
    // After the answer has gone out.
    setImmediate(() => void this.refresh());
    return chosen ?? null;
  }

  /** Asks what is still waiting for an answer: a question may have been answered elsewhere, or its turn cancelled. */
  async refresh(): Promise<void> {
    try {
      this.pending = this.client().isRunning ? ((await this.client().execute("hel.pending", {})) ?? []) : [];
    } catch {
      this.pending = []; // the server has gone, and its questions with it
    }
    void commands.executeCommand("setContext", "hel-lsp.waiting", this.isWaiting);
    this.changes.fire(undefined);
  }

  /**
   * Asks the oldest waiting question in a dialog. Not in a second notification of the same text: the editor would
   * close the first for it, and that refuses. A closed dialog answers nothing.
   */
  async askAgain(): Promise<void> {
    await this.refresh();
    const question = this.pending[0];
    if (question === undefined) {
      void window.showInformationMessage("Hel: no question is waiting for an answer.");
      return;
    }
    const [first = "", ...rest] = question.message.split(/\n| ⏎ /);
    const options = { modal: true, detail: rest.join("\n").trim() };
    const actions: MessageItem[] = question.actions.map((title) => ({ title }));
    const later: MessageItem = { title: "Not Now", isCloseAffordance: true };
    const chosen = await window.showWarningMessage(first, options, ...actions, later);
    if (chosen !== undefined && chosen !== later) {
      await this.client().execute("hel.answer", { id: question.id, action: chosen.title });
      await this.refresh();
    }
  }

  dispose(): void {
    this.changes.dispose();
  }
}
