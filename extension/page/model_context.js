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
  // Options have no prototype: libraries add members to all objects.
  const ONCE = Object.freeze({ __proto__: null, once: true });
  // Copied now: a page may replace these later, or libraries may change them.
  const { parse, stringify } = JSON;
  const apply = Reflect.apply;
  const { assign, create, defineProperty, keys, setPrototypeOf } = Object;
  const { isArray } = Array;
  const NewPromise = Promise;
  const { dispatchEvent, addEventListener } = EventTarget.prototype;
  const [NewEvent, PlainEvent, Failure, NewController] = [CustomEvent, Event, DOMException, AbortController];
  const anySignal = AbortSignal.any.bind(AbortSignal);
  const PlainObject = Object.prototype;
  const dateAsJson = Date.prototype.toJSON;
  const dateTime = Date.prototype.getTime;
  const channel = performance;
  const page = /** @type {any} */ (document);

  if (Object.hasOwn(page, MARK)) return;
  defineProperty(page, MARK, { value: true });
  const ofDocument = nativeContext(Document.prototype, document);
  const ofNavigator = nativeContext(Navigator.prototype, navigator);

  /**
   * The browser's own context.
   * @param {object} prototype
   * @param {object} target
   */
  function nativeContext(prototype, target) {
    const own = Object.getOwnPropertyDescriptor(prototype, "modelContext");
    const isNative = own?.get && Function.prototype.toString.call(own.get).includes("[native code]");
    return isNative && own.get ? apply(own.get, target, []) : undefined;
  }

  /** @typedef {{ name: string, title: string, description: string, inputSchema: string | undefined, annotations: unknown, execute: Function, removed: AbortController }} Entry */
  /** @type {Map<string, Entry>} */
  const tools = pinned(new Map());
  /** Running calls of agents. @type {Map<string, AbortController>} */
  const calls = pinned(new Map());
  /** Pending confirmations. @type {Map<string, (confirmed: boolean) => void>} */
  const waiting = pinned(new Map());
  /** The call whose form is being submitted. @type {string | null} */
  let submitting = null;
  let interactions = 0;

  /**
   * A map with its methods as they are now.
   * @template {Map<any, any>} M
   * @param {M} map
   * @returns {M}
   */
  function pinned(map) {
    for (const name of /** @type {const} */ (["get", "set", "has", "delete", "forEach"])) {
      defineProperty(map, name, { value: Map.prototype[name] });
    }
    return map;
  }

  /**
   * A copy that is written as JSON whatever libraries have added to arrays and objects, such as a `toJSON` that gives text.
   * @param {any} value
   * @param {number} [depth]
   * @returns {any}
   */
  function plain(value, depth = 0) {
    if (typeof value !== "object" || value === null) return value;
    if (depth > 500) throw new TypeError("It contains itself, or is nested too deeply.");
    const copy = isArray(value) ? setPrototypeOf([], null) : create(null);
    if (isArray(value)) {
      for (let index = 0; index < value.length; index++) copy[index] = plain(value[index], depth + 1);
      return copy;
    }
    const own = value.toJSON;
    if (typeof own === "function" && own !== /** @type {any} */ (PlainObject).toJSON) {
      return plain(isDate(value) ? apply(dateAsJson, value, []) : own.call(value), depth + 1);
    }
    const names = keys(value);
    for (let index = 0; index < names.length; index++) {
      const name = /** @type {string} */ (names[index]);
      copy[name] = plain(value[name], depth + 1);
    }
    return copy;
  }

  /** @param {object} value */
  function isDate(value) {
    try {
      apply(dateTime, value, []);
      return true;
    } catch {
      return false;
    }
  }

  /** @param {unknown} value */
  function written(value) {
    return stringify(plain(value));
  }

  /** @param {Record<string, unknown>} message */
  function send(message) {
    /** @type {any} */
    const options = { __proto__: null, detail: written(message) };
    apply(dispatchEvent, channel, [new NewEvent(REPLY, options)]);
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
    apply(dispatchEvent, context, [new PlainEvent("toolchange")]);
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
    if (invalid) throw new Failure(`A tool needs a name of 1 to ${MAX_NAME} characters.`, "InvalidStateError");
    if (tools.has(name)) throw new Failure(`A tool named ${name} is already registered.`, "InvalidStateError");
    const schema = inputSchema === undefined || inputSchema === null ? undefined : written(inputSchema);
    const notes = annotations === undefined ? undefined : parse(written(annotations));
    return {
      name,
      title: String(title),
      description: String(description),
      inputSchema: schema,
      annotations: notes,
      execute,
      removed: new NewController(),
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
    entry.removed.abort(new Failure("The tool was unregistered.", "AbortError"));
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
    if (signal) apply(addEventListener, signal, ["abort", () => remove(entry.name, entry), ONCE]);
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
    const stop = signal ? anySignal([signal, entry.removed.signal]) : entry.removed.signal;
    const client = {
      signal: stop,
      /**
       * @param {(given: { confirmed: boolean }) => unknown} [callback] gets whether the person has already confirmed
       * @param {{ message?: unknown }} [options] the question
       */
      requestUserInteraction: async (callback, options) => {
        if (callId !== undefined && !(await asked(callId, entry.name, options?.message))) {
          throw new Failure("The person did not confirm.", "NotAllowedError");
        }
        return callback?.({ confirmed: callId !== undefined });
      },
    };
    return new NewPromise((resolve, reject) => {
      stop.throwIfAborted();
      apply(addEventListener, stop, ["abort", () => reject(stop.reason), ONCE]);
      const execute = async () => {
        try {
          resolve(await entry.execute(input ?? {}, client));
        } catch (error) {
          reject(error);
        }
      };
      void execute();
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
    return new NewPromise((resolve) => {
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
      return assign(done, { unregister: () => registration.entry && remove(registration.entry.name, registration.entry) });
    }

    async getTools() {
      /** @type {Record<string, unknown>[]} */
      const found = [];
      tools.forEach(({ name, title, description, inputSchema, annotations }) => {
        found[found.length] = {
          name,
          title,
          description,
          ...(inputSchema === undefined ? {} : { inputSchema: parse(inputSchema) }),
          ...(annotations === undefined ? {} : { annotations }),
          origin: globalThis.origin,
          window: globalThis.window,
        };
      });
      return found;
    }

    /**
     * @param {{ name: string }} tool
     * @param {unknown} input an object or its JSON text
     * @param {{ signal?: AbortSignal }} [options]
     */
    async executeTool(tool, input, options) {
      const entry = tools.get(tool?.name);
      if (!entry) throw new Failure(`There is no tool named ${tool?.name}.`, "NotFoundError");
      const given = typeof input === "string" ? parse(input) : input;
      return written((await run(entry, given, options?.signal)) ?? null);
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
      tools.forEach((_, name) => remove(name));
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
    defineProperty(target, "modelContext", {
      configurable: true,
      enumerable: true,
      get: () => context,
      set(value) {
        const own = { __proto__: null, value, configurable: true, enumerable: true, writable: true };
        defineProperty(this, "modelContext", own);
        list();
      },
    });
  }
  if (globalThis.isSecureContext) {
    const others = /** @type {any} */ (navigator);
    const there = !ofDocument && page.modelContext;
    // With a context of the browser in the document, pages written for earlier drafts still look in the navigator.
    if (!ofDocument && !page.modelContext && !others.modelContext) install(Document.prototype);
    if (!there && !others.modelContext) install(Navigator.prototype);
  }

  /** The page's own `modelContext`, if it is usable. */
  function pageContext() {
    try {
      for (const found of [page.modelContext, /** @type {any} */ (navigator).modelContext]) {
        if (!found || found === context || found === ofDocument || found === ofNavigator) continue;
        if (typeof found.getTools !== "function" || typeof found.executeTool !== "function") continue;
        if (typeof found.addEventListener === "function") found.addEventListener("toolchange", list);
        return found;
      }
      return null;
    } catch {
      return null;
    }
  }

  async function list() {
    /** @type {Record<string, unknown>[]} */
    const listed = [];
    /** @type {Record<string, unknown>[]} */
    const short = [];
    /** @param {any} found */
    const add = (found) => {
      for (let index = 0; index < found.length && listed.length < 500; index++) {
        const { name, title, description, inputSchema, annotations } = found[index] ?? {};
        if (found !== mine && tools.has(name)) continue;
        listed[listed.length] = { name, title, description, inputSchema, annotations };
        short[short.length] = { name: String(name), description: String(description) };
      }
    };
    const mine = await context.getTools();
    add(mine);
    try {
      add((await pageContext()?.getTools()) ?? []);
    } catch {
      // The page's own list cannot be read.
    }
    try {
      send({ op: "tools", tools: listed });
    } catch {
      send({ op: "tools", tools: short });
    }
  }

  /**
   * @param {string} id
   * @param {unknown} outcome the result, or a promise of it
   */
  async function answer(id, outcome) {
    try {
      const text = written(await outcome) ?? "null";
      if (text.length > MAX_TEXT) throw new Error(`The result is larger than ${MAX_TEXT} characters.`);
      send({ op: "result", id, ok: true, value: text });
    } catch (error) {
      send({ op: "result", id, ok: false, error: textOf(error) });
    }
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {unknown} args
   */
  async function call(id, name, args) {
    const stop = new NewController();
    calls.set(id, stop);
    try {
      const entry = tools.get(name);
      if (entry) return await run(entry, args, stop.signal, id);
      const theirs = pageContext();
      const offered = (await theirs?.getTools()) ?? [];
      let tool;
      for (let index = 0; index < offered.length && !tool; index++) if (offered[index]?.name === name) tool = offered[index];
      if (!tool) throw new Error(`The page no longer has a tool named ${name}.`);
      const given = await theirs.executeTool(tool, written(args ?? {}), { signal: stop.signal });
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
      else if (op === "call") void answer(id, call(id, name, args));
      else if (op === "cancel") calls.get(id)?.abort(new Failure("The call was cancelled.", "AbortError"));
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
          throw new Failure(why, "InvalidStateError");
        }
        send({ op: "responding", id: submitting });
        void answer(submitting, response);
      },
    });
  }
  void list();
})();
