/** Where the language client's own ways are not what is wanted here. */

import { CancellationTokenSource } from "vscode";
import { type ApplyWorkspaceEditParams, type Middleware, TextDocumentEdit } from "vscode-languageclient/node";
import type { AskArguments } from "./protocol";
import { serverSettings } from "./settings";

export interface Hooks {
  ask(argument: AskArguments): Promise<void>;
  /** An edit is about to be applied; `line` counts from 0. */
  willEdit(edit: { uri: string; line: number }): void;
  /** It was applied or refused; the server hears of that after this. */
  didEdit(): Promise<void>;
}

export function createMiddleware(hooks: Hooks): Middleware {
  return {
    workspace: {
      // Left alone, the client fills in the defaults of package.json, over those that the server works out.
      configuration: async (params, token, next) => {
        const answers = await next(params, token);
        return Array.isArray(answers)
          ? answers.map((answer: unknown, index) =>
              params.items[index]?.section === "hel" ? serverSettings() : answer,
            )
          : answers;
      },
      handleApplyEdit: async (params, next) => {
        for (const edit of places(params)) {
          hooks.willEdit(edit);
        }
        const result = await next(params, new CancellationTokenSource().token);
        await hooks.didEdit();
        return result;
      },
    },
    // The client registers the server's commands; what a code action asks comes this way.
    executeCommand: async (command, args: unknown[], next) => {
      if (command === "hel.ask") {
        await hooks.ask(args[0] as AskArguments);
        return undefined;
      }
      return (await next(command, args)) as unknown;
    },
  };
}

function places({ edit }: ApplyWorkspaceEditParams): { uri: string; line: number }[] {
  return (edit.documentChanges ?? []).filter(TextDocumentEdit.is).map(({ textDocument, edits: [first] }) => ({
    uri: textDocument.uri,
    line: first !== undefined && "range" in first ? first.range.start.line : 0,
  }));
}
