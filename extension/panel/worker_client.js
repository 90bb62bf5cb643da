/**
 * The panel's road to the worker: questions with one answer each, and events. It comes back by itself when the worker
 * was stopped.
 */

/** @typedef {Record<string, unknown>} Params */
/** @typedef {{ resolve: (result: any) => void, reject: (error: Error) => void }} Waiting */

/** What the other side refused, with what it said about it. */
export class Refused extends Error {
  /**
   * @param {string} message
   * @param {unknown} [data]
   */
  constructor(message, data) {
    super(message);
    this.data = data;
  }
}

const AGAIN_MS = 250;
/** A worker that was connected this long had not failed to start. */
const GOOD_MS = 2_000;

export class Source {
  /** @type {chrome.runtime.Port | null} */
  #port = null;
  #count = 0;
  /** @type {Map<number, Waiting>} */
  #waiting = new Map();
  #hear;

  /** @param {(method: string, params: Params) => void} hear */
  constructor(hear) {
    this.#hear = hear;
  }

  /** Connect, and stay so. */
  open() {
    const port = chrome.runtime.connect({ name: "panel" });
    const since = Date.now();
    this.#port = port;
    port.onMessage.addListener((message) => this.#received(message));
    port.onDisconnect.addListener(() => {
      // Reading it keeps the browser from noting an error nobody looked at.
      const why = chrome.runtime.lastError?.message ?? "The extension's worker was stopped.";
      this.#port = null;
      for (const { reject } of this.#waiting.values()) reject(new Refused(why));
      this.#waiting.clear();
      if (Date.now() - since > GOOD_MS) this.open();
      else setTimeout(() => this.open(), AGAIN_MS);
    });
    this.#hear("panel.opened", {});
  }

  /**
   * Ask; what is refused is an error with words for a person.
   * @param {string} method
   * @param {Params} [params]
   * @returns {Promise<any>}
   */
  ask(method, params = {}) {
    const [id, port] = [++this.#count, this.#port];
    if (!port) return Promise.reject(new Refused("The extension is starting. Try again in a moment."));
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      port.postMessage({ type: "ask", id, method, params });
    });
  }

  /** @param {any} message */
  #received(message) {
    if (message?.type === "event") return this.#hear(message.method, message.params ?? {});
    const waiting = this.#waiting.get(message?.id);
    if (message?.type !== "answer" || !waiting) return;
    this.#waiting.delete(message.id);
    if (message.error) waiting.reject(new Refused(message.error.message, message.error.data));
    else waiting.resolve(message.result);
  }
}

/**
 * What went wrong, for a person.
 * @param {unknown} error
 */
export function errorText(error) {
  const hint = /** @type {any} */ (error)?.data?.hint;
  return `${error instanceof Error ? error.message : String(error)}${typeof hint === "string" ? ` ${hint}` : ""}`;
}
