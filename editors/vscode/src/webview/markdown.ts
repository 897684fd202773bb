/** The little of Markdown that makes an answer readable: fenced blocks, `code` and **strong**. All else stays as it is. */

/** The nodes for `text`; a fence that is not closed yet, as while streaming, reaches to the end. */
export function markdown(text: string): Node[] {
  return text
    .split(/^(?:```|~~~)/m)
    .flatMap((part, index) => (index % 2 === 0 ? prose(part.replace(/^\n/, "")) : [fenced(part)]));
}

function fenced(part: string): Node {
  const code = document.createElement("pre");
  code.textContent = part.replace(/^.*\n?/, "").replace(/\n$/, "");
  return code;
}

function prose(text: string): Node[] {
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((part, index) => {
    if (index % 2 === 0) {
      return document.createTextNode(part);
    }
    const isCode = part.startsWith("`");
    const element = document.createElement(isCode ? "code" : "strong");
    element.textContent = isCode ? part.slice(1, -1) : part.slice(2, -2);
    return element;
  });
}
