/**
 * The browser's own WebMCP, asked from the extension's world, where no page can stand in for it.
 *
 * Released versions differ, and one whose list is slow must not hold up calls: a list is asked for once at a time and
 * waited for briefly.
 */

var NativeContext = class {
  /** @type {unknown[]} */
  tools = [];
  /** The browser's own objects, which a call must hand back. @type {Map<string, any>} */
  #known = new Map();
  /** @type {Promise<void> | null} */
  #listing = null;
  #again = false;
  #context;
  #changed;

  /** What the browser has, or null. */
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

  /** Ask for the list, and once more if it was asked for meanwhile. */
  refresh() {
    if (this.#listing) this.#again = true;
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
      // Not allowed in this document: it has none.
      found = [];
    }
    this.#listing = null;
    if (Array.isArray(found)) this.#take(found);
    if (this.#again) {
      this.#again = false;
      void this.refresh();
    }
  }

  /** @param {any[]} found */
  #take(found) {
    // Frames tell their own tools.
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
    // Some versions take an object and some its text: this is the one, and reads as the other.
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
