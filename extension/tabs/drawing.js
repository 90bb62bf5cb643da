/**
 * Tabs that draw while a picture of them is taken.
 *
 * Owns the screencast that makes a tab draw: a background tab draws nothing, but a screenshot waits until something is
 * drawn, in some windows for minutes. The hub makes the tabs of its own agents draw.
 */

/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {import("./debugger.js").Debugger} Debugger */

/** The cheapest screencast. */
const SMALL = { format: "jpeg", quality: 1, maxWidth: 16, maxHeight: 16 };

export class Drawing {
  #cdp;
  /** Pictures that are being taken, by tab. @type {Map<number, number>} */
  #pictures = new Map();

  /** @param {Debugger} cdp */
  constructor(cdp) {
    this.#cdp = cdp;
  }

  /**
   * Take a picture of a tab while the tab draws.
   * @template Result
   * @param {number} tabId
   * @param {Call} call
   * @param {() => Promise<Result>} take
   * @returns {Promise<Result>}
   */
  async during(tabId, call, take) {
    this.#pictures.set(tabId, (this.#pictures.get(tabId) ?? 0) + 1);
    try {
      // Another screencast of the tab is enough; other errors are reported by the picture itself.
      if (this.#pictures.get(tabId) === 1) await this.#cdp.command(tabId, "Page.startScreencast", SMALL, call).catch(() => {});
      return await take();
    } finally {
      const left = (this.#pictures.get(tabId) ?? 1) - 1;
      if (left > 0) this.#pictures.set(tabId, left);
      else {
        this.#pictures.delete(tabId);
        // A closed tab has no screencast to stop.
        await this.#cdp.command(tabId, "Page.stopScreencast", {}, call).catch(() => {});
      }
    }
  }
}
