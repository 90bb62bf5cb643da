/**
 * Renders a model's text: paragraphs, headings, lists, code and emphasis, built element by element.
 *
 * The text is untrusted: nothing in it becomes markup, URLs stay text that cannot be clicked, and characters that change
 * the direction of text are shown as code points.
 */

import { h } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const HEADING = /^ {0,3}#{1,6}\s+(.*?)\s*#*$/;
const ITEM = /^(\s*)([-*+•]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}(?:>\s?)+/;
/** Code first, because its content is literal. Bounded, so that every text is parsed quickly. */
const INLINE =
  /(`{1,3})([^`]|[^`].{0,500}?[^`])\1(?!`)|\*\*(?=\S)(.{1,1000}?)\*\*|(?<![\w*])\*(?=\S)([^*]{1,1000}?)\*(?![\w*])|!?\[([^\]]{0,300})\]\(<?([^\s()<>]{1,500})>?(?: "[^"]{0,200}")?\)/g;
const DEEPEST = 3;
/** Characters that change the direction of text, and invisible ones. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e0fff}]/gu;

/**
 * The blocks of a text.
 * @param {string} text
 * @param {number} [depth] of quotes around it
 * @returns {Child[]}
 */
export function markdown(text, depth = 0) {
  const lines = text.replaceAll("\r\n", "\n").replace(HIDDEN, shown).split("\n");
  /** @type {Child[]} */
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const fence = FENCE.exec(line);
    if (line.trim() === "") at += 1;
    else if (fence) {
      const end = closing(lines, at + 1, fence[1] ?? "```");
      blocks.push(code(lines.slice(at + 1, end).join("\n"), fence[2] ?? ""));
      at = end + 1;
    } else if (RULE.test(line)) {
      blocks.push(h("hr"));
      at += 1;
    } else if (HEADING.test(line)) {
      blocks.push(h("p", { class: "heading" }, inline(HEADING.exec(line)?.[1] ?? "")));
      at += 1;
    } else {
      const kind = kindOf(line);
      const end = until(lines, at, kind);
      blocks.push(block(kind, lines.slice(at, end), depth));
      at = end;
    }
  }
  return blocks;
}

/** @param {string} hidden */
function shown(hidden) {
  return `⟨U+${(hidden.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/**
 * Where a code block ends; an incomplete one ends with the text.
 * @param {string[]} lines
 * @param {number} from
 * @param {string} fence
 */
function closing(lines, from, fence) {
  const found = lines.findIndex(
    (line, index) => index >= from && line.trim().startsWith(fence) && /^\s*[`~]+\s*$/.test(line),
  );
  return found < 0 ? lines.length : found;
}

/** @param {string} line */
function kindOf(line) {
  if (ITEM.test(line)) return "list";
  if (QUOTE.test(line)) return "quote";
  return line.trimStart().startsWith("|") ? "table" : "text";
}

/**
 * @param {string[]} lines
 * @param {number} from
 * @param {string} kind
 */
function until(lines, from, kind) {
  let at = from + 1;
  for (; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const goesOn = kind === "list" && /^\s+\S/.test(line);
    if (line.trim() === "" || FENCE.test(line) || HEADING.test(line) || RULE.test(line)) break;
    if (kindOf(line) !== kind && !goesOn) break;
  }
  return at;
}

/**
 * @param {string} kind
 * @param {string[]} lines
 * @param {number} depth
 */
function block(kind, lines, depth) {
  if (kind === "list") return list(lines);
  if (kind === "table") return code(lines.join("\n"), "");
  if (kind === "quote" && depth < DEEPEST) {
    return h("blockquote", null, markdown(lines.map((line) => line.replace(QUOTE, "")).join("\n"), depth + 1));
  }
  return h("p", null, broken(lines));
}

/**
 * Line breaks are kept.
 * @param {string[]} lines
 * @returns {Child[]}
 */
function broken(lines) {
  return lines.flatMap((line, index) => [index > 0 ? h("br") : null, ...inline(line.trim())]);
}

/** @param {string[]} lines */
function list(lines) {
  /** @type {{ depth: number, mark: string, lines: string[] }[]} */
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) items.push({ depth: (item[1] ?? "").length, mark: item[2] ?? "-", lines: [item[3] ?? ""] });
    else items.at(-1)?.lines.push(line);
  }
  const least = Math.min(...items.map(({ depth }) => depth));
  const numbered = /\d/.test(items[0]?.mark ?? "");
  return h(
    numbered ? "ol" : "ul",
    { class: "written", start: numbered ? Number.parseInt(items[0]?.mark ?? "1", 10) : undefined },
    items.map(({ depth, lines: own }) =>
      h("li", { class: depth - least >= 4 ? "deeper" : depth > least ? "deep" : "" }, broken(own)),
    ),
  );
}

/**
 * @param {string} text
 * @param {string} language
 */
function code(text, language) {
  const label = language ? `Code, ${language}` : "Code";
  return h("pre", { tabindex: "0", role: "group", "aria-label": label }, h("code", null, text));
}

/**
 * @param {string} text
 * @returns {Child[]}
 */
function inline(text) {
  /** @type {Child[]} */
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    const [whole, , quoted, strong, soft, label, address] = found;
    parts.push(text.slice(from, found.index));
    if (quoted !== undefined) parts.push(h("code", null, quoted.trim()));
    else if (strong !== undefined) parts.push(h("strong", null, inline(strong)));
    else if (soft !== undefined) parts.push(h("em", null, inline(soft)));
    else parts.push(label && label !== address ? `${label} (${address})` : String(address));
    from = found.index + whole.length;
  }
  parts.push(text.slice(from));
  return parts;
}
