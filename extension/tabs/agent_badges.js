/**
 * Agent badges: a small badge in a corner of each tab that an agent holds. It says which agent that is, what it does now,
 * and lets the person stop it.
 *
 * A badge is only CSS: it adds no element, so neither the page's scripts nor an agent that reads the page see it. It is
 * not in the accessibility tree, in print or in screenshots of agents. Its Stop button is a place: a listener in our world
 * of the page (stop_area.js) tells when the person clicks there. Without a hub there are no badges.
 */

import { textOf } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {{ label: string, color: string, doing: string }} Badge */
/** Where the Stop button is, in CSS pixels of the viewport. @typedef {{ left: number, top: number, right: number, bottom: number }} StopArea */

const STORAGE_KEY = "marks";
const MAX_TABS = 500;
const MAX_LABEL = 60;
const MAX_DOING = 80;
const STOP_AREA = "tabs/stop_area.js";
/** How long an input of an agent keeps a badge away from where it clicks. */
const ASIDE_MS = 400;
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
  /** The badges whose style is in their page now. @type {Map<number, Badge>} */
  #drawn = new Map();
  /** How many screenshots a tab is being taken for, which has no badge meanwhile. @type {Map<number, number>} */
  #hidden = new Map();
  /** @type {Map<number, StopArea>} */
  #areas = new Map();
  /** Tabs whose badge is out of an agent's way. @type {Map<number, ReturnType<typeof setTimeout>>} */
  #aside = new Map();
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
      if (frameId !== 0) return;
      void this.#ready.then(() => {
        this.#drawn.delete(tabId); // gone with the document
        return this.#draw(tabId);
      });
    });
    chrome.tabs.onRemoved.addListener((tabId) => {
      for (const known of [this.#badges, this.#drawn, this.#areas, this.#hidden]) known.delete(tabId);
    });
  }

  /**
   * Where a tab's Stop button is now, as its page reports it; null while there is none.
   * @param {number} tabId
   * @param {StopArea | null} area
   */
  place(tabId, area) {
    if (area) this.#areas.set(tabId, area);
    else this.#areas.delete(tabId);
  }

  /** Whether a tab has a badge. @param {number} tabId */
  has(tabId) {
    return this.#badges.has(tabId);
  }

  /**
   * Take the badge away before an agent presses the mouse where its Stop button is: only the person's clicks count.
   * @param {number} tabId
   * @param {readonly import("./debugger.js").Command[]} commands
   * @returns {Promise<void> | null} null if it is not in the way
   */
  stepAside(tabId, commands) {
    const area = this.#areas.get(tabId);
    if (!area || !commands.some((command) => isIn(area, command))) return null;
    clearTimeout(this.#aside.get(tabId));
    this.#aside.set(
      tabId,
      setTimeout(() => {
        this.#aside.delete(tabId);
        void this.#draw(tabId);
      }, ASIDE_MS),
    );
    return this.#erase(tabId);
  }

  /**
   * Set the tabs that have badges.
   * @param {Params} params of `agents.marks`
   */
  change({ tabs }) {
    /** @type {Map<number, Badge>} */
    const next = new Map();
    for (const given of Array.isArray(tabs) ? tabs.slice(0, MAX_TABS) : []) {
      const { tabId, label, color, doing } = Object(given);
      if (!Number.isInteger(tabId) || typeof label !== "string" || label === "") continue;
      const now = typeof doing === "string" ? doing.slice(0, MAX_DOING) : "";
      next.set(tabId, { label: label.slice(0, MAX_LABEL), color: colorOf(String(color)), doing: now });
    }
    this.#ready = this.#ready
      .then(async () => {
        const before = this.#badges;
        this.#badges = next;
        const touched = [...new Set([...before.keys(), ...next.keys()])].filter((tabId) => {
          const [one, other] = [before.get(tabId), next.get(tabId)];
          return one?.label !== other?.label || one?.color !== other?.color || one?.doing !== other?.doing;
        });
        await chrome.storage.session.set({ [STORAGE_KEY]: [...next] });
        // Not awaited: a blocked page would delay the others.
        for (const tabId of touched) void (next.has(tabId) ? this.#draw(tabId) : this.#erase(tabId));
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
    this.#hidden.set(tabId, (this.#hidden.get(tabId) ?? 0) + 1);
    try {
      if (this.#drawn.has(tabId)) await Promise.race([this.#erase(tabId), new Promise((resolve) => setTimeout(resolve, HIDE_MS))]);
      return await work();
    } finally {
      const others = (this.#hidden.get(tabId) ?? 1) - 1;
      if (others > 0) this.#hidden.set(tabId, others);
      else this.#hidden.delete(tabId);
      void this.#draw(tabId);
    }
  }

  async #restore() {
    const { [STORAGE_KEY]: stored } = await chrome.storage.session.get(STORAGE_KEY);
    if (!Array.isArray(stored)) return;
    this.#badges = new Map(stored);
    this.#drawn = new Map(stored);
  }

  /** @param {number} tabId */
  async #draw(tabId) {
    const badge = this.#badges.get(tabId);
    const before = this.#drawn.get(tabId);
    if (!badge || badge === before || this.#aside.has(tabId) || this.#hidden.has(tabId)) return;
    this.#drawn.set(tabId, badge);
    // The new one first, so that the badge does not flicker.
    await chrome.scripting.insertCSS(badgeStyle(tabId, badge)).catch(ignoreFailure);
    if (before) await chrome.scripting.removeCSS(badgeStyle(tabId, before)).catch(ignoreFailure);
    await chrome.scripting.executeScript({ target: { tabId }, files: [STOP_AREA] }).catch(ignoreFailure);
  }

  /** @param {number} tabId */
  async #erase(tabId) {
    const badge = this.#drawn.get(tabId);
    this.#drawn.delete(tabId);
    if (badge) await chrome.scripting.removeCSS(badgeStyle(tabId, badge)).catch(ignoreFailure);
  }
}

/** A page of the browser cannot have a badge, and one that was left needs none. */
function ignoreFailure() {
  return null;
}

/**
 * Whether a command presses the mouse in an area.
 * @param {StopArea} area
 * @param {import("./debugger.js").Command} command
 */
function isIn(area, { method, params = {} }) {
  if (method !== "Input.dispatchMouseEvent" || params["type"] !== "mousePressed") return false;
  const [x, y] = [Number(params["x"]), Number(params["y"])];
  return x >= area.left && x <= area.right && y >= area.top && y <= area.bottom;
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
function badgeStyle(tabId, { label, color, doing }) {
  // Characters with a meaning in CSS are escaped.
  const shown = `\u25a0 Stop \u2502 ${doing ? `${label}: ${doing}` : label}`;
  const text = shown.replace(/[^\p{L}\p{N} ._-]/gu, (letter) => `\\${(letter.codePointAt(0) ?? 0).toString(16)} `);
  const rules = [
    "all: initial",
    // After the slash: the text for screen readers, which is empty.
    `content: "${text}" / ""`,
    "position: fixed",
    "right: 8px",
    "bottom: 8px",
    "z-index: 2147483647",
    "box-sizing: border-box",
    "max-width: min(360px, 100vw - 16px)",
    "padding: 4px 10px",
    "border-radius: 12px",
    "overflow: hidden",
    "color: #fff",
    `background: ${color}`,
    "font: 500 12px/16px system-ui, sans-serif",
    "text-overflow: ellipsis",
    "white-space: nowrap",
    "box-shadow: 0 1px 3px rgb(0 0 0 / 30%)",
    "opacity: 0.95",
    "pointer-events: none",
    "user-select: none",
  ];
  const css = `@media screen { :root::after { ${rules.map((rule) => `${rule} !important;`).join(" ")} } }`;
  return { target: { tabId }, css, origin: "USER" };
}
