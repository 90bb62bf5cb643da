/**
 * What plugins write to their logs, on its way to the hub: checked, bounded, and in batches.
 */

import { isObject } from "../link/rpc.js";

/** @typedef {{ plugin: string, level: string, message: string, ts: string, data?: unknown }} Entry */

const LEVELS = ["debug", "info", "warning", "error"];
const BATCH_MS = 100;
const MOST_WAITING = 500;
const LONGEST = 4000;

export class PluginLogs {
  /** @type {Entry[]} */
  #waiting = [];
  #dropped = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {((entries: Entry[]) => void) | null} */
  #teller = null;

  /**
   * Tell someone from now on, beginning with what waits; null when there is no hub.
   * @param {((entries: Entry[]) => void) | null} teller
   */
  tellTo(teller) {
    this.#teller = teller;
    this.#soon();
  }

  /**
   * Take entries of a page's relay.
   * @param {string} plugin
   * @param {unknown} entries
   * @param {unknown} left how many more there were
   */
  take(plugin, entries, left) {
    if (!Array.isArray(entries)) return;
    if (typeof left === "number" && left > 0) this.#dropped += left;
    for (const entry of entries.slice(0, 100)) {
      if (!isObject(entry)) continue;
      if (this.#waiting.length >= MOST_WAITING) this.#dropped += 1;
      else this.#waiting.push(read(plugin, entry));
    }
    this.#soon();
  }

  #soon() {
    if (!this.#teller || this.#timer !== undefined || this.#waiting.length === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#teller) return;
      const entries = this.#waiting;
      const last = entries.at(-1);
      if (this.#dropped > 0 && last) {
        const message = `${this.#dropped} entries were left out: they came faster than they can be kept.`;
        entries.push({ plugin: last.plugin, level: "warning", message, ts: new Date().toISOString() });
      }
      this.#waiting = [];
      this.#dropped = 0;
      this.#teller(entries);
    }, BATCH_MS);
  }
}

/**
 * @param {string} plugin
 * @param {Record<string, unknown>} entry
 * @returns {Entry}
 */
function read(plugin, { level, message, ts, data }) {
  const time = Date.parse(String(ts));
  return {
    plugin,
    level: LEVELS.includes(String(level)) ? String(level) : "info",
    message: String(message).slice(0, LONGEST),
    ts: new Date(Number.isNaN(time) ? Date.now() : time).toISOString(),
    ...(typeof data === "string" && data.length <= 2 * LONGEST ? { data: parsed(data) } : {}),
  };
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
