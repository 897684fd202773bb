/** What the scripted model replies, in the shape of the job that all these tests do. */

import type { Reply } from "./model";

export const prompt =
  "look up the port assigned to the api service in inventory and put it in config.ini; change nothing else";

export const config = "host=localhost\nport=7000\ntimeout=30\n";
export const changed = config.replace("port=7000", "port=8437");

const tools = ["mcp__inventory__list_services", "mcp__inventory__lookup_port"];

export const lookUpPort: Reply[] = [
  { text: "I will look it up in the inventory.", tool_calls: [{ name: "load_mcp_tool", arguments: { names: tools } }] },
  { tool_calls: [{ name: "mcp__inventory__list_services", arguments: {} }] },
  { tool_calls: [{ name: "mcp__inventory__lookup_port", arguments: { service: "api" } }] },
];

export const setPort: Reply = {
  tool_calls: [
    { name: "search_replace", arguments: { path: "config.ini", search: "port=7000", replace: "port=8437" } },
  ],
};

export const answer: Reply = { text: "The api service has port `8437`, and config.ini says so now." };
