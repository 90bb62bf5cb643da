/**
 * Agent badges: a small badge with the agent's name in a corner of each tab that an agent holds.
 *
 * A badge is only CSS: it adds no element, so neither the page's scripts nor an agent that reads the page see it. It
 * receives no clicks and is not in the accessibility tree, in print or in screenshots of agents. Without a hub there are
 * no badges.
 */

import { textOf } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {{ label: string, color: string }} Badge */

const STORAGE_KEY = "marks";
const MAX_TABS = 500;
const MAX_LABEL = 60;
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
/** How long a screenshot waits for a page to hide its badge. */
const HIDE_MS = 500;

export class AgentBadges {
  /** @type {Map<number, Badge>} */
  #badges = new Map();
  #ready = Promise.resolve();
  #note;

  /** @param {(message: string) => void} note */
  constructor(note) {
    this.#note = note;
  }

  /** Listen for events; call this while the worker starts. */
  start() {
    this.#ready = this.#restore().catch((error) => this.#note(`The agent badges could not be restored: ${textOf(error)}`));
    chrome.webNavigation.onCommitted.addListener(({ tabId, frameId }) => {
      if (frameId === 0) void this.#ready.then(() => this.#draw(tabId));
    });
    chrome.tabs.onRemoved.addListener((tabId) => this.#badges.delete(tabId));
  }

  /**
   * Set the tabs that have badges.
   * @param {Params} params of `agents.marks`
   */
  change({ tabs }) {
    /** @type {Map<number, Badge>} */
    const next = new Map();
    for (const given of Array.isArray(tabs) ? tabs.slice(0, MAX_TABS) : []) {
      const { tabId, label, color } = Object(given);
      if (!Number.isInteger(tabId) || typeof label !== "string" || label === "") continue;
      next.set(tabId, { label: label.slice(0, MAX_LABEL), color: colorOf(String(color)) });
    }
    this.#ready = this.#ready
      .then(async () => {
        const before = this.#badges;
        this.#badges = next;
        const touched = [...new Set([...before.keys(), ...next.keys()])].filter((tabId) => {
          const [one, other] = [before.get(tabId), next.get(tabId)];
          return one?.label !== other?.label || one?.color !== other?.color;
        });
        await chrome.storage.session.set({ [STORAGE_KEY]: [...next] });
        // Not awaited: a blocked page would delay the others.
        for (const tabId of touched) void this.#erase(tabId, before.get(tabId)).then(() => this.#draw(tabId));
      })
      .catch((error) => this.#note(`The agent badges could not be changed: ${textOf(error)}`));
  }

  /**
   * Do something while a tab's badge is hidden.
   * @template Result
   * @param {number} tabId
   * @param {() => Promise<Result>} work
   * @returns {Promise<Result>}
   */
  async hideDuring(tabId, work) {
    if (!this.#badges.has(tabId)) return work();
    await Promise.race([this.#erase(tabId), new Promise((resolve) => setTimeout(resolve, HIDE_MS))]);
    try {
      return await work();
    } finally {
      void this.#draw(tabId);
    }
  }

  async #restore() {
    const { [STORAGE_KEY]: stored } = await chrome.storage.session.get(STORAGE_KEY);
    if (Array.isArray(stored)) this.#badges = new Map(stored);
  }

  /** @param {number} tabId */
  async #draw(tabId) {
    const badge = this.#badges.get(tabId);
    if (badge) await chrome.scripting.insertCSS(badgeStyle(tabId, badge)).catch(ignoreFailure);
  }

  /**
   * @param {number} tabId
   * @param {Badge} [badge] the one it has
   */
  async #erase(tabId, badge = this.#badges.get(tabId)) {
    if (badge) await chrome.scripting.removeCSS(badgeStyle(tabId, badge)).catch(ignoreFailure);
  }
}

/** A page of the browser cannot have a badge, and one that was left needs none. */
function ignoreFailure() {
  return null;
}

/** @param {string} color */
function colorOf(color) {
  return /^#[0-9a-f]{6}$/i.test(color) ? color : (COLORS[color] ?? "#1a73e8");
}

/**
 * The CSS of a badge; always the same, so that it can be removed again.
 * @param {number} tabId
 * @param {Badge} badge
 * @returns {chrome.scripting.CSSInjection}
 */
function badgeStyle(tabId, { label, color }) {
  // Characters with a meaning in CSS are escaped.
  const text = label.replace(/[^\p{L}\p{N} ._-]/gu, (letter) => `\\${(letter.codePointAt(0) ?? 0).toString(16)} `);
  const rules = [
    "all: initial",
    // After the slash: the text for screen readers, which is empty.
    `content: "${text}" / ""`,
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
