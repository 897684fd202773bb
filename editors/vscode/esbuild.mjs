// Bundles the extension (for Node), the transcript's page (for a browser) and the tests (for Node's test runner).

import { readdir, readFile, writeFile } from "node:fs/promises";
import * as esbuild from "esbuild";

const production = process.argv.includes("--production");
const common = { bundle: true, logLevel: "warning", minify: production, sourcemap: !production, metafile: true };

const extension = await esbuild.build({
  ...common,
  entryPoints: ["src/extension.ts"],
  outdir: "out",
  platform: "node",
  target: "node20",
  external: ["vscode"],
});
await esbuild.build({
  ...common,
  entryPoints: { transcript: "src/webview/transcript.ts" },
  outdir: "out",
  target: "chrome122",
});
if (production) {
  await writeFile("out/LICENSES.txt", await licenses(Object.keys(extension.metafile.inputs)));
} else {
  const tests = (await readdir("test", { recursive: true })).filter((file) => file.endsWith(".test.ts"));
  await esbuild.build({
    ...common,
    entryPoints: tests.map((file) => `test/${file}`),
    outbase: "test",
    outdir: "out/test",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
  });
}

/** The licences of the packages that went into the bundle. */
async function licenses(inputs) {
  const packages = new Set(inputs.map((file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]));
  packages.delete(undefined);
  const texts = [...packages].sort().map(async (folder) => {
    const { name, version } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    return `${name} ${version}\n\n${file === undefined ? "" : (await readFile(`${folder}/${file}`, "utf8")).trim()}\n`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`);
}
