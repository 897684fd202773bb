/** The transcript: a view in the side bar that shows the turns as they happen. */

import { randomBytes } from "node:crypto";
import {
  commands,
  type Disposable,
  Position,
  Range,
  Uri,
  type Webview,
  type WebviewView,
  type WebviewViewProvider,
  window,
  workspace,
} from "vscode";
import type { TurnChange, Turns } from "./turns";
import type { FromPage, ToPage } from "./webview/messages";

export const transcriptView = "hel-lsp.transcript";

export class Transcript implements WebviewViewProvider, Disposable {
  private readonly registration = window.registerWebviewViewProvider(transcriptView, this);
  private view: WebviewView | undefined;

  constructor(
    private readonly extensionUri: Uri,
    private readonly turns: Turns,
  ) {}

  get isVisible(): boolean {
    return this.view?.visible === true;
  }

  /** Brings the view to the front; the keyboard's focus stays where it is. */
  async reveal(): Promise<void> {
    if (!this.isVisible) {
      await commands.executeCommand(`${transcriptView}.focus`, { preserveFocus: true });
    }
  }

  update({ turn, event, line }: TurnChange): void {
    if (event === undefined) {
      this.post({ type: "turn", turn });
    } else {
      this.post({ type: "event", event, line: line ?? 0 });
    }
  }

  /** Shows all turns afresh. */
  reset(): void {
    this.post({ type: "reset", turns: this.turns.all });
  }

  resolveWebviewView(view: WebviewView): void {
    this.view = view;
    view.onDidDispose(() => {
      this.view = undefined;
    });
    view.webview.options = { enableScripts: true, localResourceRoots: [this.extensionUri] };
    view.webview.onDidReceiveMessage((message: FromPage) => this.receive(message));
    view.webview.html = page(view.webview, this.extensionUri);
  }

  dispose(): void {
    this.registration.dispose();
  }

  private post(message: ToPage): void {
    void this.view?.webview.postMessage(message);
  }

  private async receive(message: FromPage): Promise<void> {
    switch (message.type) {
      case "ready":
        this.reset();
        return;
      case "ask":
        await commands.executeCommand("hel-lsp.ask");
        return;
      case "open":
        await open(message.uri, message.line);
    }
  }
}

async function open(uri: string, line: number): Promise<void> {
  const document = await workspace.openTextDocument(Uri.parse(uri));
  const place = new Position(line, 0);
  await window.showTextDocument(document, { selection: new Range(place, place) });
}

function page(webview: Webview, extensionUri: Uri): string {
  const script = webview.asWebviewUri(Uri.joinPath(extensionUri, "out", "transcript.js")).toString();
  const style = webview.asWebviewUri(Uri.joinPath(extensionUri, "media", "transcript.css")).toString();
  const nonce = randomBytes(16).toString("base64");
  const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${policy}" />
    <link rel="stylesheet" href="${style}" />
    <title>Transcript</title>
  </head>
  <body>
    <main id="transcript" role="log" aria-live="polite"></main>
    <p id="empty">Ask for a change, and see here what the agent does. <button id="ask">Ask…</button></p>
    <script nonce="${nonce}" src="${script}"></script>
  </body>
</html>`;
}
