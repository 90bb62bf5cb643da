/**
 * The panel's connection to the worker: requests with one answer each, and events. It reconnects when the worker was
 * stopped.
 */

/** @typedef {Record<string, unknown>} Params */
/** @typedef {{ resolve: (result: any) => void, reject: (error: Error) => void }} Waiting */

/** A request was refused; `data` has the details. */
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

const RECONNECT_MS = 250;
/** A connection that lasted this long was not a failed start. */
const STABLE_MS = 2_000;

export class WorkerClient {
  /** @type {chrome.runtime.Port | null} */
  #port = null;
  #count = 0;
  /** @type {Map<number, Waiting>} */
  #waiting = new Map();
  #receiveEvent;

  /** @param {(method: string, params: Params) => void} receiveEvent */
  constructor(receiveEvent) {
    this.#receiveEvent = receiveEvent;
  }

  /** Connect, and stay connected. */
  open() {
    const port = chrome.runtime.connect({ name: "panel" });
    const since = Date.now();
    this.#port = port;
    port.onMessage.addListener((message) => this.#receive(message));
    port.onDisconnect.addListener(() => {
      // Reading lastError keeps the browser from logging it as unchecked.
      const why = chrome.runtime.lastError?.message ?? "The extension's worker was stopped.";
      this.#port = null;
      for (const { reject } of this.#waiting.values()) reject(new Refused(why));
      this.#waiting.clear();
      if (Date.now() - since > STABLE_MS) this.open();
      else setTimeout(() => this.open(), RECONNECT_MS);
    });
    this.#receiveEvent("panel.opened", {});
  }

  /**
   * Send a request; a refusal is an error with a message for the person.
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
  #receive(message) {
    if (message?.type === "event") return this.#receiveEvent(message.method, message.params ?? {});
    const waiting = this.#waiting.get(message?.id);
    if (message?.type !== "answer" || !waiting) return;
    this.#waiting.delete(message.id);
    if (message.error) waiting.reject(new Refused(message.error.message, message.error.data));
    else waiting.resolve(message.result);
  }
}

/**
 * An error's message and hint.
 * @param {unknown} error
 */
export function errorText(error) {
  const hint = /** @type {any} */ (error)?.data?.hint;
  return `${error instanceof Error ? error.message : String(error)}${typeof hint === "string" ? ` ${hint}` : ""}`;
}
