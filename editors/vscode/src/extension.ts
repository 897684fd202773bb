/** Where the parts are put together. */

import { type ExtensionContext, window, workspace } from "vscode";
import { Client } from "./client";
import { registerCommands } from "./commands";
import { Diffs } from "./diff";
import { TurnProgress } from "./progress";
import type { TurnResult } from "./protocol";
import { Questions } from "./questions";
import { save } from "./save";
import { Status } from "./status";
import { Transcript } from "./transcript";
import { Turns } from "./turns";

let client: Client | undefined;

export function activate(context: ExtensionContext): void {
  const turns = new Turns();
  const diffs = new Diffs();
  const transcript = new Transcript(context.extensionUri, turns);
  const status = new Status();
  const questions: Questions = new Questions(() => server);
  const server = new Client(context, {
    ask: (question) => questions.show(question),
    showDiff: (diff) => diffs.show(diff),
    closeDiff: (diff) => diffs.close(diff),
    save,
  });
  const progress = new TurnProgress(async ({ session }) => {
    await server.execute("hel.cancel", { session });
  });
  const updateStatus = () => {
    status.update({ turns, isWaiting: questions.isWaiting, isConnected: server.isRunning });
  };

  server.onEvent((event) => {
    turns.event(event);
  });
  server.onEdit((edit) => {
    turns.edited(edit);
  });
  server.onAsked((turn) => {
    turns.asked(turn);
    void transcript.reveal();
  });
  server.onRunning((isRunning) => {
    if (!isRunning) {
      turns.lost();
    }
    void questions.refresh();
  });
  turns.onChange((change) => {
    transcript.update(change);
    progress.update(change.turn, questions.isWaiting);
    updateStatus();
    if (change.event?.kind === "toolCall" || change.event?.kind === "end") {
      void questions.refresh();
    }
    if (change.event?.kind === "end" && !transcript.isVisible) {
      void tell(change.event.result, transcript);
    }
  });
  questions.onChange(() => {
    for (const turn of turns.running) {
      progress.update(turn, questions.isWaiting);
    }
    updateStatus();
  });
  updateStatus();

  client = server;
  context.subscriptions.push(
    ...registerCommands({ client: server, turns, questions, transcript }),
    ...[server, turns, diffs, transcript, status, questions, progress],
    workspace.onDidGrantWorkspaceTrust(() => server.start()),
  );
  if (workspace.isTrusted) {
    void server.start();
  }
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

/** The answer of a turn, for who does not see the transcript. */
async function tell({ text, error, stopReason }: TurnResult, transcript: Transcript): Promise<void> {
  const shown = text.length > 300 ? `${text.slice(0, 300)} …` : text;
  const button = "Show Transcript";
  const choice =
    error === null
      ? await window.showInformationMessage(`Hel: ${shown === "" ? stopReason.replace("_", " ") : shown}`, button)
      : await window.showErrorMessage(`Hel: ${error.message}`, button);
  if (choice === button) {
    await transcript.reveal();
  }
}
