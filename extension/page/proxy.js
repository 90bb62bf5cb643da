/**
 * The proxy of one frame: a thin relay between what the page offers and the worker.
 *
 * Owns which of the ways a tool is offered counts, when the list is told, and the port. It decides nothing about who may
 * call. A frame that offers nothing never opens a port. It knows no secret, no tab and no other frame.
 */

var LASTED_MS = 5000;

var PageProxy = class {
  /** In the order they count: a name offered twice is the first one's. @type {any[]} */
  #sources = [];
  /** @type {InstanceType<typeof McpbClient>} */
  #mcpb;
  /** @type {chrome.runtime.Port | null} */
  #port = null;
  /** Whether this port has heard of us at all, and what it heard last. */
  #told = "";
  #toldAt = 0;
  #telling = false;
  /** What the worker was asked to remind us of. @type {Map<number, () => void>} */
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
  #asking = new Map();
  #poll;

  constructor() {
    const changed = () => this.#soon();
    const later = (/** @type {number} */ ms, /** @type {() => void} */ run) => this.#later(ms, run);
    this.#tasks.port1.onmessage = ({ data }) => this.#woken(data);
    const native = NativeContext.find();
    const own = new PageContext(changed);
    this.#mcpb = new McpbClient(changed, later);
    this.#sources = [native ? new NativeContext(native, changed) : own, this.#mcpb];
    // A browser that knows forms as tools lists them itself; one that knows no WebMCP leaves them to us.
    if (!native || !("agentInvoked" in SubmitEvent.prototype)) this.#sources.push(new PageForms(own, changed, later));
    if (native) this.#sources.push(own);
    // Whatever a page changes without saying so is found here.
    this.#poll = setInterval(() => this.#refresh(), 60_000);
    window.addEventListener("pagehide", this.#pagehide);
    window.addEventListener("pageshow", this.#pageshow);
    document.addEventListener("prerenderingchange", changed);
  }

  /** Whether this is a proxy of an extension that still runs and takes part. */
  get alive() {
    return !this.#stopped && chrome.runtime?.id !== undefined;
  }

  /** End for good. */
  stop() {
    this.#stopped = true;
    for (const source of this.#sources) source.stop();
    clearInterval(this.#poll);
    this.#tasks.port1.close();
    clearTimeout(this.#retry);
    window.removeEventListener("pagehide", this.#pagehide);
    window.removeEventListener("pageshow", this.#pageshow);
    if (chrome.runtime?.id !== undefined) this.#port?.disconnect();
    this.#port = null;
  }

  #refresh() {
    if (!this.alive) return this.stop();
    for (const source of this.#sources) source.refresh();
  }

  #pagehide = () => {
    this.#hidden = true;
    this.#port?.disconnect();
    this.#lost();
  };

  /** @param {PageTransitionEvent} event */
  #pageshow = (event) => {
    if (!event.persisted) return;
    this.#hidden = false;
    this.#refresh();
    this.#soon();
  };

  /** Tell the list soon: at once after a while of quiet, and then no more often than every 500 ms. */
  #soon() {
    if (this.#telling || this.#stopped || this.#hidden) return;
    this.#telling = true;
    this.#later(Math.max(0, this.#toldAt + 500 - Date.now()), () => {
      this.#telling = false;
      this.#tell();
    });
  }

  /**
   * Run something after a while. Timers of a hidden page come late by up to a minute: there the worker reminds us, and
   * before it knows us nothing waits.
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
  #woken(wakeId) {
    const run = this.#wakes.get(wakeId);
    this.#wakes.delete(wakeId);
    run?.();
  }

  #tell() {
    if (this.#stopped || this.#hidden || /** @type {any} */ (document).prerendering) return;
    const { tools } = pageChecks.tools(this.#sources.flatMap((source) => source.tools));
    // A server without tools is worth telling: some may follow. A page without anything is not.
    if (!this.#port && tools.length === 0 && !this.#mcpb.found) return;
    const list = { tools, capabilities: { browser: this.#mcpb.browser } };
    const written = JSON.stringify(list);
    if (this.#port && written === this.#told) return;
    const type = this.#port || tools.length === 0 ? "tools-updated" : "register-tools";
    const port = this.#port ?? this.#connect();
    if (!port) return;
    this.#told = written;
    this.#toldAt = Date.now();
    port.postMessage({ type, ...list });
  }

  #connect() {
    try {
      const port = chrome.runtime.connect({ name: "page-tools" });
      port.onMessage.addListener((message) => this.#received(message));
      port.onDisconnect.addListener(() => {
        // The worker was stopped: it is woken by connecting again.
        if (this.#port !== port) return;
        this.#lost();
        if (!this.alive) return this.stop();
        if (this.#hidden) return;
        if (Date.now() - this.#connectedAt > LASTED_MS) this.#failures = 0;
        const wait = 100 * 2 ** Math.min(this.#failures++, 8) * (1 + Math.random());
        // A hidden page's timers are slow: it tries at once, and waits only when that was of no use.
        if (this.#failures <= 3) this.#later(wait, () => this.#tell());
        else this.#retry = setTimeout(() => this.#tell(), wait);
      });
      this.#port = port;
      this.#connectedAt = Date.now();
      return port;
    } catch {
      // The extension was removed or loaded anew: another proxy takes over.
      this.stop();
      return null;
    }
  }

  #lost() {
    this.#port = null;
    this.#told = "";
    for (const { cancel } of this.#running.values()) cancel();
    for (const answer of this.#asking.values()) answer(false);
    for (const wakeId of this.#wakes.keys()) this.#tasks.port2.postMessage(wakeId);
    this.#running.clear();
    this.#asking.clear();
  }

  /** @param {any} message of the worker */
  #received(message) {
    const { type, requestId } = message;
    if (type === "execute-tool") void this.#execute(requestId, message);
    else if (type === "cancel-tool") this.#running.get(requestId)?.cancel();
    else if (type === "confirm-result") this.#asking.get(message.confirmId)?.(message.confirmed === true);
    else if (type === "wake") this.#woken(message.wakeId);
    else if (type === "refused") this.stop();
  }

  /**
   * @param {string} requestId
   * @param {{ toolName: string, args: unknown, extensions?: unknown, _meta?: Record<string, unknown> }} call
   */
  async #execute(requestId, { toolName, args, extensions, _meta }) {
    const port = this.#port;
    let answer;
    try {
      const has = (/** @type {any} */ source) => source.tools.some((/** @type {any} */ tool) => tool?.name === toolName);
      const source = this.#sources.find(has);
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
    const confirmId = crypto.randomUUID();
    return new Promise((resolve) => {
      if (!this.#port) return resolve(false);
      this.#asking.set(confirmId, (confirmed) => {
        this.#asking.delete(confirmId);
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

/** The proxy of this frame, also for a second run of this file. @type {InstanceType<typeof PageProxy> | undefined} */
var pageProxy;
if (!pageProxy?.alive) {
  pageProxy?.stop();
  pageProxy = new PageProxy();
}
