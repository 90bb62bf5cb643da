/**
 * An MCP client to a server in the page, over MCP-B messages.
 *
 * Owns that session: finding the server, also one that starts late or is replaced, its tools, the running calls and the
 * server's requests. The page and other clients in it see every message: a random prefix marks the ids of this client,
 * and results are validated by their users.
 */

var McpbClient = class {
  /** @type {unknown[]} */
  tools = [];
  /** The server's capabilities beyond MCP. @type {Record<string, boolean>} */
  browser = {};
  /** The capabilities of the server for what it has besides tools. @type {string[]} */
  #offering = [];
  /** Prompts, resources and templates by their names in the list of tools. @type {Map<string, { kind: string, own: string }>} */
  #offers = new Map();
  #ready = false;
  #checkedAt = 0;
  #initializing = false;
  #listedAt = 0;
  #listSoon = false;
  #next = 1;
  #listing = false;
  #listAgain = false;
  #prefix = `tabhub-${pageChecks.randomId()}-`;
  /** @type {Map<string, PromiseWithResolvers<any>>} */
  #waiting = new Map();
  /** Running calls by their id on the wire. @type {Map<string, PageCall>} */
  #calls = new Map();
  #changed;
  #later;

  /**
   * @param {() => void} changed
   * @param {(ms: number, run: () => void) => void} later
   */
  constructor(changed, later) {
    this.#changed = changed;
    this.#later = later;
    this.refresh();
    // Servers of early 2025 announce themselves only once: for one that started earlier, just try to initialize.
    if (document.readyState !== "loading") setTimeout(() => this.#ready || void this.#initialize(), 1000);
  }

  /** Whether a server was found. */
  get found() {
    return this.#ready;
  }

  /** Look for a server, or list the tools of a known one. */
  refresh() {
    // Each time, since document.open() removes the listeners of a window.
    window.addEventListener("message", this.#message);
    if (this.#ready) return void this.#list();
    this.#checkedAt = Date.now();
    this.#post("mcp-check-ready");
  }

  /**
   * @param {string} name
   * @param {PageCall} call
   * @returns {Running}
   */
  call(name, call) {
    const offer = this.#offers.get(name);
    const args = pageChecks.isObject(call.args) ? call.args : {};
    if (offer?.kind === "prompt") return this.#ask("prompts/get", { name: offer.own, arguments: args });
    if (offer) return this.#ask("resources/read", { uri: offer.kind === "resource" ? offer.own : String(args["uri"]) });
    const _meta = { ...call.meta, progressToken: call.requestId };
    const extensions = call.extensions === undefined ? {} : { extensions: call.extensions };
    const params = { name, arguments: call.args ?? {}, _meta, ...extensions };
    const { id, answer } = this.#request("tools/call", params);
    this.#calls.set(id, call);
    const cancel = () => {
      this.#notify("notifications/cancelled", { requestId: id, reason: "The call was cancelled." });
      this.#waiting.get(id)?.reject(new Error("The call was cancelled."));
    };
    return { answer: answer.finally(() => this.#calls.delete(id)), cancel };
  }

  /**
   * A request for a prompt or resource; its answer travels as structured content.
   * @param {string} method
   * @param {Record<string, unknown>} params
   * @returns {Running}
   */
  #ask(method, params) {
    const { id, answer } = this.#request(method, params);
    const wrapped = answer.then((result) => ({ content: [], structuredContent: pageChecks.isObject(result) ? result : {} }));
    return { answer: wrapped, cancel: () => this.#waiting.get(id)?.reject(new Error("The call was cancelled.")) };
  }

  stop() {
    window.removeEventListener("message", this.#message);
    this.#disconnected("The page was closed.");
  }

  /** @param {unknown} payload */
  #post(payload) {
    window.postMessage({ channel: "mcp-default", type: "mcp", direction: "client-to-server", payload }, "*");
  }

  /**
   * @param {string} method
   * @param {Record<string, unknown>} params
   */
  #request(method, params) {
    const id = `${this.#prefix}${this.#next++}`;
    /** @type {PromiseWithResolvers<any>} */
    const waiter = Promise.withResolvers();
    this.#waiting.set(id, waiter);
    this.#post({ jsonrpc: "2.0", id, method, params });
    return { id, answer: waiter.promise.finally(() => this.#waiting.delete(id)) };
  }

  /**
   * A request that a server answers at once.
   * @param {string} method
   * @param {Record<string, unknown>} params
   */
  #requestWithTimeout(method, params) {
    const { id, answer } = this.#request(method, params);
    const timer = setTimeout(() => this.#waiting.get(id)?.reject(new Error(`No answer to ${method}.`)), 5000);
    return answer.finally(() => clearTimeout(timer));
  }

  /**
   * @param {string} method
   * @param {Record<string, unknown>} params
   */
  #notify(method, params) {
    this.#post({ jsonrpc: "2.0", method, params });
  }

  async #initialize() {
    // Once at a time, however often the page announces a server.
    if (this.#initializing) return;
    this.#initializing = true;
    try {
      const result = await this.#requestWithTimeout("initialize", {
        protocolVersion: "2025-06-18",
        capabilities: { elicitation: {} },
        clientInfo: { name: "tabhub", version: chrome.runtime.getManifest().version },
      });
      const { capabilities } = pageChecks.isObject(result) ? result : {};
      const declared = pageChecks.isObject(capabilities) ? capabilities : {};
      const experimental = pageChecks.isObject(declared["experimental"]) ? declared["experimental"] : {};
      const browser = declared["browser"] ?? experimental["browser"];
      const known = pageChecks.isObject(browser) ? browser : {};
      const names = ["cacheSupported", "elicitation"].filter((name) => typeof known[name] === "boolean");
      this.#offering = ["prompts", "resources"].filter((name) => pageChecks.isObject(declared[name]));
      this.browser = Object.fromEntries(names.map((name) => [name, known[name] === true]));
      this.#notify("notifications/initialized", {});
      this.#ready = true;
      await this.#list();
    } catch {
      // No MCP server: the next announcement is tried again.
    } finally {
      this.#initializing = false;
    }
  }

  /** List the tools again soon, at most every 500 ms. */
  #relist() {
    if (this.#listSoon) return;
    this.#listSoon = true;
    this.#later(Math.max(0, this.#listedAt + 500 - Date.now()), () => {
      this.#listSoon = false;
      void this.#list();
    });
  }

  async #list() {
    this.#listAgain = this.#listing;
    if (this.#listing) return;
    this.#listing = true;
    this.#listedAt = Date.now();
    try {
      const found = await this.#listAll("tools/list", "tools");
      const tools = found.map((tool) => ({ ...(pageChecks.isObject(tool) ? tool : {}), via: "mcpb", kind: undefined }));
      const offers = await this.#listOffers();
      this.#offers = new Map(offers.map(({ name, kind }) => [name, { kind, own: name.slice(kind.length + 1) }]));
      this.tools = [...tools.filter((tool) => !this.#offers.has(String(/** @type {any} */ (tool).name))), ...offers];
      this.#changed();
    } catch {
      // The previous list stays until the server sends a new one or stops.
    } finally {
      this.#listing = false;
    }
    if (this.#listAgain) this.#relist();
  }

  /**
   * All items of a list, page by page.
   * @param {string} method
   * @param {string} key of the answer
   */
  async #listAll(method, key) {
    /** @type {unknown[]} */
    const found = [];
    /** @type {unknown} */
    let cursor;
    do {
      const page = await this.#requestWithTimeout(method, typeof cursor === "string" ? { cursor } : {});
      if (!Array.isArray(page?.[key])) break;
      found.push(...page[key]);
      cursor = page.nextCursor;
    } while (typeof cursor === "string" && found.length < 500);
    return found;
  }

  /** What the server has besides tools, in the form of tools. */
  async #listOffers() {
    const found = [];
    for (const { capability, kind, method, key, field } of OFFERS) {
      if (!this.#offering.includes(capability)) continue;
      // Many servers have resources and no templates.
      for (const item of await this.#listAll(method, key).catch(() => [])) {
        if (!pageChecks.isObject(item) || typeof item[field] !== "string") continue;
        const title = kind === "prompt" ? item["title"] : (item["title"] ?? item["name"]);
        const { description, mimeType } = item;
        const annotations = typeof mimeType === "string" ? { mimeType } : undefined;
        const inputSchema = kind === "prompt" ? argumentSchema(item["arguments"]) : { type: "object" };
        found.push({ name: `${kind}:${item[field]}`, kind, title, description, inputSchema, annotations, via: "mcpb" });
      }
    }
    return found;
  }

  /** @param {string} reason */
  #disconnected(reason) {
    this.#ready = false;
    this.tools = [];
    this.browser = {};
    for (const waiter of this.#waiting.values()) waiter.reject(new Error(reason));
  }

  /** @param {MessageEvent} event */
  #message = (event) => {
    const data = event.data;
    if (event.source !== window || !pageChecks.isObject(data)) return;
    if (data["channel"] !== "mcp-default" || data["type"] !== "mcp" || data["direction"] !== "server-to-client") return;
    const payload = data["payload"];
    if (payload === "mcp-server-ready") {
      // Not the answer to an own check: it may be a new server in place of the previous one.
      if (!this.#ready || Date.now() - this.#checkedAt > 1000) void this.#initialize();
    } else if (payload === "mcp-server-stopped") {
      this.#disconnected("The page's server stopped.");
      this.#changed();
    } else if (pageChecks.isObject(payload) && payload["jsonrpc"] === "2.0") {
      if (typeof payload["method"] === "string") this.#receiveRequest(payload["method"], payload);
      else this.#resolve(payload);
    }
  };

  /** @param {Record<string, unknown>} payload */
  #resolve(payload) {
    const waiter = this.#waiting.get(String(payload["id"]));
    if (!waiter) return;
    const error = payload["error"];
    if (pageChecks.isObject(error)) waiter.reject(new Error(String(error["message"])));
    else waiter.resolve(payload["result"]);
  }

  /**
   * @param {string} method
   * @param {Record<string, unknown>} payload
   */
  #receiveRequest(method, payload) {
    const params = pageChecks.isObject(payload["params"]) ? payload["params"] : {};
    const id = payload["id"];
    if (/^notifications\/(tools|prompts|resources)\/list_changed$/.test(method)) this.#relist();
    else if (method === "notifications/progress") {
      const token = params["progressToken"];
      for (const call of this.#calls.values()) if (call.requestId === token) call.progress(params);
    } else if (id === undefined) return;
    else if (method === "ping") this.#post({ jsonrpc: "2.0", id, result: {} });
    else if (method === "elicitation/create") void this.#elicit(id, params);
    // Other requests may be for another client in the page.
  }

  /**
   * The server asks for input of the person, who can only confirm or decline.
   * @param {unknown} id
   * @param {Record<string, unknown>} params
   */
  async #elicit(id, params) {
    const call = [...this.#calls.values()].at(-1);
    const wanted = pageChecks.isObject(params["requestedSchema"]) ? params["requestedSchema"] : {};
    const content = confirmationContent(wanted);
    const asks = call && content;
    const confirmed = asks ? await call.confirm(String(params["message"] ?? ""), { requestedSchema: wanted }) : false;
    const result = !asks ? { action: "cancel" } : confirmed ? { action: "accept", content } : { action: "decline" };
    this.#post({ jsonrpc: "2.0", id, result });
  }
};

/** The lists of a server besides its tools; `field` names an item. */
var OFFERS = [
  { capability: "prompts", kind: "prompt", method: "prompts/list", key: "prompts", field: "name" },
  { capability: "resources", kind: "resource", method: "resources/list", key: "resources", field: "uri" },
  { capability: "resources", kind: "template", method: "resources/templates/list", key: "resourceTemplates", field: "uriTemplate" },
];

/**
 * The arguments of a prompt as a schema.
 * @param {unknown} given
 */
function argumentSchema(given) {
  const named = (Array.isArray(given) ? given : []).filter((one) => pageChecks.isObject(one) && typeof one["name"] === "string");
  const described = named.map(({ name, description }) => [name, { type: "string", ...(typeof description === "string" ? { description } : {}) }]);
  const required = named.filter((one) => one.required === true).map(({ name }) => name);
  return { type: "object", properties: Object.fromEntries(described), ...(required.length > 0 ? { required } : {}) };
}

/**
 * The content of a confirmation for a schema: true for each boolean, or null if it requires more than that.
 * @param {Record<string, unknown>} schema
 */
function confirmationContent(schema) {
  const properties = pageChecks.isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const yes = Object.entries(properties).filter(([, of]) => pageChecks.isObject(of) && of["type"] === "boolean");
  const given = new Map(yes.map(([name]) => [name, true]));
  return required.every((name) => given.has(name)) ? Object.fromEntries(given) : null;
}
