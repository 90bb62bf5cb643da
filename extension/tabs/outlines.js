/**
 * Outlines: for a moment, a frame around the element that an agent works on, or that the person asked to see.
 *
 * Like a badge, an outline is only CSS: it adds no element to the page, and is not in screenshots of agents.
 */

/** @typedef {import("../link/rpc.js").Params} Params */

const SHORT_MS = 700;
const LONG_MS = 3_000;
const COLOR = /^#[0-9a-f]{6}$/i;
/** Distance of the frame from the element. */
const AROUND = 3;

export class Outlines {
  /** @type {Map<number, { style: chrome.scripting.CSSInjection, timer: ReturnType<typeof setTimeout> }>} */
  #shown = new Map();

  /** @type {Set<number>} */
  #hidden = new Set();

  /**
   * Outline an element.
   * @param {Params} params of `agents.outline`
   */
  show({ tabId, x, y, width, height, color, long }) {
    const box = [x, y, width, height];
    if (!Number.isInteger(tabId) || !box.every((side) => typeof side === "number" && Number.isFinite(side))) return;
    const id = /** @type {number} */ (tabId);
    if (this.#hidden.has(id)) return;
    const style = outlineStyle(id, /** @type {[number, number, number, number]} */ (box), COLOR.test(String(color)) ? String(color) : "#1a73e8");
    this.#remove(id);
    const timer = setTimeout(() => this.#remove(id), long === true ? LONG_MS : SHORT_MS);
    this.#shown.set(id, { style, timer });
    void chrome.scripting.insertCSS(style).catch(() => null);
  }

  /**
   * Do something while a tab shows no outline.
   * @template Result
   * @param {number} tabId
   * @param {() => Promise<Result>} work
   * @returns {Promise<Result>}
   */
  async hideDuring(tabId, work) {
    this.#hidden.add(tabId);
    try {
      await this.#remove(tabId);
      return await work();
    } finally {
      this.#hidden.delete(tabId);
    }
  }

  /** @param {number} tabId */
  async #remove(tabId) {
    const shown = this.#shown.get(tabId);
    if (!shown) return;
    this.#shown.delete(tabId);
    clearTimeout(shown.timer);
    await chrome.scripting.removeCSS(shown.style).catch(() => null);
  }
}

/**
 * @param {number} tabId
 * @param {[number, number, number, number]} box
 * @param {string} color
 * @returns {chrome.scripting.CSSInjection}
 */
function outlineStyle(tabId, [x, y, width, height], color) {
  const rules = [
    "all: initial",
    'content: "" / ""',
    "position: fixed",
    "box-sizing: border-box",
    `left: ${Math.round(x) - AROUND}px`,
    `top: ${Math.round(y) - AROUND}px`,
    `width: ${Math.round(width) + 2 * AROUND}px`,
    `height: ${Math.round(height) + 2 * AROUND}px`,
    "z-index: 2147483647",
    `border: 2px solid ${color}`,
    "border-radius: 6px",
    "box-shadow: 0 0 0 2px rgb(255 255 255 / 80%)",
    "pointer-events: none",
  ];
  const css = `@media screen { :root::before { ${rules.map((rule) => `${rule} !important;`).join(" ")} } }`;
  return { target: { tabId }, css, origin: "USER" };
}
