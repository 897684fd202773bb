/**
 * A long walk, the same for the same seed: a person types, saves and undoes while the agent edits the same buffer. After
 * each step the editor and what the agent reads are what they are expected to be; after a save the disk is, too.
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { waitUntil } from "./editor";
import type { Reply } from "./model";
import { type Scenario, scenario } from "./scenario";

/** Keys that run commands of the server: the palette would take longer. */
const READ = "Control+Alt+F9";
const NEW = "Control+Alt+F10";

const seed = Number(process.env.HEL_WALK_SEED ?? 1);
const length = Number(process.env.HEL_WALK_STEPS ?? 300);

/** No name ends in another, so that a whole line occurs once. */
const start = ["red=1", "green=2", "blue=🟦é", "black=4", "white=5", ""].join("\n");

interface Step {
  action: "type" | "save" | "undo" | "edit" | "nothing";
  /** The line, from 0, and the word of a step that writes. */
  line: number;
  word: string;
  /** The text in the editor after the step. */
  text: string;
}

/** The same numbers for the same seed (a linear congruential generator). */
function generator(state: number): (below: number) => number {
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function plan(): Step[] {
  const random = generator(seed);
  const actions = ["type", "type", "type", "save", "undo", "edit", "edit"] as const;
  const history = [start];
  return Array.from({ length }, (_, number) => {
    let action: Step["action"] = actions[random(actions.length)] ?? "nothing";
    if (action === "undo" && history.length === 1) {
      action = "nothing";
    }
    const line = random(5);
    const word = `w${String(number)}`;
    if (action === "undo") {
      history.pop();
    } else if (action === "type" || action === "edit") {
      history.push(written(history.at(-1) ?? "", { action, line, word }));
    }
    return { action, line, word, text: history.at(-1) ?? "" };
  });
}

/** A person types at the end of a line; the agent replaces what is behind the equals sign. */
function written(text: string, { action, line, word }: Pick<Step, "action" | "line" | "word">): string {
  const lines = text.split("\n");
  const old = lines[line] ?? "";
  lines[line] = action === "type" ? `${old}${word}` : `${old.slice(0, old.indexOf("=") + 1)}${word}🟦`;
  return lines.join("\n");
}

function replies(steps: readonly Step[]): Reply[] {
  return steps.flatMap(({ action, line, text }, index) => {
    const path = "config.ini";
    const read = [{ tool_calls: [{ name: "read_file", arguments: { path } }] }, { text: `seen ${String(index)}.` }];
    if (action !== "edit") {
      return read;
    }
    const search = (steps[index - 1]?.text ?? start).split("\n")[line] ?? "";
    const replace = text.split("\n")[line] ?? "";
    const edit = { tool_calls: [{ name: "search_replace", arguments: { path, search, replace } }] };
    return [edit, { text: `said ${String(index)}.` }, ...read];
  });
}

async function take({ editor, model, workspace }: Scenario, step: Step, index: number): Promise<void> {
  const { keyboard } = editor.page;
  switch (step.action) {
    case "type":
      // A move of the cursor ends what one undo takes back.
      await keyboard.press("Control+Home");
      for (let line = 0; line < step.line; line += 1) {
        await keyboard.press("ArrowDown");
      }
      await keyboard.press("End");
      await keyboard.type(step.word);
      break;
    case "undo":
      await keyboard.press("Control+z");
      break;
    case "save":
      await keyboard.press("Control+s");
      await waitUntil(
        () => readFile(join(workspace, "config.ini"), "utf8"),
        (saved): saved is string => saved === step.text,
        `step ${String(index)} to be saved`,
      );
      break;
    case "edit":
      await editor.ask(`step ${String(index)}`);
      await editor.transcript.getByText(`said ${String(index)}.`).waitFor();
      break;
    case "nothing":
  }
  await editor.shows(step.text);
  await keyboard.press(READ);
  await editor.transcript.getByText(`seen ${String(index)}.`).waitFor();
  const told = (await model.requests()).at(-1)?.messages.findLast(({ role }) => role === "tool")?.content ?? "";
  assert.equal(told.slice(told.indexOf("\n") + 1), step.text, `what the model read after step ${String(index)}`);
  if (index % 20 === 19) {
    // Each request holds its whole conversation.
    await keyboard.press(NEW);
  }
}

const steps = plan();

scenario(
  `a person and the agent write in the same buffer for ${String(length)} steps (seed ${String(seed)})`,
  {
    replies: [{ text: "begun." }, ...replies(steps)],
    file: { name: "config.ini", text: start },
    settings: { "hel.access": "auto" },
    keybindings: [
      { key: READ.replace("Control", "Ctrl"), command: "hel.ask", args: { prompt: "read" } },
      { key: NEW.replace("Control", "Ctrl"), command: "hel.newSession" },
    ],
    timeout: 600_000,
  },
  async (scene) => {
    await scene.editor.shows(start);
    // The first question starts the server, and shows the transcript.
    await scene.editor.ask("begin");
    await scene.editor.transcript.getByText("begun.").waitFor();
    await scene.editor.typeAtEnd("");
    for (const [index, step] of steps.entries()) {
      await take(scene, step, index);
    }
  },
);
