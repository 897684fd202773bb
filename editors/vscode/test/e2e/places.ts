/** Where the things are that the tests need. `run.sh` sets the environment; without it the repository's own are taken. */

import { resolve } from "node:path";

const repository = resolve(import.meta.dirname, "../../../../..");

function place(variable: string, fallback: string): string {
  return process.env[variable] ?? resolve(repository, fallback);
}

/** The Python that has hel-lsp installed, and the server's executable beside it. */
export const python = place("HEL_PYTHON", ".venv/bin/python");
export const server = place("HEL_SERVER", ".venv/bin/hel-lsp");
/** What `install-editor.sh` has made. */
export const editor = place("HEL_VSCODE", ".tools/vscode");
export const screenshots = place("HEL_SCREENSHOTS", ".tools/vscode/screenshots");
export const inventory = resolve(repository, "hel_lsp/demo/inventory.py");
export const chromium = process.env.HEL_CHROMIUM ?? "/usr/bin/chromium";
export const extension = resolve(repository, "editors/vscode/out/hel.vsix");
/** Set to have the picture for the repository's README made. */
export const readmePicture =
  process.env.HEL_README_PICTURE === "1" ? resolve(repository, "docs/images/vscode.png") : "";
