/** The diff that is shown before an edit is approved: two read-only documents side by side, closed afterwards. */

import { basename } from "node:path";
import {
  commands,
  type Disposable,
  type TextDocumentContentProvider,
  TabInputTextDiff,
  Uri,
  window,
  workspace,
} from "vscode";
import type { CloseDiff, ShowDiff } from "./protocol";

const scheme = "hel-diff";

interface Side {
  text: string;
  of: string;
}

export class Diffs implements Disposable, TextDocumentContentProvider {
  private readonly sides = new Map<string, Side>();
  private readonly registration = workspace.registerTextDocumentContentProvider(scheme, this);
  private count = 0;

  async show({ uri, before, after, title }: ShowDiff): Promise<void> {
    this.count += 1;
    const left = this.add(uri, "before", before ?? "");
    const right = this.add(uri, "after", after);
    // The focus stays where the user is typing.
    await commands.executeCommand("vscode.diff", left, right, title, { preserveFocus: true, preview: false });
  }

  async close({ uri }: CloseDiff): Promise<void> {
    const tabs = window.tabGroups.all
      .flatMap((group) => group.tabs)
      .filter(
        ({ input }) => input instanceof TabInputTextDiff && this.sides.get(input.modified.toString())?.of === uri,
      );
    await window.tabGroups.close(tabs, true);
    for (const [key, side] of this.sides) {
      if (side.of === uri) {
        this.sides.delete(key);
      }
    }
  }

  provideTextDocumentContent(uri: Uri): string {
    return this.sides.get(uri.toString())?.text ?? "";
  }

  dispose(): void {
    this.registration.dispose();
  }

  /** The file's own name at the end gives it its colours. */
  private add(of: string, side: "before" | "after", text: string): Uri {
    const uri = Uri.from({ scheme, path: `/${String(this.count)}/${side}/${basename(Uri.parse(of).path)}` });
    this.sides.set(uri.toString(), { text, of });
    return uri;
  }
}
