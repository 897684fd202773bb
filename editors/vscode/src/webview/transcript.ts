/** The transcript's page. Everything that is shown is set as text, never as markup. */

import type { TurnEvent, TurnResult } from "../protocol";
import { applyEvent, type Block, isRunning, newTurn, sameTurn, type Turn } from "../turn";
import { markdown } from "./markdown";
import type { FromPage, ToPage } from "./messages";

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void };

/** A turn with the elements that show it; `blocks` is in step with the turn's blocks. */
interface Article {
  turn: Turn;
  element: HTMLElement;
  prompt: HTMLElement;
  blocks: HTMLElement[];
  footer: HTMLElement;
}

const editor = acquireVsCodeApi();
const transcript = document.querySelector("main") ?? document.body;
const empty = document.getElementById("empty");
let articles: Article[] = [];

document.getElementById("ask")?.addEventListener("click", () => {
  editor.postMessage({ type: "ask" });
});
window.addEventListener("message", ({ data }: MessageEvent<ToPage>) => {
  const atEnd = data.type === "reset" || window.innerHeight + window.scrollY >= document.body.scrollHeight - 8;
  receive(data);
  empty?.toggleAttribute("hidden", articles.length > 0);
  if (atEnd) {
    window.scrollTo(0, document.body.scrollHeight);
  }
});
editor.postMessage({ type: "ready" });

function receive(message: ToPage): void {
  switch (message.type) {
    case "reset":
      articles = [];
      transcript.replaceChildren();
      message.turns.forEach(show);
      return;
    case "turn":
      show(message.turn);
      return;
    case "event":
      apply(message.event, message.line);
  }
}

function apply(event: TurnEvent, line: number): void {
  const article = articles.find(({ turn }) => sameTurn(turn, event)) ?? show(newTurn(event));
  const index = applyEvent(article.turn, event, line);
  if (index >= 0) {
    showBlock(article, index);
  }
  showFooter(article);
}

function show(turn: Turn): Article {
  let article = articles.find((one) => sameTurn(one.turn, turn));
  if (article === undefined) {
    article = {
      turn,
      element: create("article"),
      prompt: create("h2"),
      blocks: [],
      footer: create("footer"),
    };
    article.element.append(article.prompt, article.footer);
    transcript.append(article.element);
    articles.push(article);
  }
  article.turn = turn;
  article.prompt.textContent = turn.prompt;
  turn.blocks.forEach((_, index) => {
    showBlock(article, index);
  });
  showFooter(article);
  return article;
}

function showBlock({ turn, blocks, footer }: Article, index: number): void {
  const block = turn.blocks[index];
  if (block === undefined) {
    return;
  }
  const old = blocks[index];
  const element = render(block);
  if (old === undefined) {
    footer.before(element);
  } else {
    // What a person has opened stays open.
    if (old instanceof HTMLDetailsElement && element instanceof HTMLDetailsElement) {
      element.open = old.open;
    }
    old.replaceWith(element);
  }
  blocks[index] = element;
}

function render(block: Block): HTMLElement {
  switch (block.type) {
    case "text":
      return create("section", "answer", ...markdown(block.text));
    case "reasoning":
      return details("reasoning", ["Reasoning"], block.text);
    case "toolCall":
      return details(
        `call ${block.status ?? ""}`,
        [
          create("code", "name", block.name),
          " ",
          create("span", "what", oneLine(block.arguments)),
          status(block.status ?? ""),
        ],
        typeof block.arguments === "string" ? block.arguments : JSON.stringify(block.arguments, null, 2),
      );
    case "edit":
      return edit(block);
    case "notice":
      return create("p", "notice", block.message);
  }
}

function edit({ uri, applied, added, removed, reason = "", line }: Extract<Block, { type: "edit" }>): HTMLElement {
  const name = decodeURIComponent(uri.slice(uri.lastIndexOf("/") + 1));
  const button = create("button", "link", `${name}:${String(line + 1)}`) as HTMLButtonElement;
  button.title = decodeURIComponent(uri.replace(/^file:\/\//, ""));
  button.addEventListener("click", () => {
    editor.postMessage({ type: "open", uri, line });
  });
  const outcome = applied === true ? "edited" : applied === false ? "not edited" : "edited, perhaps";
  const counts = [create("ins", "", `+${String(added)}`), " ", create("del", "", `−${String(removed)}`)];
  const why = applied === true || reason === "" ? [] : [` (${reason})`];
  return create("p", "edit", `${outcome} `, button, " ", ...counts, ...why);
}

function showFooter({ turn, footer, element }: Article): void {
  element.setAttribute("aria-busy", String(isRunning(turn)));
  if (turn.restored === true) {
    footer.replaceChildren();
  } else if (turn.lost === true) {
    footer.replaceChildren(create("p", "error", "The server stopped before the turn had ended."));
  } else if (turn.result === undefined) {
    footer.replaceChildren(create("p", "running", turn.step > 0 ? `step ${String(turn.step)} …` : "starting …"));
  } else {
    footer.replaceChildren(...ending(turn.result));
  }
}

function ending({ stopReason, error, steps, usage, unsaved }: TurnResult): HTMLElement[] {
  const tokens = `${usage.inputTokens.toLocaleString()} tokens in, ${usage.outputTokens.toLocaleString()} out`;
  const how = { end_turn: "done", cancelled: "cancelled", error: "failed", refusal: "refused" } as const;
  const reason = stopReason in how ? how[stopReason as keyof typeof how] : stopReason.replace("_", " ");
  const lines = [create("p", "", `${reason} · ${String(steps)} ${steps === 1 ? "step" : "steps"} · ${tokens}`)];
  if (unsaved.length > 0) {
    const names = unsaved.map((uri) => decodeURIComponent(uri.slice(uri.lastIndexOf("/") + 1)));
    lines.unshift(create("p", "unsaved", `Not saved yet: ${names.join(", ")}`));
  }
  if (error !== null) {
    lines.unshift(create("p", "error", error.message));
  }
  return lines;
}

function details(className: string, summary: (Node | string)[], text: string): HTMLElement {
  return create("details", className, create("summary", "", ...summary), create("pre", "", text));
}

function status(text: string): HTMLElement {
  return create("span", "status", text);
}

/** The arguments of a call, short enough to tell which one it is. */
function oneLine(given: unknown): string {
  if (typeof given !== "object" || given === null) {
    return String(given);
  }
  const values = Object.values(given).flat() as unknown[];
  const words = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  return words.join(" · ").replaceAll(/\s+/g, " ");
}

function create(tag: string, className = "", ...content: (Node | string)[]): HTMLElement {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...content);
  return element;
}
