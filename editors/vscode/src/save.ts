/** Saving what the server asks to have saved. */

import { Uri, workspace } from "vscode";
import type { Saved } from "./protocol";

/** Returns those of `uris` that are on disk as the editor has them; a document that is not open is. */
export async function save(uris: string[]): Promise<Saved> {
  const saved: string[] = [];
  for (const uri of uris) {
    const wanted = Uri.parse(uri).toString();
    const document = workspace.textDocuments.find((one) => one.uri.toString() === wanted);
    if (document === undefined || !document.isDirty || (await document.save())) {
      saved.push(uri);
    }
  }
  return { saved };
}
