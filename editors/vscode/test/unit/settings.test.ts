/** The settings that the extension declares, against those that the server reads. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import manifest from "../../package.json";
import { python } from "../e2e/places";

const dump = `
import json
from dataclasses import fields, is_dataclass
from hel_lsp.settings import Settings

def walk(section, prefix):
    for item in fields(section):
        first, *rest = item.name.split("_")
        name = prefix + first + "".join(word.capitalize() for word in rest)
        value = getattr(section, item.name)
        yield from walk(value, name + ".") if is_dataclass(value) else [(name, value)]

print(json.dumps(dict(walk(Settings(), "hel."))))
`;

/** With this extension the answer is in the transcript; the others are none of the server's business. */
const notShared = ["hel.answer", "hel.server.path", "hel.trace.server"];

function shared(settings: [string, unknown][]): Record<string, unknown> {
  return Object.fromEntries(settings.filter(([key]) => !notShared.includes(key)));
}

test("every setting of the server can be set, with the server's own default", () => {
  const server = JSON.parse(execFileSync(python, ["-c", dump], { encoding: "utf8" })) as Record<string, unknown>;
  const declared = manifest.contributes.configuration
    .flatMap(({ properties }) => Object.entries(properties))
    .map(([key, { default: value }]): [string, unknown] => [key, value === "" ? null : value]);
  assert.deepEqual(shared(declared), shared(Object.entries(server)));
});

test("what a repository must not set for itself has the scope of the machine", () => {
  for (const { properties } of manifest.contributes.configuration) {
    for (const [key, { scope }] of Object.entries(properties)) {
      const isMachine = /^hel\.(access$|model\.|tools\.|mcp\.trustAnnotations$|server\.)/.test(key);
      assert.equal(scope, isMachine ? "machine" : "window", key);
    }
  }
});
