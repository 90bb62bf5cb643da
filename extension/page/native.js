/**
 * The browser's own WebMCP, used from the extension's world, where a page cannot replace it.
 *
 * Released versions differ, and a slow list must not delay calls: only one list is requested at a time, with a short
 * timeout.
 */

var NativeContext = class {
  /** @type {unknown[]} */
  tools = [];
  /** The browser's tool objects, which a call needs. @type {Map<string, any>} */
  #known = new Map();
  /** @type {Promise<void> | null} */
  #listing = null;
  #listAgain = false;
  #context;
  #changed;

  /** The browser's WebMCP, or null. */
  static find() {
    const context = /** @type {any} */ (document).modelContext;
    return typeof context?.getTools === "function" && typeof context.executeTool === "function" ? context : null;
  }

  /**
   * @param {any} context
   * @param {() => void} changed
   */
  constructor(context, changed) {
    this.#context = context;
    this.#changed = changed;
    context.addEventListener("toolchange", this.#toolchange);
    this.refresh();
  }

  /** List the tools, and again if requested while listing. */
  refresh() {
    if (this.#listing) this.#listAgain = true;
    else this.#listing = this.#list();
    return this.#listing;
  }

  /**
   * @param {string} name
   * @param {PageCall} call
   * @returns {Running}
   */
  call(name, call) {
    const stop = new AbortController();
    return { answer: this.#call(name, call.args, stop.signal), cancel: () => stop.abort() };
  }

  stop() {
    this.#context.removeEventListener("toolchange", this.#toolchange);
  }

  #toolchange = () => void this.refresh();

  async #list() {
    let found = null;
    try {
      const slow = new Promise((resolve) => setTimeout(() => resolve(null), 2000));
      found = await Promise.race([this.#context.getTools(), slow]);
    } catch {
      // Not allowed in this document.
      found = [];
    }
    this.#listing = null;
    if (Array.isArray(found)) this.#setTools(found);
    if (this.#listAgain) {
      this.#listAgain = false;
      void this.refresh();
    }
  }

  /** @param {any[]} found */
  #setTools(found) {
    // Frames report their own tools.
    const own = found.filter((tool) => tool?.window === undefined || tool.window === window);
    this.#known = new Map(own.map((tool) => [tool.name, tool]));
    this.tools = own.map(({ name, title, description, inputSchema, annotations }) => ({
      name,
      title,
      description,
      inputSchema: typeof inputSchema === "string" ? parsed(inputSchema) : inputSchema,
      annotations,
      via: "webmcp",
    }));
    this.#changed();
  }

  /**
   * @param {string} name
   * @param {unknown} args
   * @param {AbortSignal} signal
   */
  async #call(name, args, signal) {
    if (!this.#known.has(name)) await this.refresh();
    const tool = this.#known.get(name);
    if (!tool) throw new Error(`The page no longer has a tool named ${name}.`);
    const text = JSON.stringify(args ?? {});
    // Some versions expect an object, others its JSON: this is an object that converts to the JSON.
    const either = Object.defineProperty(JSON.parse(text), "toString", { value: () => text });
    const given = await this.#context.executeTool(tool, either, { signal });
    return typeof given === "string" ? parsed(given) : given;
  }
};

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
