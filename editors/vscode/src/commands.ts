/** What a person can run: every command of this extension, in one table. */

import {
  commands,
  type Diagnostic,
  type Disposable,
  env,
  languages,
  QuickPickItemKind,
  type QuickPickItem,
  type TextEditor,
  window,
  workspace,
} from "vscode";
import type { Range } from "vscode-languageclient";
import type { Client } from "./client";
import type { AccessLevel, McpServer, StoredSession, Tool } from "./protocol";
import type { Questions } from "./questions";
import type { Transcript } from "./transcript";
import type { Turns } from "./turns";

export interface Parts {
  client: Client;
  turns: Turns;
  questions: Questions;
  transcript: Transcript;
}

type Command = (parts: Parts) => Promise<void>;

const table: Readonly<Record<string, Command>> = {
  "hel-lsp.ask": (parts) => ask(parts, "Ask", undefined),
  "hel-lsp.askSelection": askSelection,
  "hel-lsp.fixProblem": fixProblem,
  "hel-lsp.cancel": cancel,
  "hel-lsp.answer": ({ questions }) => questions.askAgain(),
  "hel-lsp.undo": undo,
  "hel-lsp.newSession": newSession,
  "hel-lsp.resumeSession": resumeSession,
  "hel-lsp.setAccess": setAccess,
  "hel-lsp.tools": showTools,
  "hel-lsp.showLog": showLog,
  "hel-lsp.setApiKey": setApiKey,
  "hel-lsp.restartServer": ({ client }) => client.restart(),
};

/** Registers the table; what a command cannot do is told to the user. */
export function registerCommands(parts: Parts): Disposable[] {
  return Object.entries(table).map(([id, run]) =>
    commands.registerCommand(id, async () => {
      try {
        await run(parts);
      } catch (error) {
        void window.showErrorMessage(`Hel: ${error instanceof Error ? error.message : String(error)}`);
      }
    }),
  );
}

async function ask(parts: Parts, title: string, range: Range | undefined): Promise<void> {
  const editor = fileEditor();
  // First, so that no prompt is written for a server that is not to be had.
  if ((await parts.client.start()) === undefined) {
    return;
  }
  const prompt = await window.showInputBox({
    title: `Hel: ${title}`,
    placeHolder: "What is to be done, or what would you like to know?",
    ignoreFocusOut: true,
  });
  if (prompt !== undefined && prompt.trim() !== "") {
    await start(parts, prompt, editor, range);
  }
}

async function askSelection(parts: Parts): Promise<void> {
  const selection = fileEditor()?.selection;
  if (selection === undefined || selection.isEmpty) {
    void window.showInformationMessage("Hel: nothing is selected.");
    return;
  }
  await ask(parts, "Ask About Selection", selection);
}

async function fixProblem(parts: Parts): Promise<void> {
  const editor = fileEditor();
  const problem = editor === undefined ? undefined : await pickProblem(editor);
  if (problem !== undefined) {
    const source = problem.source === undefined ? "" : ` (${problem.source})`;
    await start(parts, `Fix this problem: ${problem.message}${source}`, editor, problem.range);
  }
}

async function pickProblem(editor: TextEditor): Promise<Diagnostic | undefined> {
  const line = editor.document.lineAt(editor.selection.active).range;
  const problems = languages
    .getDiagnostics(editor.document.uri)
    .filter((problem) => problem.range.intersection(line) !== undefined);
  if (problems.length === 0) {
    void window.showInformationMessage("Hel: there is no problem on this line.");
  }
  if (problems.length < 2) {
    return problems[0];
  }
  const items = problems.map((problem) => ({ label: problem.message, description: problem.source ?? "", problem }));
  return (await window.showQuickPick(items, { title: "Hel: Fix This Problem" }))?.problem;
}

async function start(parts: Parts, prompt: string, editor?: TextEditor, range?: Range): Promise<void> {
  await parts.client.ask({
    prompt,
    ...(editor === undefined ? {} : { textDocument: { uri: editor.document.uri.toString() } }),
    ...(range === undefined ? {} : { range: { start: plain(range.start), end: plain(range.end) } }),
  });
}

/** An editor's own positions carry more than the protocol's. */
function plain({ line, character }: Range["start"]): Range["start"] {
  return { line, character };
}

/** The active editor, when it shows something that the server can know. */
function fileEditor(): TextEditor | undefined {
  const editor = window.activeTextEditor;
  return editor !== undefined && ["file", "untitled"].includes(editor.document.uri.scheme) ? editor : undefined;
}

async function cancel({ client }: Parts): Promise<void> {
  await client.execute("hel.cancel", {});
}

async function undo({ client }: Parts): Promise<void> {
  const outcome = await client.execute("hel.undo", {});
  if (outcome === undefined) {
    return;
  }
  const { reverted, kept } = outcome;
  const names = reverted.map((uri) => uri.slice(uri.lastIndexOf("/") + 1)).join(", ");
  if (kept.length > 0) {
    const reasons = kept.map(({ uri, reason }) => `${uri.slice(uri.lastIndexOf("/") + 1)}: ${reason}`).join("; ");
    void window.showWarningMessage(`Hel: kept ${reasons}${names === "" ? "" : `. Undone in ${names}`}`);
  } else {
    void window.showInformationMessage(names === "" ? "Hel: there is nothing to undo." : `Hel: undone in ${names}`);
  }
}

async function newSession({ client, turns, transcript }: Parts): Promise<void> {
  await client.execute("hel.newSession", {});
  turns.clear();
  transcript.reset();
}

async function resumeSession({ client, turns, transcript }: Parts): Promise<void> {
  const sessions = await client.execute("hel.sessions", {});
  if (sessions === undefined) {
    return;
  }
  if (sessions.length === 0) {
    void window.showInformationMessage("Hel: there is no session to resume in this workspace.");
    return;
  }
  const title = "Hel: Resume Session";
  const picked = await window.showQuickPick(sessions.map(sessionItem), { title, matchOnDescription: true });
  const resumed = picked && (await client.execute("hel.resume", { session: picked.session }));
  if (resumed !== undefined) {
    turns.restore(resumed);
    transcript.reset();
    await transcript.reveal();
  }
}

function sessionItem({ session, title, updated, turns }: StoredSession): QuickPickItem & { session: string } {
  const when = new Date(updated).toLocaleString(env.language, { dateStyle: "medium", timeStyle: "short" });
  const count = turns === 1 ? "1 turn" : `${String(turns)} turns`;
  // A prompt may say `$(bug)`, and means no icon.
  const label = title.replaceAll(/\$\([A-Za-z0-9~-]+\)/g, "\\$&");
  return { label, description: `${when}, ${count}`, session };
}

async function setAccess({ client }: Parts): Promise<void> {
  const levels: (QuickPickItem & { label: AccessLevel })[] = [
    { label: "read-only", detail: "Nothing is changed and nothing is run." },
    { label: "confirm", detail: "Edits and commands are asked about first." },
    { label: "auto", detail: "Edits and commands go through unasked, where no rule says otherwise." },
  ];
  const title = "Hel: Access Level, until the server is started anew";
  const level = await window.showQuickPick(levels, { title });
  if (level !== undefined) {
    await client.execute("hel.setAccess", { access: level.label });
  }
}

async function showTools({ client }: Parts): Promise<void> {
  const tools = await client.execute("hel.tools", {});
  if (tools === undefined) {
    return;
  }
  const items = [...tools.servers.flatMap(serverItems), separator("built in"), ...tools.builtin.map(toolItem)];
  const options = {
    title: "Hel: MCP Servers and Tools",
    placeHolder: "Search by name or description",
    matchOnDescription: true,
    matchOnDetail: true,
  };
  await window.showQuickPick(items, options);
}

function serverItems({ name, status, tools, diagnostics }: McpServer): QuickPickItem[] {
  const icon = { ready: "pass", starting: "sync", failed: "error", untrusted: "shield", stopped: "circle-slash" };
  const server: QuickPickItem = {
    label: `$(${status === "disabled" ? "circle-slash" : icon[status]}) ${name}`,
    description: status,
    detail: diagnostics.join(" "),
  };
  return [separator(`MCP server ${name}`), server, ...tools.map(toolItem)];
}

function toolItem({ name, description, loaded, access }: Tool): QuickPickItem {
  return { label: `$(tools) ${name}`, description: loaded ? `${access}, loaded` : access, detail: description };
}

function separator(label: string): QuickPickItem {
  return { label, kind: QuickPickItemKind.Separator };
}

/** The server shows the log itself. */
async function showLog({ client }: Parts): Promise<void> {
  await client.execute("hel.openLog", {});
}

async function setApiKey({ client }: Parts): Promise<void> {
  const name = workspace.getConfiguration("hel").get("model.apiKeyEnv", "HEL_API_KEY");
  const key = await window.showInputBox({
    title: "Hel: API Key",
    prompt: `Kept in the editor's secret storage, given to the server as ${name}. Empty: forget it.`,
    password: true,
    ignoreFocusOut: true,
  });
  if (key !== undefined) {
    await client.setApiKey(key.trim());
  }
}
