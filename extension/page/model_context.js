/**
 * In the page's own world: `document.modelContext` if the browser has none, and access to one that a page defines itself.
 *
 * Owns the tools that the page registers here. It runs before the page's scripts, but the page can manipulate it: no
 * secret may come here, and its messages are validated as the page's own. Only JSON text is exchanged, in events of
 * `performance`, which both worlds share and which, unlike the document, keeps its listeners after document.open().
 */

(() => {
  const REQUEST = "tabhub-ask";
  const REPLY = "tabhub-tell";
  const MARK = Symbol.for("tabhub.modelContext");
  const MAX_NAME = 128;
  const MAX_TEXT = 1024 * 1024;
  // Copied now: a page may replace these later.
  const { parse, stringify } = JSON;
  const apply = Reflect.apply;
  const { dispatchEvent, addEventListener } = EventTarget.prototype;
  const NewEvent = CustomEvent;
  const channel = performance;
  const page = /** @type {any} */ (document);

  if (Object.hasOwn(page, MARK)) return;
  const own = Object.getOwnPropertyDescriptor(Document.prototype, "modelContext");
  if (own?.get && Function.prototype.toString.call(own.get).includes("[native code]")) return;
  Object.defineProperty(page, MARK, { value: true });

  /** @typedef {{ name: string, title: string, description: string, inputSchema: string | undefined, annotations: unknown, execute: Function, removed: AbortController }} Entry */
  /** @type {Map<string, Entry>} */
  const tools = new Map();
  /** Running calls of agents. @type {Map<string, AbortController>} */
  const calls = new Map();
  /** Pending confirmations. @type {Map<string, (confirmed: boolean) => void>} */
  const waiting = new Map();
  /** The call whose form is being submitted. @type {string | null} */
  let submitting = null;
  let interactions = 0;

  /** @param {Record<string, unknown>} message */
  function send(message) {
    const event = new NewEvent(REPLY, { detail: stringify(message) });
    apply(dispatchEvent, channel, [event]);
  }

  /** @param {unknown} error */
  function textOf(error) {
    try {
      return String(/** @type {any} */ (error)?.message || error || "The tool failed.").slice(0, 2000);
    } catch {
      return "The tool failed.";
    }
  }

  let changing = false;
  // A message instead of a timer: timers of a hidden tab may be delayed by a minute.
  const task = new MessageChannel();
  task.port1.onmessage = () => {
    changing = false;
    context.dispatchEvent(new Event("toolchange"));
    void list();
  };
  function changed() {
    if (!changing) task.port2.postMessage(null);
    changing = true;
  }

  /**
   * @param {any} tool
   * @returns {Entry}
   */
  function entryOf(tool) {
    if (typeof tool !== "object" || tool === null) throw new TypeError("registerTool needs a tool.");
    const { name, description = "", title = "", inputSchema, annotations, execute } = tool;
    if (typeof execute !== "function") throw new TypeError("A tool needs a function 'execute'.");
    const invalid = typeof name !== "string" || name === "" || name.length > MAX_NAME;
    if (invalid) throw new DOMException(`A tool needs a name of 1 to ${MAX_NAME} characters.`, "InvalidStateError");
    if (tools.has(name)) throw new DOMException(`A tool named ${name} is already registered.`, "InvalidStateError");
    const schema = inputSchema === undefined || inputSchema === null ? undefined : stringify(inputSchema);
    const notes = annotations === undefined ? undefined : parse(stringify(annotations));
    return {
      name,
      title: String(title),
      description: String(description),
      inputSchema: schema,
      annotations: notes,
      execute,
      removed: new AbortController(),
    };
  }

  /**
   * @param {string} name
   * @param {Entry} [only] not a newer tool of the same name
   */
  function remove(name, only) {
    const entry = tools.get(name);
    if (!entry || (only && entry !== only)) return;
    tools.delete(name);
    entry.removed.abort(new DOMException("The tool was unregistered.", "AbortError"));
    changed();
  }

  /**
   * @param {any} tool
   * @param {{ signal?: AbortSignal } | undefined} options
   * @param {{ entry?: Entry }} registration
   */
  async function register(tool, options, registration) {
    const signal = options?.signal;
    signal?.throwIfAborted();
    const entry = entryOf(tool);
    tools.set(entry.name, entry);
    registration.entry = entry;
    signal?.addEventListener("abort", () => remove(entry.name, entry), { once: true });
    changed();
  }

  /**
   * Run a tool. It also gets `requestUserInteraction`, as in earlier drafts.
   * @param {Entry} entry
   * @param {unknown} input
   * @param {AbortSignal | undefined} signal
   * @param {string} [callId] when it was called from outside the page
   */
  function run(entry, input, signal, callId) {
    const stop = signal ? AbortSignal.any([signal, entry.removed.signal]) : entry.removed.signal;
    const client = {
      signal: stop,
      /**
       * @param {(given: { confirmed: boolean }) => unknown} [callback] gets whether the person has already confirmed
       * @param {{ message?: unknown }} [options] the question
       */
      requestUserInteraction: async (callback, options) => {
        if (callId !== undefined && !(await asked(callId, entry.name, options?.message))) {
          throw new DOMException("The person did not confirm.", "NotAllowedError");
        }
        return callback?.({ confirmed: callId !== undefined });
      },
    };
    return new Promise((resolve, reject) => {
      stop.throwIfAborted();
      stop.addEventListener("abort", () => reject(stop.reason), { once: true });
      Promise.resolve(entry.execute(input ?? {}, client)).then(resolve, reject);
    });
  }

  /**
   * @param {string} call
   * @param {string} tool
   * @param {unknown} message
   * @returns {Promise<boolean>}
   */
  function asked(call, tool, message) {
    const id = `i${++interactions}`;
    return new Promise((resolve) => {
      waiting.set(id, resolve);
      send({ op: "interact", id, call, tool, message: typeof message === "string" ? message : undefined });
    });
  }

  class ModelContext extends EventTarget {
    /** @type {((event: Event) => unknown) | null} */
    #handler = null;

    /**
     * @param {unknown} tool
     * @param {{ signal?: AbortSignal }} [options]
     */
    registerTool(tool, options) {
      /** @type {{ entry?: Entry }} */
      const registration = {};
      const done = register(tool, options, registration);
      // Pages of 2025 unregister with the returned object.
      return Object.assign(done, { unregister: () => registration.entry && remove(registration.entry.name, registration.entry) });
    }

    async getTools() {
      return [...tools.values()].map(({ name, title, description, inputSchema, annotations }) => ({
        name,
        title,
        description,
        ...(inputSchema === undefined ? {} : { inputSchema: parse(inputSchema) }),
        ...(annotations === undefined ? {} : { annotations }),
        origin: globalThis.origin,
        window: globalThis.window,
      }));
    }

    /**
     * @param {{ name: string }} tool
     * @param {unknown} input an object or its JSON text
     * @param {{ signal?: AbortSignal }} [options]
     */
    async executeTool(tool, input, options) {
      const entry = tools.get(tool?.name);
      if (!entry) throw new DOMException(`There is no tool named ${tool?.name}.`, "NotFoundError");
      const given = typeof input === "string" ? parse(input) : input;
      return stringify((await run(entry, given, options?.signal)) ?? null);
    }

    get ontoolchange() {
      return this.#handler;
    }

    set ontoolchange(handler) {
      if (this.#handler) this.removeEventListener("toolchange", this.#handler);
      this.#handler = typeof handler === "function" ? handler : null;
      if (this.#handler) this.addEventListener("toolchange", this.#handler);
    }

    // Methods of earlier drafts.
    /** @param {{ tools?: unknown[] }} [given] */
    provideContext(given) {
      this.clearContext();
      for (const tool of given?.tools ?? []) void this.registerTool(tool);
    }

    clearContext() {
      for (const name of [...tools.keys()]) remove(name);
    }

    /** @param {string} name */
    unregisterTool(name) {
      remove(name);
    }
  }
  Object.defineProperty(ModelContext.prototype, Symbol.toStringTag, { value: "ModelContext", configurable: true });
  const context = new ModelContext();

  /**
   * Define `modelContext` so that the page can replace it.
   * @param {object} target
   */
  function install(target) {
    Object.defineProperty(target, "modelContext", {
      configurable: true,
      enumerable: true,
      get: () => context,
      set(value) {
        Object.defineProperty(this, "modelContext", { value, configurable: true, enumerable: true, writable: true });
        list();
      },
    });
  }
  if (globalThis.isSecureContext && !page.modelContext && !(/** @type {any} */ (navigator).modelContext)) {
    install(Document.prototype);
    install(Navigator.prototype);
  }

  /** The page's own `modelContext`, if it is usable. */
  function pageContext() {
    try {
      const found = page.modelContext ?? /** @type {any} */ (navigator).modelContext;
      const usable = found && found !== context && typeof found.getTools === "function" && typeof found.executeTool === "function";
      if (!usable) return null;
      if (typeof found.addEventListener === "function") found.addEventListener("toolchange", list);
      return found;
    } catch {
      return null;
    }
  }

  async function list() {
    const mine = await context.getTools();
    const names = new Set(mine.map(({ name }) => name));
    try {
      const theirs = (await pageContext()?.getTools()) ?? [];
      for (const tool of theirs) if (!names.has(tool?.name)) mine.push(tool);
    } catch {
      // The page's own list cannot be read.
    }
    const listed = mine.slice(0, 500).map(({ name, title, description, inputSchema, annotations }) => {
      return { name, title, description, inputSchema, annotations };
    });
    try {
      send({ op: "tools", tools: listed });
    } catch {
      send({ op: "tools", tools: listed.map(({ name, description }) => ({ name: String(name), description: String(description) })) });
    }
  }

  /**
   * @param {string} id
   * @param {Promise<unknown>} outcome
   */
  function answer(id, outcome) {
    outcome.then(
      (value) => {
        const text = stringify(value) ?? "null";
        if (text.length > MAX_TEXT) throw new Error(`The result is larger than ${MAX_TEXT} characters.`);
        send({ op: "result", id, ok: true, value: text });
      },
    ).catch((error) => send({ op: "result", id, ok: false, error: textOf(error) }));
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {unknown} args
   */
  async function call(id, name, args) {
    const stop = new AbortController();
    calls.set(id, stop);
    try {
      const entry = tools.get(name);
      if (entry) return await run(entry, args, stop.signal, id);
      const theirs = pageContext();
      const tool = (await theirs?.getTools())?.find((/** @type {any} */ found) => found?.name === name);
      if (!tool) throw new Error(`The page no longer has a tool named ${name}.`);
      const given = await theirs.executeTool(tool, stringify(args ?? {}), { signal: stop.signal });
      return typeof given === "string" ? parsed(given) : given;
    } finally {
      calls.delete(id);
    }
  }

  /** @param {string} text */
  function parsed(text) {
    try {
      return parse(text);
    } catch {
      return text;
    }
  }

  apply(addEventListener, channel, [
    REQUEST,
    (/** @type {CustomEvent} */ event) => {
      const { op, id, name, args, confirmed } = parse(event.detail);
      if (op === "list") void list();
      else if (op === "call") answer(id, call(id, name, args));
      else if (op === "cancel") calls.get(id)?.abort(new DOMException("The call was cancelled.", "AbortError"));
      else if (op === "submitting") submitting = id;
      else if (op === "submitted") submitting = null;
      else if (op === "interacted") {
        waiting.get(id)?.(confirmed === true);
        waiting.delete(id);
      }
    },
  ]);

  // With these a page responds to a form that an agent submitted.
  if (!("agentInvoked" in SubmitEvent.prototype)) {
    Object.defineProperty(SubmitEvent.prototype, "agentInvoked", {
      configurable: true,
      enumerable: true,
      get() {
        return this.isTrusted && submitting !== null;
      },
    });
    Object.defineProperty(SubmitEvent.prototype, "respondWith", {
      configurable: true,
      enumerable: true,
      writable: true,
      /** @param {unknown} response */
      value(response) {
        if (!this.agentInvoked || submitting === null || !this.defaultPrevented) {
          const why = "respondWith is for a submission by an agent, after preventDefault.";
          throw new DOMException(why, "InvalidStateError");
        }
        send({ op: "responding", id: submitting });
        answer(submitting, Promise.resolve(response));
      },
    });
  }
  void list();
})();
