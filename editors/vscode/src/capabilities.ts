/** What this editor tells the server that it takes beyond the protocol. */

import type { ClientCapabilities, StaticFeature } from "vscode-languageclient/node";
import { experimentalCapabilities } from "./protocol";

/** Only fills in capabilities: what answers to them is registered with the client, and goes with it. */
export class OptIns implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.experimental = { hel: experimentalCapabilities };
    // A turn's progress is shown from its events, with the Cancel button that the language client's has not.
    capabilities.window = { ...capabilities.window, workDoneProgress: false };
  }

  initialize(): void {
    // nothing to register
  }

  getState(): { kind: "static" } {
    return { kind: "static" };
  }

  clear(): void {
    // nothing to take back
  }
}
