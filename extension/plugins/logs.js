/**
 * Log entries of plugins for the hub: validated, bounded, and sent in batches.
 */

import { isObject } from "../link/rpc.js";

/** @typedef {{ plugin: string, level: string, message: string, ts: string, data?: unknown }} Entry */

const LEVELS = ["debug", "info", "warning", "error"];
const BATCH_MS = 100;
const MAX_WAITING = 500;
const MAX_LENGTH = 4000;

export class PluginLogs {
  /** @type {Entry[]} */
  #waiting = [];
  #dropped = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {((entries: Entry[]) => void) | null} */
  #recipient = null;

  /**
   * Report to a recipient from now on, beginning with waiting entries; null when the hub is disconnected.
   * @param {((entries: Entry[]) => void) | null} recipient
   */
  reportTo(recipient) {
    this.#recipient = recipient;
    this.#sendSoon();
  }

  /**
   * Add entries from a page relay.
   * @param {string} plugin
   * @param {unknown} entries
   * @param {unknown} dropped how many more there were
   */
  add(plugin, entries, dropped) {
    if (!Array.isArray(entries)) return;
    if (typeof dropped === "number" && dropped > 0) this.#dropped += dropped;
    for (const entry of entries.slice(0, 100)) {
      if (!isObject(entry)) continue;
      if (this.#waiting.length >= MAX_WAITING) this.#dropped += 1;
      else this.#waiting.push(read(plugin, entry));
    }
    this.#sendSoon();
  }

  #sendSoon() {
    if (!this.#recipient || this.#timer !== undefined || this.#waiting.length === 0) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#recipient) return;
      const entries = this.#waiting;
      const last = entries.at(-1);
      if (this.#dropped > 0 && last) {
        const message = `${this.#dropped} entries were dropped: there were too many at once.`;
        entries.push({ plugin: last.plugin, level: "warning", message, ts: new Date().toISOString() });
      }
      this.#waiting = [];
      this.#dropped = 0;
      this.#recipient(entries);
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
    message: String(message).slice(0, MAX_LENGTH),
    ts: new Date(Number.isNaN(time) ? Date.now() : time).toISOString(),
    ...(typeof data === "string" && data.length <= 2 * MAX_LENGTH ? { data: parsed(data) } : {}),
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
