/**
 * The proxy of one frame: a thin relay between the page's tools and the worker.
 *
 * Owns the precedence of tool sources, when the list is reported, and the port. It decides nothing about permissions. A
 * frame without tools never opens a port. It knows no secret, no tab and no other frame.
 */

var STABLE_MS = 5000;

/**
 * The port to the worker.
 * @typedef {Omit<chrome.runtime.Port, "postMessage"> & { postMessage: (message: import("../link/messages.js").FromFrame) => void }} FramePort
 */

var PageProxy = class {
  /** In order of precedence: the first source with a tool of a name is used. @type {any[]} */
  #sources = [];
  /** @type {InstanceType<typeof McpbClient>} */
  #mcpb;
  /** @type {FramePort | null} */
  #port = null;
  /** The list that was last reported on this port, or "". */
  #reported = "";
  #reportedAt = 0;
  #reportScheduled = false;
  /** Functions to run when the worker sends a wake message. @type {Map<number, () => void>} */
  #wakes = new Map();
  #nextWake = 1;
  #tasks = new MessageChannel();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retry;
  #failures = 0;
  #connectedAt = 0;
  #stopped = false;
  #hidden = false;
  /** @type {Map<string, { cancel: () => void }>} */
  #running = new Map();
  /** @type {Map<string, (confirmed: boolean) => void>} */
  #confirmations = new Map();
  #poll;

  constructor() {
    const changed = () => this.#reportSoon();
    const later = (/** @type {number} */ ms, /** @type {() => void} */ run) => this.#later(ms, run);
    this.#tasks.port1.onmessage = ({ data }) => this.#wake(data);
    const native = NativeContext.find();
    const context = new PageContext(changed);
    this.#mcpb = new McpbClient(changed, later);
    this.#sources = [native ? new NativeContext(native, changed) : context, this.#mcpb];
    // Browsers with WebMCP and declarative forms list those forms themselves.
    if (!native || !("agentInvoked" in SubmitEvent.prototype)) this.#sources.push(new PageForms(context, changed, later));
    if (native) this.#sources.push(context);
    // Finds changes without an event.
    this.#poll = setInterval(() => this.#refresh(), 60_000);
    window.addEventListener("pagehide", this.#onPageHide);
    window.addEventListener("pageshow", this.#onPageShow);
    document.addEventListener("prerenderingchange", changed);
  }

  /** Whether this proxy is active and its extension is running. */
  get alive() {
    return !this.#stopped && chrome.runtime?.id !== undefined;
  }

  stop() {
    this.#stopped = true;
    for (const source of this.#sources) source.stop();
    clearInterval(this.#poll);
    this.#tasks.port1.close();
    clearTimeout(this.#retry);
    window.removeEventListener("pagehide", this.#onPageHide);
    window.removeEventListener("pageshow", this.#onPageShow);
    if (chrome.runtime?.id !== undefined) this.#port?.disconnect();
    this.#port = null;
  }

  #refresh() {
    if (!this.alive) return this.stop();
    for (const source of this.#sources) source.refresh();
  }

  #onPageHide = () => {
    this.#hidden = true;
    this.#port?.disconnect();
    this.#disconnected();
  };

  /** @param {PageTransitionEvent} event */
  #onPageShow = (event) => {
    if (!event.persisted) return;
    this.#hidden = false;
    this.#refresh();
    this.#reportSoon();
  };

  /** Report the list soon, at most every 500 ms. */
  #reportSoon() {
    if (this.#reportScheduled || this.#stopped || this.#hidden) return;
    this.#reportScheduled = true;
    this.#later(Math.max(0, this.#reportedAt + 500 - Date.now()), () => {
      this.#reportScheduled = false;
      this.#report();
    });
  }

  /**
   * Run something after a delay. Timers of a hidden page may be a minute late, so there the worker sends a wake message;
   * without a port it runs at once.
   * @param {number} ms
   * @param {() => void} run
   */
  #later(ms, run) {
    if (ms > 0 && !document.hidden) return void setTimeout(run, ms);
    const wakeId = this.#nextWake++;
    this.#wakes.set(wakeId, run);
    if (ms > 0 && this.#port) this.#port.postMessage({ type: "wake-me", wakeId, after: ms });
    else this.#tasks.port2.postMessage(wakeId);
  }

  /** @param {number} wakeId */
  #wake(wakeId) {
    const run = this.#wakes.get(wakeId);
    this.#wakes.delete(wakeId);
    run?.();
  }

  #report() {
    if (this.#stopped || this.#hidden || /** @type {any} */ (document).prerendering) return;
    const found = this.#sources.flatMap((source) => source.tools.map((/** @type {any} */ tool) => this.#described(source, tool)));
    const { tools } = pageChecks.tools(found);
    // A server without tools is reported, since tools may follow; a page without anything is not.
    if (!this.#port && tools.length === 0 && !this.#mcpb.found) return;
    const list = { tools, declared: found.length, capabilities: { browser: this.#mcpb.browser } };
    const written = JSON.stringify(list);
    if (this.#port && written === this.#reported) return;
    const type = this.#port || tools.length === 0 ? "tools-updated" : "register-tools";
    const port = this.#port ?? this.#connect();
    if (!port) return;
    this.#reported = written;
    this.#reportedAt = Date.now();
    port.postMessage({ type, ...list });
  }

  /**
   * A tool with what the page's server says about the tool of that name: a model context knows less about its tools.
   * @param {any} source
   * @param {any} tool
   */
  #described(source, tool) {
    const other = source === this.#mcpb ? undefined : this.#served(tool?.name);
    if (!other) return tool;
    const { title, outputSchema, annotations } = other;
    const more = pageChecks.isObject(annotations) ? annotations : {};
    return { title, outputSchema, ...defined(tool), annotations: { ...more, ...defined(tool.annotations) } };
  }

  /**
   * The tool of the page's server with that name.
   * @param {unknown} name
   * @returns {any}
   */
  #served(name) {
    return this.#mcpb.tools.find((/** @type {any} */ tool) => tool?.name === name);
  }

  #connect() {
    try {
      /** @type {FramePort} */
      const port = chrome.runtime.connect({ name: "page-tools" });
      port.onMessage.addListener((message) => this.#receive(message));
      port.onDisconnect.addListener(() => {
        // The worker was stopped: connecting starts it again.
        if (this.#port !== port) return;
        this.#disconnected();
        if (!this.alive) return this.stop();
        if (this.#hidden) return;
        if (Date.now() - this.#connectedAt > STABLE_MS) this.#failures = 0;
        const wait = 100 * 2 ** Math.min(this.#failures++, 8) * (1 + Math.random());
        // Timers of a hidden page are slow, so the first attempts do not use them.
        if (this.#failures <= 3) this.#later(wait, () => this.#report());
        else this.#retry = setTimeout(() => this.#report(), wait);
      });
      this.#port = port;
      this.#connectedAt = Date.now();
      return port;
    } catch {
      // The extension was removed or reloaded: another proxy takes over.
      this.stop();
      return null;
    }
  }

  #disconnected() {
    this.#port = null;
    this.#reported = "";
    for (const { cancel } of this.#running.values()) cancel();
    for (const answer of this.#confirmations.values()) answer(false);
    for (const wakeId of this.#wakes.keys()) this.#tasks.port2.postMessage(wakeId);
    this.#running.clear();
    this.#confirmations.clear();
  }

  /** @param {import("../link/messages.js").ToFrame} message */
  #receive(message) {
    if (message.type === "execute-tool") void this.#execute(message);
    else if (message.type === "cancel-tool") this.#running.get(message.requestId)?.cancel();
    else if (message.type === "confirm-result") this.#confirmations.get(message.confirmId)?.(message.confirmed);
    else if (message.type === "wake") this.#wake(message.wakeId);
    else if (message.type === "refused") this.stop();
  }

  /** @param {import("../link/messages.js").FrameCall} call */
  async #execute({ requestId, toolName, args, extensions, _meta }) {
    const port = this.#port;
    let answer;
    try {
      const has = (/** @type {any} */ source) => source.tools.some((/** @type {any} */ tool) => tool?.name === toolName);
      const first = this.#sources.find(has);
      // The structured content that the server promises comes from the server.
      const source = first && this.#served(toolName)?.outputSchema !== undefined ? this.#mcpb : first;
      if (!source) throw new Error(`The page no longer has a tool named ${toolName}.`);
      const running = source.call(toolName, {
        requestId,
        args,
        meta: _meta,
        extensions,
        confirm: (/** @type {string} */ message, /** @type {unknown} */ details) =>
          this.#confirm({ requestId, toolName, message, details }),
        progress: this.#progress(requestId),
      });
      this.#running.set(requestId, running);
      answer = { success: true, payload: pageChecks.result(await running.answer) };
    } catch (error) {
      answer = { success: false, payload: pageChecks.textOf(error) };
    } finally {
      this.#running.delete(requestId);
    }
    if (port && this.#port === port) port.postMessage({ type: "tool-result", requestId, ...answer });
  }

  /**
   * @param {{ requestId: string, toolName: string, message: string, details: unknown }} question
   * @returns {Promise<boolean>}
   */
  #confirm({ details, message, ...question }) {
    const confirmId = pageChecks.randomId();
    return new Promise((resolve) => {
      if (!this.#port) return resolve(false);
      this.#confirmations.set(confirmId, (confirmed) => {
        this.#confirmations.delete(confirmId);
        resolve(confirmed);
      });
      const shown = { message: message.slice(0, 2000), details: pageChecks.plain(details, 100_000) };
      this.#port.postMessage({ type: "confirm-action", confirmId, ...question, ...shown });
    });
  }

  /** @param {string} requestId */
  #progress(requestId) {
    let last = 0;
    return (/** @type {any} */ { progress, total, message }) => {
      if (typeof progress !== "number" || Date.now() - last < 50) return;
      last = Date.now();
      const more = {
        ...(typeof total === "number" ? { total } : {}),
        ...(typeof message === "string" ? { message: message.slice(0, 1000) } : {}),
      };
      this.#port?.postMessage({ type: "tool-progress", requestId, progress, ...more });
    };
  }
};

/**
 * The fields of an object that have a value.
 * @param {unknown} given
 */
function defined(given) {
  const fields = Object.entries(pageChecks.isObject(given) ? given : {});
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined && value !== null && value !== ""));
}

/** The proxy of this frame, also for a second run of this file. @type {InstanceType<typeof PageProxy> | undefined} */
var pageProxy;
if (!pageProxy?.alive) {
  pageProxy?.stop();
  pageProxy = new PageProxy();
}
