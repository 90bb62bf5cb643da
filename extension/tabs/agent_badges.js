/**
 * The mark in a tab that an agent works in: a small badge in a corner of the page that names the agent.
 *
 * It is style and nothing else: the document has no element more, so neither the page's scripts nor an agent that reads
 * the page come upon it. It takes no clicks, is not in the accessibility tree, not on paper, and not in the pictures
 * agents take. With no hub there is no agent, and no mark.
 */

import { textOf } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {{ label: string, color: string }} Mark */

const STORED = "marks";
const MOST = 500;
const LONGEST_LABEL = 60;
/** The colours of tab groups, as the browser shows them; others come as `#rrggbb`. @type {Readonly<Record<string, string>>} */
const COLORS = {
  grey: "#5f6368",
  blue: "#1a73e8",
  red: "#d93025",
  yellow: "#b06000",
  green: "#188038",
  pink: "#d01884",
  purple: "#8430ce",
  cyan: "#00796b",
  orange: "#c4460a",
};
/** No agent's picture waits longer for a page to hide its mark. */
const HIDE_MS = 500;

export class Marks {
  /** @type {Map<number, Mark>} */
  #marks = new Map();
  #ready = Promise.resolve();
  #note;

  /** @param {(message: string) => void} note */
  constructor(note) {
    this.#note = note;
  }

  /** Listen to the browser; call this while the worker starts. */
  start() {
    this.#ready = this.#recall().catch((error) => this.#note(`The marks were not remembered: ${textOf(error)}`));
    chrome.webNavigation.onCommitted.addListener(({ tabId, frameId }) => {
      if (frameId === 0) void this.#ready.then(() => this.#draw(tabId));
    });
    chrome.tabs.onRemoved.addListener((tabId) => this.#marks.delete(tabId));
  }

  /**
   * These tabs have marks, and no others.
   * @param {Params} params of `agents.marks`
   */
  change({ tabs }) {
    /** @type {Map<number, Mark>} */
    const next = new Map();
    for (const given of Array.isArray(tabs) ? tabs.slice(0, MOST) : []) {
      const { tabId, label, color } = Object(given);
      if (!Number.isInteger(tabId) || typeof label !== "string" || label === "") continue;
      next.set(tabId, { label: label.slice(0, LONGEST_LABEL), color: colorOf(String(color)) });
    }
    this.#ready = this.#ready
      .then(async () => {
        const before = this.#marks;
        this.#marks = next;
        const touched = [...new Set([...before.keys(), ...next.keys()])].filter((tabId) => {
          const [one, other] = [before.get(tabId), next.get(tabId)];
          return one?.label !== other?.label || one?.color !== other?.color;
        });
        await chrome.storage.session.set({ [STORED]: [...next] });
        // Not waited for: a page that is blocked would hold up all others.
        for (const tabId of touched) void this.#erase(tabId, before.get(tabId)).then(() => this.#draw(tabId));
      })
      .catch((error) => this.#note(`The marks were not changed: ${textOf(error)}`));
  }

  /**
   * Do something during which a tab's mark is not to be seen.
   * @template Given
   * @param {number} tabId
   * @param {() => Promise<Given>} work
   * @returns {Promise<Given>}
   */
  async without(tabId, work) {
    if (!this.#marks.has(tabId)) return work();
    await Promise.race([this.#erase(tabId), new Promise((resolve) => setTimeout(resolve, HIDE_MS))]);
    try {
      return await work();
    } finally {
      void this.#draw(tabId);
    }
  }

  async #recall() {
    const { [STORED]: stored } = await chrome.storage.session.get(STORED);
    if (Array.isArray(stored)) this.#marks = new Map(stored);
  }

  /** @param {number} tabId */
  async #draw(tabId) {
    const mark = this.#marks.get(tabId);
    if (mark) await chrome.scripting.insertCSS(styled(tabId, mark)).catch(unmarkable);
  }

  /**
   * @param {number} tabId
   * @param {Mark} [mark] the one it has
   */
  async #erase(tabId, mark = this.#marks.get(tabId)) {
    if (mark) await chrome.scripting.removeCSS(styled(tabId, mark)).catch(unmarkable);
  }
}

/** A page of the browser's own takes no mark, and one that was left needs none. */
function unmarkable() {
  return null;
}

/** @param {string} color */
function colorOf(color) {
  return /^#[0-9a-f]{6}$/i.test(color) ? color : (COLORS[color] ?? "#1a73e8");
}

/**
 * The style that draws a mark; the same each time, so that it can be taken away again.
 * @param {number} tabId
 * @param {Mark} mark
 * @returns {chrome.scripting.CSSInjection}
 */
function styled(tabId, { label, color }) {
  // Every character that means something in a style is written as its number.
  const words = label.replace(/[^\p{L}\p{N} ._-]/gu, (letter) => `\\${(letter.codePointAt(0) ?? 0).toString(16)} `);
  const rules = [
    "all: initial",
    // What follows the stroke is what a screen reader says: nothing.
    `content: "${words}" / ""`,
    "position: fixed",
    "right: 8px",
    "bottom: 8px",
    "z-index: 2147483647",
    "max-width: 160px",
    "padding: 2px 8px",
    "border-radius: 9px",
    "overflow: hidden",
    "color: #fff",
    `background: ${color}`,
    "font: 500 11px/14px system-ui, sans-serif",
    "text-overflow: ellipsis",
    "white-space: nowrap",
    "box-shadow: 0 1px 3px rgb(0 0 0 / 30%)",
    "opacity: 0.9",
    "pointer-events: none",
    "user-select: none",
  ];
  const css = `@media screen { :root::after { ${rules.map((rule) => `${rule} !important;`).join(" ")} } }`;
  return { target: { tabId }, css, origin: "USER" };
}
