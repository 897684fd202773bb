/** The settings as the server takes them: nested, and only those that somebody has set. */

import { workspace } from "vscode";
import manifest from "../package.json";

/** These are for this extension and the language client; the server would not know them. */
const ownKeys = new Set(["server.path", "trace.server"]);

const serverKeys = manifest.contributes.configuration
  .flatMap((group) => Object.keys(group.properties))
  .map((key) => key.replace(/^hel\./, ""))
  .filter((key) => !ownKeys.has(key));

type Section = Record<string, unknown>;

/** A setting that is taken away again must be told as its default: the server keeps what it does not hear of. */
const told = new Set<string>();

export function serverSettings(): Section {
  const configuration = workspace.getConfiguration("hel");
  const settings: Section = {};
  for (const key of serverKeys) {
    const found = configuration.inspect(key);
    const isSet = [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue].some(
      (value) => value !== undefined && value !== null && value !== "",
    );
    if (isSet || told.has(key)) {
      told.add(key);
      put(settings, key.split("."), configuration.get(key));
    }
  }
  return settings;
}

function put(section: Section, [name, ...rest]: string[], value: unknown): void {
  if (name === undefined) {
    return;
  }
  if (rest.length === 0) {
    section[name] = value;
    return;
  }
  const inner = (section[name] ?? {}) as Section;
  section[name] = inner;
  put(inner, rest, value);
}
