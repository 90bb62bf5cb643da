/**
 * The relay of a page with plugins: it carries progress, logs and readiness from the page's adapters to the worker.
 *
 * A plain script in the extension's own world of the page, where the page cannot reach: it also remembers which adapter
 * was put into this document. Everything it hears may come from the page itself, so all of it is bounded and none of it
 * is believed; whose tab it is, the browser tells the worker.
 */

/** The relay of this document, also for a second run of this file. @type {InstanceType<typeof PluginRelay> | undefined} */
var pluginRelay;

var PluginRelay = class {
  channel = crypto.randomUUID();
  nonce = crypto.randomUUID();
  /** The stamp of each adapter in this document. @type {Record<string, string>} */
  stamps = {};
  /** Messages that may still be sent; refilled with time. */
  #room = 40;
  #filledAt = Date.now();

  constructor() {
    document.addEventListener(this.channel, this.#progress);
    window.addEventListener("message", this.#message);
  }

  /** Whether the extension it belongs to still runs. */
  get alive() {
    return chrome.runtime?.id !== undefined;
  }

  /** End for good. */
  stop() {
    document.removeEventListener(this.channel, this.#progress);
    window.removeEventListener("message", this.#message);
  }

  /** What the worker needs to know of it. */
  facts() {
    return { channel: this.channel, nonce: this.nonce, stamps: this.stamps };
  }

  /** @param {Event} event */
  #progress = (event) => {
    const detail = event instanceof CustomEvent ? event.detail : undefined;
    if (typeof detail === "string" && detail.length < 10_000) this.#send({ what: "progress", detail });
  };

  /** @param {MessageEvent} event */
  #message = ({ source, data }) => {
    if (source !== window || typeof data !== "object" || data === null || data.nonce !== this.nonce) return;
    const { type, plugin, entries } = data;
    if (typeof plugin !== "string" || this.stamps[plugin] === undefined) return;
    if (type === "opentabs:readiness-changed") this.#send({ what: "ready", plugin });
    if (type !== "opentabs:plugin-logs" || !Array.isArray(entries)) return;
    this.#send({ what: "logs", plugin, entries: entries.slice(0, 50).map(this.#entry), left: entries.length - 50 });
  };

  /** @param {any} given */
  #entry = (given) => {
    const { level, message, ts, data } = Object(given);
    let written;
    try {
      written = JSON.stringify(data);
    } catch {
      written = undefined; // a cycle, or something that has no text
    }
    const kept = written !== undefined && written !== "[]" && written.length <= 8000 ? { data: written } : {};
    return { level: String(level).slice(0, 20), message: String(message).slice(0, 4000), ts: String(ts).slice(0, 40), ...kept };
  };

  /** @param {Record<string, unknown>} message */
  #send(message) {
    if (!this.alive) return this.stop();
    const now = Date.now();
    this.#room = Math.min(40, this.#room + (now - this.#filledAt) / 25);
    this.#filledAt = now;
    if (this.#room < 1) return;
    this.#room -= 1;
    chrome.runtime.sendMessage({ type: "plugins", ...message }).catch(() => {
      // The worker is being stopped: what is lost is a line of a log, or one of many steps.
    });
  }
};

if (!pluginRelay?.alive) {
  pluginRelay?.stop();
  pluginRelay = new PluginRelay();
}
pluginRelay.facts();
