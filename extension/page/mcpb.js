/**
 * An MCP client to a server that lives in the page, over the messages MCP-B uses.
 *
 * Owns that session: finding the server, also one that comes late or is replaced, its tools, the calls in flight and
 * what the server asks back. The page sees every message, and so does any other client in it: ids are ours by a prefix
 * no one else has, and what comes is checked by whoever uses it.
 */

var McpbClient = class {
  /** @type {unknown[]} */
  tools = [];
  /** What the server says of itself beyond MCP. @type {Record<string, boolean>} */
  browser = {};
  #ready = false;
  #checkedAt = 0;
  #beginning = false;
  #listedAt = 0;
  #listSoon = false;
  #next = 1;
  #listing = false;
  #again = false;
  #prefix = `tabhub-${crypto.getRandomValues(new Uint32Array(2)).join("-")}-`;
  /** @type {Map<string, PromiseWithResolvers<any>>} */
  #waiting = new Map();
  /** Calls in flight by the id they have on the wire. @type {Map<string, PageCall>} */
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
    // Servers of early 2025 say that they are there once, and answer no question: one that came before us is just tried.
    if (document.readyState !== "loading") setTimeout(() => this.#ready || void this.#begin(), 1000);
  }

  /** Whether there is a server. */
  get found() {
    return this.#ready;
  }

  /** Look for a server, or ask the one there is for its tools. */
  refresh() {
    // Again each time: document.open() strips a window of its listeners.
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

  stop() {
    window.removeEventListener("message", this.#message);
    this.#ended("The page is gone.");
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
   * A request that a server which is there answers at once.
   * @param {string} method
   * @param {Record<string, unknown>} params
   */
  #quick(method, params) {
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

  async #begin() {
    // One at a time, however often a page says that it is ready.
    if (this.#beginning) return;
    this.#beginning = true;
    try {
      const result = await this.#quick("initialize", {
        protocolVersion: "2025-06-18",
        capabilities: { elicitation: {} },
        clientInfo: { name: "tabhub", version: chrome.runtime.getManifest().version },
      });
      const { capabilities } = pageChecks.isObject(result) ? result : {};
      const said = pageChecks.isObject(capabilities) ? capabilities : {};
      const experimental = pageChecks.isObject(said["experimental"]) ? said["experimental"] : {};
      const browser = said["browser"] ?? experimental["browser"];
      const known = pageChecks.isObject(browser) ? browser : {};
      const says = ["cacheSupported", "elicitation"].filter((name) => typeof known[name] === "boolean");
      this.browser = Object.fromEntries(says.map((name) => [name, known[name] === true]));
      this.#notify("notifications/initialized", {});
      this.#ready = true;
      await this.#list();
    } catch {
      // No server after all, or not one that speaks MCP: the next sign of one begins anew.
    } finally {
      this.#beginning = false;
    }
  }

  /** Ask for the list soon, and no more often than every 500 ms. */
  #relist() {
    if (this.#listSoon) return;
    this.#listSoon = true;
    this.#later(Math.max(0, this.#listedAt + 500 - Date.now()), () => {
      this.#listSoon = false;
      void this.#list();
    });
  }

  async #list() {
    this.#again = this.#listing;
    if (this.#listing) return;
    this.#listing = true;
    this.#listedAt = Date.now();
    try {
      /** @type {unknown[]} */
      const found = [];
      /** @type {unknown} */
      let cursor;
      do {
        const page = await this.#quick("tools/list", typeof cursor === "string" ? { cursor } : {});
        if (!Array.isArray(page?.tools)) break;
        found.push(...page.tools);
        cursor = page.nextCursor;
      } while (typeof cursor === "string" && found.length < 500);
      this.tools = found.map((tool) => ({ ...(pageChecks.isObject(tool) ? tool : {}), via: "mcpb" }));
      this.#changed();
    } catch {
      // The list as it was stays until the server tells a new one or is gone.
    } finally {
      this.#listing = false;
    }
    if (this.#again) this.#relist();
  }

  /** @param {string} why */
  #ended(why) {
    this.#ready = false;
    this.tools = [];
    this.browser = {};
    for (const waiter of this.#waiting.values()) waiter.reject(new Error(why));
  }

  /** @param {MessageEvent} event */
  #message = (event) => {
    const data = event.data;
    if (event.source !== window || !pageChecks.isObject(data)) return;
    if (data["channel"] !== "mcp-default" || data["type"] !== "mcp" || data["direction"] !== "server-to-client") return;
    const payload = data["payload"];
    if (payload === "mcp-server-ready") {
      // An answer to what we asked ourselves brings nothing new; any other may be a server in place of the one before.
      if (!this.#ready || Date.now() - this.#checkedAt > 1000) void this.#begin();
    } else if (payload === "mcp-server-stopped") {
      this.#ended("The page's server stopped.");
      this.#changed();
    } else if (pageChecks.isObject(payload) && payload["jsonrpc"] === "2.0") {
      if (typeof payload["method"] === "string") this.#asked(payload["method"], payload);
      else this.#settle(payload);
    }
  };

  /** @param {Record<string, unknown>} payload */
  #settle(payload) {
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
  #asked(method, payload) {
    const params = pageChecks.isObject(payload["params"]) ? payload["params"] : {};
    const id = payload["id"];
    if (method === "notifications/tools/list_changed") this.#relist();
    else if (method === "notifications/progress") {
      const token = params["progressToken"];
      for (const call of this.#calls.values()) if (call.requestId === token) call.progress(params);
    } else if (id === undefined) return;
    else if (method === "ping") this.#post({ jsonrpc: "2.0", id, result: {} });
    else if (method === "elicitation/create") void this.#elicited(id, params);
    // Not for us to refuse anything else: another client of the page may have it.
  }

  /**
   * The server asks its client for a word of the person: they can say yes or no, and nothing else.
   * @param {unknown} id
   * @param {Record<string, unknown>} params
   */
  async #elicited(id, params) {
    const call = [...this.#calls.values()].at(-1);
    const wanted = pageChecks.isObject(params["requestedSchema"]) ? params["requestedSchema"] : {};
    const content = agreement(wanted);
    const asks = call && content;
    const confirmed = asks ? await call.confirm(String(params["message"] ?? ""), { requestedSchema: wanted }) : false;
    const result = !asks ? { action: "cancel" } : confirmed ? { action: "accept", content } : { action: "decline" };
    this.#post({ jsonrpc: "2.0", id, result });
  }
};

/**
 * What "yes" means to a schema: true for all it asks, or null if it asks for more than that.
 * @param {Record<string, unknown>} schema
 */
function agreement(schema) {
  const properties = pageChecks.isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const yes = Object.entries(properties).filter(([, of]) => pageChecks.isObject(of) && of["type"] === "boolean");
  const given = new Map(yes.map(([name]) => [name, true]));
  return required.every((name) => given.has(name)) ? Object.fromEntries(given) : null;
}
