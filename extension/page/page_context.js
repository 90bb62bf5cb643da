/**
 * The frame's side of `model_context.js`: the tools a page registered there, or in a `modelContext` it brought itself.
 *
 * What comes over is the page's word: it is parsed here and checked by whoever uses it.
 */

/** @typedef {{ requestId: string, args: unknown, meta: Record<string, unknown> | undefined, extensions: unknown, confirm: (message: string, details?: unknown) => Promise<boolean>, progress: (told: unknown) => void }} PageCall */
/** @typedef {{ answer: Promise<unknown>, cancel: () => void }} Running what a call gives, before it is checked */

var PageContext = class {
  /** @type {unknown[]} */
  tools = [];
  /** @type {Map<string, PromiseWithResolvers<unknown>>} */
  #waiting = new Map();
  /** Calls that may ask the person. @type {Map<string, PageCall>} */
  #calls = new Map();
  /** Calls the page said it answers. @type {Set<string>} */
  #responding = new Set();
  #changed;

  /** @param {() => void} changed */
  constructor(changed) {
    this.#changed = changed;
    performance.addEventListener("tabhub-tell", this.#told);
    this.refresh();
  }

  /** Ask the page for its list; nothing comes where there is no `model_context.js`. */
  refresh() {
    this.#ask({ op: "list" });
  }

  /**
   * @param {string} name
   * @param {PageCall} call
   * @returns {Running}
   */
  call(name, call) {
    const id = call.requestId;
    this.#calls.set(id, call);
    const answer = this.answer(id).finally(() => this.#calls.delete(id));
    this.#ask({ op: "call", id, name, args: call.args });
    return { answer, cancel: () => this.#ask({ op: "cancel", id }) };
  }

  /**
   * What the page gives for a call, once it does.
   * @param {string} id
   */
  answer(id) {
    /** @type {PromiseWithResolvers<unknown>} */
    const waiter = Promise.withResolvers();
    this.#waiting.set(id, waiter);
    return waiter.promise.finally(() => this.#waiting.delete(id));
  }

  /**
   * Submit a form for a call; the page may say meanwhile that it answers itself.
   * @param {string} id
   * @param {() => void} submit
   * @returns {boolean} whether it does
   */
  submitting(id, submit) {
    this.#responding.delete(id);
    this.#ask({ op: "submitting", id });
    try {
      submit();
    } finally {
      this.#ask({ op: "submitted" });
    }
    return this.#responding.delete(id);
  }

  stop() {
    performance.removeEventListener("tabhub-tell", this.#told);
    for (const waiter of this.#waiting.values()) waiter.reject(new Error("The page is gone."));
  }

  /** @param {Record<string, unknown>} message */
  #ask(message) {
    performance.dispatchEvent(new CustomEvent("tabhub-ask", { detail: JSON.stringify(message) }));
  }

  /** @param {Event} event */
  #told = (event) => {
    const detail = event instanceof CustomEvent ? event.detail : null;
    if (typeof detail !== "string" || detail.length > 4 * pageChecks.MAX_MESSAGE) return;
    let message;
    try {
      message = JSON.parse(detail);
    } catch {
      return;
    }
    if (!pageChecks.isObject(message)) return;
    const { op, id } = message;
    if (op === "tools") {
      this.tools = Array.isArray(message["tools"]) ? message["tools"].map((tool) => ({ ...tool, via: "webmcp" })) : [];
      this.#changed();
    }
    if (typeof id !== "string") return;
    if (op === "result") this.#result(id, message);
    else if (op === "responding" && this.#waiting.has(id)) this.#responding.add(id);
    else if (op === "interact") void this.#interact(id, String(message["call"]), message["message"]);
  };

  /**
   * @param {string} id
   * @param {Record<string, unknown>} message
   */
  #result(id, message) {
    const waiter = this.#waiting.get(id);
    if (message["ok"] !== true) waiter?.reject(new Error(String(message["error"])));
    else if (typeof message["value"] === "string") {
      try {
        waiter?.resolve(JSON.parse(message["value"]));
      } catch (error) {
        waiter?.reject(error);
      }
    }
  }

  /**
   * @param {string} id
   * @param {string} callId
   * @param {unknown} said what the page wants the person to read
   */
  async #interact(id, callId, said) {
    const call = this.#calls.get(callId);
    const confirmed = call ? await call.confirm(typeof said === "string" && said !== "" ? said.slice(0, 1000) : "The page asks for you before it goes on.") : false;
    this.#ask({ op: "interacted", id, confirmed });
  }
};
