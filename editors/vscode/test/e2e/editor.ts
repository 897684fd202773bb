/** A real VS Code in a real browser, with the extension installed, driven by keys and clicks. */

import { rmSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type BrowserContext, chromium, type FrameLocator, type Locator, type Page } from "playwright-core";
import * as places from "./places";
import { start, type Started } from "./processes";

export interface EditorOptions {
  /** A new folder for everything that the editor and the browser keep. */
  home: string;
  workspace: string;
  /** The file that is open at the beginning. */
  file: string;
  settings: Record<string, unknown>;
  keybindings?: readonly Keybinding[];
  environment?: Record<string, string>;
  /** Whether the editor asks if the workspace is to be trusted. */
  asksForTrust?: boolean;
}

/** A key that runs a command, of the server's too, with its argument. */
export interface Keybinding {
  key: string;
  command: string;
  args?: Record<string, unknown>;
}

const node = join(places.editor, "node/bin/node");
const codeServer = join(places.editor, "editor/node_modules/code-server/out/node/entry.js");
const chromiumArguments = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const window = { width: 1120, height: 640 };

export class Editor {
  private constructor(
    readonly page: Page,
    private readonly browser: BrowserContext,
    private readonly process: Started,
    private readonly options: EditorOptions,
  ) {}

  static async open(options: EditorOptions): Promise<Editor> {
    const process = await startCodeServer(options);
    try {
      const browser = await chromium.launchPersistentContext(join(options.home, "browser"), {
        executablePath: places.chromium,
        args: chromiumArguments,
        headless: true,
        viewport: window,
        deviceScaleFactor: places.readmePicture === "" ? 1 : 2,
      });
      const page = browser.pages()[0] ?? (await browser.newPage());
      const editor = new Editor(page, browser, process, options);
      const authority = new URL(process.value).host;
      const file = `vscode-remote://${authority}${join(options.workspace, options.file)}`;
      const query = new URLSearchParams({ folder: options.workspace, payload: JSON.stringify([["openFile", file]]) });
      await page.goto(`${process.value}?${query.toString()}`);
      // The extension is there once its status item is; before that the palette would not know its commands.
      await editor.status.waitFor();
      return editor;
    } catch (error) {
      await process.end();
      throw error;
    }
  }

  async close(): Promise<void> {
    try {
      await this.browser.close();
    } finally {
      await this.process.end();
    }
  }

  /** Changes settings while the editor runs. */
  async set(settings: EditorOptions["settings"]): Promise<void> {
    await writeSettings(this.options, { ...this.options.settings, ...settings });
  }

  /** Runs a command by its title in the palette. */
  async run(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    await this.input.fill(`>${title}`);
    await this.pick(title);
  }

  /** Opens a file of the workspace by its name. */
  async openFile(name: string): Promise<void> {
    await this.page.keyboard.press("F1");
    await this.input.fill(name);
    await this.pick(name);
  }

  /** Runs `Hel: Ask…` and types the prompt. */
  async ask(prompt: string): Promise<void> {
    await this.run("Hel: Ask…");
    await this.type("Hel: Ask", prompt);
  }

  /** Types into the input box with this title. */
  async type(title: string, text: string): Promise<void> {
    await this.page.locator(".quick-input-title", { hasText: title }).waitFor();
    await this.page.keyboard.type(text);
    await this.page.keyboard.press("Enter");
  }

  /** The line of a list to pick from that says `text`. */
  row(text: string): Locator {
    return this.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first();
  }

  async pick(text: string): Promise<void> {
    await this.row(text).click();
  }

  /** The lines of the editor that is in front. */
  async text(): Promise<string> {
    const lines = await this.page
      .locator(".editor-instance .monaco-editor:not(.in-diff-editor) .view-line")
      .evaluateAll((elements) =>
        elements
          .map((element) => ({ top: parseFloat((element as HTMLElement).style.top), text: element.textContent }))
          .sort((one, other) => one.top - other.top)
          .map(({ text }) => text.replaceAll("\u00a0", " ")),
      );
    return lines.join("\n");
  }

  /** Waits until the editor in front shows exactly `text`. */
  async shows(text: string): Promise<void> {
    await waitUntil(
      () => this.text(),
      (shown): shown is string => shown === text,
      `the editor to show ${JSON.stringify(text)}`,
    );
  }

  /** Types at the end of the file in front. */
  async typeAtEnd(text: string): Promise<void> {
    await this.page.locator(".editor-instance .monaco-editor .view-lines").last().click();
    await this.page.keyboard.press("Control+End");
    await this.page.keyboard.type(text);
  }

  /** The button of the notification that says `text`. */
  button(text: string | RegExp, button: string): Locator {
    return this.page
      .locator(".notifications-toasts .notification-list-item", { hasText: text })
      .locator(".monaco-button", { hasText: new RegExp(`^${button}$`) });
  }

  /** Brings back the notifications that have gone out of sight. */
  async showNotifications(): Promise<void> {
    await this.page.keyboard.press("Escape");
    await this.page.keyboard.press("Control+k");
    await this.page.keyboard.press("Control+Shift+n");
  }

  /** The button of the dialog that says `text`. */
  dialogButton(text: string | RegExp, button: string): Locator {
    return this.page
      .locator(".monaco-dialog-box", { hasText: text })
      .locator(".monaco-button", { hasText: new RegExp(`^${button}$`) });
  }

  tab(text: string): Locator {
    return this.page.locator(".tabs-container .tab", { hasText: text });
  }

  get status(): Locator {
    return this.page.locator(".statusbar-item[id^='hel-lsp.hel']");
  }

  get transcript(): FrameLocator {
    return this.page.frameLocator("iframe.webview").frameLocator("iframe#active-frame");
  }

  async screenshot(name: string): Promise<void> {
    await mkdir(places.screenshots, { recursive: true });
    await this.page.screenshot({ path: join(places.screenshots, `${name}.png`) });
  }

  private get input(): Locator {
    return this.page.locator(".quick-input-widget .quick-input-box input");
  }
}

/** Asks again and again, as there is no event for what another process shows; fails after thirty seconds. */
export async function waitUntil<Value, Right extends Value>(
  look: () => Promise<Value>,
  isRight: (value: Value) => value is Right,
  what: string,
): Promise<Right> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const value = await look();
    if (isRight(value)) {
      return value;
    }
    if (Date.now() > deadline) {
      throw new Error(`waited in vain for ${what}; it was ${JSON.stringify(value)}`);
    }
    await setTimeout(20);
  }
}

let extensions: Promise<string> | undefined;

/** The folder with the packaged extension, which all editors of a test file share. */
export function installedExtension(): Promise<string> {
  extensions ??= installExtension();
  return extensions;
}

async function installExtension(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), "hel-e2e-extension-"));
  process.on("exit", () => {
    rmSync(home, { recursive: true, force: true });
  });
  const folder = join(home, "extensions");
  const args = ["--extensions-dir", folder, "--user-data-dir", join(home, "data")];
  const { end } = await start(
    [node, codeServer, ...args, "--config", join(home, "config.yaml"), "--install-extension", places.extension],
    /was successfully installed/,
    { env: environment({}) },
  );
  await end();
  return folder;
}

async function startCodeServer(options: EditorOptions): Promise<Started> {
  await writeSettings(options, options.settings);
  await writeFile(join(dataFolder(options), "User", "keybindings.json"), JSON.stringify(options.keybindings ?? []));
  return await start(
    [
      ...[node, codeServer, "--auth", "none", "--bind-addr", "127.0.0.1:0"],
      ...["--config", join(options.home, "config.yaml"), "--user-data-dir", dataFolder(options)],
      ...["--extensions-dir", await installedExtension()],
      ...["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"],
    ],
    /HTTP server listening on (\S+)/,
    { env: environment({ HOME: options.home, ...options.environment }) },
  );
}

async function writeSettings(options: EditorOptions, more: EditorOptions["settings"]): Promise<void> {
  const settings = {
    "remote.autoForwardPorts": false,
    "workbench.startupEditor": "none",
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "chat.disableAIFeatures": true,
    "files.autoSave": "off",
    "editor.minimap.enabled": false,
    "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
    "telemetry.telemetryLevel": "off",
    "security.workspace.trust.enabled": options.asksForTrust === true,
    "hel.server.path": places.server,
    ...more,
  };
  // Some settings count in the one place only, some in the other.
  for (const place of ["User", "Machine"]) {
    const folder = join(dataFolder(options), place);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "settings.json"), JSON.stringify(settings));
  }
}

function dataFolder({ home }: EditorOptions): string {
  return join(home, "data");
}

/** The test's own environment, less what would tell the server of a model, and with no marketplace. */
function environment(more: Record<string, string>): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(HEL_|NODE_|VSCODE_)|_API_KEY$/.test(name));
  return { ...Object.fromEntries(kept), EXTENSIONS_GALLERY: '{"serviceUrl":"http://127.0.0.1:9/"}', ...more };
}
