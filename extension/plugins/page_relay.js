/**
 * The relay of a page with plugins: it sends progress, logs, readiness and requests of the page's adapters to the worker.
 *
 * A plain script in the isolated world, which the page cannot access. It also stores which adapters were installed in this
 * document. Everything it receives may come from the page, so all of it is bounded and untrusted; the worker learns the
 * tab from the browser.
 */

/** The relay of this document, also for a second run of this file. @type {InstanceType<typeof PluginRelay> | undefined} */
var pluginRelay;

var PluginRelay = class {
  channel = randomId();
  nonce = randomId();
  /** The hash of each adapter in this document. @type {Record<string, string>} */
  stamps = {};
  /** Messages that may be sent now (token bucket). */
  #tokens = 40;
  #filledAt = Date.now();

  constructor() {
    document.addEventListener(this.channel, this.#progress);
    document.addEventListener(`${this.channel}:request`, this.#request);
    window.addEventListener("message", this.#message);
  }

  /** Whether its extension is running. */
  get alive() {
    return chrome.runtime?.id !== undefined;
  }

  stop() {
    document.removeEventListener(this.channel, this.#progress);
    document.removeEventListener(`${this.channel}:request`, this.#request);
    window.removeEventListener("message", this.#message);
  }

  /** Its state, for the worker. */
  facts() {
    return { channel: this.channel, nonce: this.nonce, stamps: this.stamps };
  }

  /** @param {Event} event */
  #progress = (event) => {
    const detail = event instanceof CustomEvent ? event.detail : undefined;
    if (typeof detail === "string" && detail.length < 10_000) this.#send({ what: "progress", detail });
  };

  /**
   * A request that a tool asks the hub to make; its answer goes to the page.
   * @param {Event} event
   */
  #request = async (event) => {
    const detail = event instanceof CustomEvent ? event.detail : undefined;
    if (typeof detail !== "string" || detail.length > 4_000_000) return;
    let id;
    try {
      id = JSON.parse(detail).id;
    } catch {
      return; // not an event of a tool
    }
    if (typeof id !== "string" || id.length > 100) return;
    const failed = { error: "The extension has restarted. Reload the page." };
    const busy = { error: "Too many requests at once. Make one after the other." };
    const send = () => chrome.runtime.sendMessage({ type: "plugins", what: "request", detail }).catch(() => failed);
    const answer = !this.alive ? failed : !this.#takeToken() ? busy : await send();
    document.dispatchEvent(new CustomEvent(`${this.channel}:${id}`, { detail: JSON.stringify(answer ?? failed) }));
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
      written = undefined; // a cycle, or a value without a JSON form
    }
    const more = written !== undefined && written !== "[]" && written.length <= 8000 ? { data: written } : {};
    return { level: String(level).slice(0, 20), message: String(message).slice(0, 4000), ts: String(ts).slice(0, 40), ...more };
  };

  /** Whether a message may be sent now; it is counted. */
  #takeToken() {
    const now = Date.now();
    this.#tokens = Math.min(40, this.#tokens + (now - this.#filledAt) / 25);
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** @param {Record<string, unknown>} message */
  #send(message) {
    if (!this.alive) return this.stop();
    if (!this.#takeToken()) return;
    chrome.runtime.sendMessage({ type: "plugins", ...message }).catch(() => {
      // The worker is being stopped: a log line or one progress message is lost.
    });
  }
};

/** A random text; `crypto.randomUUID` exists only in secure contexts. */
function randomId() {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16)).join("-");
}

if (!pluginRelay?.alive) {
  pluginRelay?.stop();
  pluginRelay = new PluginRelay();
}
pluginRelay.facts();
