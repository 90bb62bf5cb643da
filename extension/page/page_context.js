/**
 * The frame's side of `model_context.js`: tools that a page registered there, or in its own `modelContext`.
 *
 * Messages come from the page: they are parsed here and validated by their users.
 */

/** @typedef {{ requestId: string, args: unknown, meta: Record<string, unknown> | undefined, extensions: unknown, confirm: (message: string, details?: unknown) => Promise<boolean>, progress: (params: unknown) => void }} PageCall */
/** @typedef {{ answer: Promise<unknown>, cancel: () => void }} Running the result of a call, before it is validated */

var PageContext = class {
  /** @type {unknown[]} */
  tools = [];
  /** @type {Map<string, PromiseWithResolvers<unknown>>} */
  #waiting = new Map();
  /** Calls that may ask for confirmation. @type {Map<string, PageCall>} */
  #calls = new Map();
  /** Calls that the page answers itself. @type {Set<string>} */
  #responding = new Set();
  #changed;

  /** @param {() => void} changed */
  constructor(changed) {
    this.#changed = changed;
    performance.addEventListener("tabhub-tell", this.#receive);
    this.refresh();
  }

  /** Request the tools of the page; without `model_context.js` there is no answer. */
  refresh() {
    this.#send({ op: "list" });
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
    this.#send({ op: "call", id, name, args: call.args });
    return { answer, cancel: () => this.#send({ op: "cancel", id }) };
  }

  /**
   * The result of a call.
   * @param {string} id
   */
  answer(id) {
    /** @type {PromiseWithResolvers<unknown>} */
    const waiter = Promise.withResolvers();
    this.#waiting.set(id, waiter);
    return waiter.promise.finally(() => this.#waiting.delete(id));
  }

  /**
   * Submit a form for a call; the page may respond to the submission itself.
   * @param {string} id
   * @param {() => void} submit
   * @returns {boolean} whether the page responds
   */
  submitting(id, submit) {
    this.#responding.delete(id);
    this.#send({ op: "submitting", id });
    try {
      submit();
    } finally {
      this.#send({ op: "submitted" });
    }
    return this.#responding.delete(id);
  }

  stop() {
    performance.removeEventListener("tabhub-tell", this.#receive);
    for (const waiter of this.#waiting.values()) waiter.reject(new Error("The page was closed."));
  }

  /** @param {Record<string, unknown>} message */
  #send(message) {
    performance.dispatchEvent(new CustomEvent("tabhub-ask", { detail: JSON.stringify(message) }));
  }

  /** @param {Event} event */
  #receive = (event) => {
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
   * @param {unknown} message for the person
   */
  async #interact(id, callId, message) {
    const call = this.#calls.get(callId);
    const confirmed = call ? await call.confirm(typeof message === "string" && message !== "" ? message.slice(0, 1000) : "The page asks for your confirmation.") : false;
    this.#send({ op: "interacted", id, confirmed });
  }
};
