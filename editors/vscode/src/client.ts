/** The connection to the server: started in a trusted workspace, restarted on demand, and what goes over it, typed. */

import type { Readable } from "node:stream";
import {
  commands,
  type Disposable,
  EventEmitter,
  type ExtensionContext,
  type LogOutputChannel,
  window,
  workspace,
} from "vscode";
import {
  DidChangeConfigurationNotification,
  ExecuteCommandRequest,
  LanguageClient,
  type MessageActionItem,
  ShowMessageRequest,
  type ShowMessageRequestParams,
  State,
} from "vscode-languageclient/node";
import { OptIns } from "./capabilities";
import { createMiddleware } from "./middleware";
import {
  type AskArguments,
  type CloseDiff,
  closeDiffNotification,
  type Commands,
  eventNotification,
  type Save,
  type Saved,
  saveRequest,
  type ShowDiff,
  showDiffNotification,
  type TurnEvent,
  type TurnId,
} from "./protocol";
import { findServer, type ServerCommand } from "./server";
import { serverSettings } from "./settings";

/** What the server asks of the rest of the extension. */
export interface Handlers {
  /** A question with buttons; resolves to the chosen one, or null when it was dismissed. */
  ask(question: ShowMessageRequestParams): Promise<MessageActionItem | null>;
  save(uris: string[]): Promise<Saved>;
  showDiff(diff: ShowDiff): Promise<void>;
  closeDiff(diff: CloseDiff): Promise<void>;
}

const apiKeySecret = "apiKey";

export class Client implements Disposable {
  private readonly events = new EventEmitter<TurnEvent>();
  private readonly edits = new EventEmitter<{ uri: string; line: number }>();
  private readonly asked = new EventEmitter<TurnId & { prompt: string }>();
  private readonly running = new EventEmitter<boolean>();
  private readonly output: LogOutputChannel = window.createOutputChannel("Hel", { log: true });
  private readonly settingsListener: Disposable;
  private current: LanguageClient | undefined;
  private connecting: Promise<LanguageClient | undefined> | undefined;
  private offered: readonly string[] = [];

  /** What happens in a turn, as the server tells it. */
  readonly onEvent = this.events.event;
  /** An edit is about to be applied; `line` counts from 0. */
  readonly onEdit = this.edits.event;
  /** A turn was started from here, with this prompt. */
  readonly onAsked = this.asked.event;
  /** The server came (true) or went (false). */
  readonly onRunning = this.running.event;

  constructor(
    private readonly context: ExtensionContext,
    private readonly handlers: Handlers,
  ) {
    this.settingsListener = workspace.onDidChangeConfiguration(async (change) => {
      // These two are taken up when the server starts.
      if (change.affectsConfiguration("hel.server") || change.affectsConfiguration("hel.model.apiKeyEnv")) {
        await this.restart();
      } else if (change.affectsConfiguration("hel") && this.isRunning) {
        const settings = { hel: serverSettings() };
        await this.current?.sendNotification(DidChangeConfigurationNotification.type, { settings });
      }
    });
  }

  /** Runs a command of the server, which is started for it where needed; undefined when there is no server to be had. */
  async execute<Name extends keyof Commands>(
    command: Name,
    argument: Commands[Name]["argument"],
  ): Promise<Commands[Name]["result"] | undefined> {
    const client = await this.start();
    return (await client?.sendRequest(ExecuteCommandRequest.type, { command, arguments: [argument] })) as
      Commands[Name]["result"] | undefined;
  }

  /** Starts a turn. */
  async ask(argument: AskArguments): Promise<void> {
    const turn = await this.execute("hel.ask", argument);
    if (turn !== undefined) {
      this.asked.fire({ ...turn, prompt: argument.prompt });
    }
  }

  get isRunning(): boolean {
    return this.current?.state === State.Running;
  }

  /** The running server, or undefined where the workspace is not trusted or no server starts: the user has been told. */
  async start(): Promise<LanguageClient | undefined> {
    if (this.isRunning) {
      return this.current;
    }
    this.connecting ??= this.connect().finally(() => {
      this.connecting = undefined;
    });
    return await this.connecting;
  }

  async stop(): Promise<void> {
    await this.connecting;
    const client = this.current;
    this.current = undefined;
    await client?.dispose();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Keeps the key of the model's endpoint in the editor's secret storage; an empty one is forgotten. */
  async setApiKey(key: string): Promise<void> {
    await (key === "" ? this.context.secrets.delete(apiKeySecret) : this.context.secrets.store(apiKeySecret, key));
    await this.restart();
  }

  dispose(): void {
    for (const disposable of [this.events, this.edits, this.asked, this.running, this.output, this.settingsListener]) {
      disposable.dispose();
    }
  }

  private async connect(): Promise<LanguageClient | undefined> {
    if (!(await isTrusted())) {
      return undefined;
    }
    // A client that lost its server starts another itself, with the same command.
    const client = this.current ?? (await this.create());
    this.current = client;
    try {
      await client?.start();
      return client;
    } catch (error) {
      this.output.error(error instanceof Error ? error : String(error)); // the language client has told the user
      this.current = undefined;
      return undefined;
    }
  }

  private async create(): Promise<LanguageClient | undefined> {
    const server = await findServer({
      setting: workspace.getConfiguration("hel").get("server.path", ""),
      folders: (workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath),
      path: process.env.PATH ?? "",
      platform: process.platform,
    });
    if (server === undefined) {
      void offerToFindServer();
      return undefined;
    }
    const client = new LanguageClient("hel", "Hel", await this.withKey(server), {
      documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
      initializationOptions: serverSettings,
      outputChannel: this.output,
      stdioOptions: { stdout: copy, stderr: copy },
      middleware: createMiddleware({
        ask: (argument) => this.ask(argument),
        willEdit: (edit) => {
          this.edits.fire(edit);
        },
        didEdit: () => this.sendPendingChanges(),
      }),
    });
    this.listen(client);
    return client;
  }

  private async withKey({ command, args }: ServerCommand) {
    const key = await this.context.secrets.get(apiKeySecret);
    const name = workspace.getConfiguration("hel").get("model.apiKeyEnv", "HEL_API_KEY");
    const environment = key === undefined ? process.env : { ...process.env, [name]: key };
    return { command, args, options: { env: environment } };
  }

  private listen(client: LanguageClient): void {
    client.registerFeature(new OptIns());
    client.onNotification(eventNotification, (event: TurnEvent) => {
      this.events.fire(event);
    });
    client.onNotification(showDiffNotification, (diff: ShowDiff) => this.handlers.showDiff(diff));
    client.onNotification(closeDiffNotification, (diff: CloseDiff) => this.handlers.closeDiff(diff));
    client.onRequest(saveRequest, ({ uris }: Save) => this.handlers.save(uris));
    client.onRequest(ShowMessageRequest.type, (question) => this.handlers.ask(question));
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Running) {
        this.offer(client.initializeResult?.capabilities.executeCommandProvider?.commands ?? []);
      }
      if (newState !== State.Starting) {
        this.running.fire(newState === State.Running);
      }
    });
  }

  /**
   * With full document sync the language client holds changes back for 250 ms, and sends them before any request.
   * The server looks for them to see what became of its edit, so that wait would be one for each edit.
   */
  private async sendPendingChanges(): Promise<void> {
    try {
      await this.execute("hel.pending", {});
    } catch (error) {
      this.output.warn(String(error)); // the edit was made all the same
    }
  }

  /** Shows the palette's commands for what this server can do, and hides those for what it cannot. */
  private offer(offered: readonly string[]): void {
    for (const command of new Set([...this.offered, ...offered])) {
      void commands.executeCommand("setContext", `hel-lsp.offers.${command}`, offered.includes(command));
    }
    this.offered = offered;
  }
}

/** The server's log, whose lines have a level of their own. */
function copy(stream: Readable, output: LogOutputChannel): void {
  stream.on("data", (chunk: Buffer) => {
    output.append(chunk.toString());
  });
}

async function isTrusted(): Promise<boolean> {
  if (workspace.isTrusted) {
    return true;
  }
  const manage = "Manage Workspace Trust";
  const choice = await window.showWarningMessage("Hel starts nothing from a workspace that is not trusted.", manage);
  if (choice === manage) {
    await commands.executeCommand("workbench.trust.manage");
  }
  return workspace.isTrusted;
}

async function offerToFindServer(): Promise<void> {
  const settings = "Open Settings";
  const choice = await window.showErrorMessage(
    "The server hel-lsp was not found: neither in the workspace's .venv nor on PATH, and there is no uvx to run it.",
    settings,
  );
  if (choice === settings) {
    await commands.executeCommand("workbench.action.openSettings", "hel.server.path");
  }
}
