/**
 * Functions that run in a page's own world, where adapters are. The browser copies each of them into the page, so none
 * uses anything else in this file.
 *
 * The page can manipulate everything they use, so their results are untrusted; a page can only lie about its own tab.
 * Adapters register at `globalThis.__openTabs.adapters[name]`. An adapter made with a class runs its hooks itself, as the
 * bundles of the OpenTabs SDK do; for a plain object they are run here.
 */

/**
 * Prepare for an adapter: stop the previous one of that name, and ensure that a new one can register.
 * @param {string} name
 * @param {string} nonce for the adapter's messages
 * @returns {string} the problem, or ""
 */
export function prepare(name, nonce) {
  const scope = /** @type {any} */ (globalThis);
  const before = scope.__openTabs;
  const known = typeof before === "object" && before !== null;
  const old = known ? before.adapters?.[name] : undefined;
  if (old) {
    const plain = Object.getPrototypeOf(old) === Object.prototype;
    for (const hook of plain ? ["onDeactivate", "teardown"] : ["teardown"]) {
      try {
        old[hook]?.();
      } catch (error) {
        console.warn(`Tabhub: ${hook} of the plugin ${name} failed:`, error);
      }
    }
  }
  const place = known ? Object.getOwnPropertyDescriptor(before, "adapters") : undefined;
  const open = place ? place.writable && Object.isExtensible(place.value) && !old : known && Object.isExtensible(before);
  // A frozen object is replaced by a copy.
  if (!open) {
    const { adapters, ...rest } = known ? Object.getOwnPropertyDescriptors(before) : { adapters: undefined };
    const box = Object.defineProperties(/** @type {any} */ ({}), rest);
    const others = { ...Object.getOwnPropertyDescriptors(Object(adapters?.value)) };
    delete others[name];
    box.adapters = Object.defineProperties({}, others);
    try {
      scope.__openTabs = box;
    } catch {
      // Reported below.
    }
    if (scope.__openTabs !== box) return "The page has frozen __openTabs, where plugins register.";
  } else if (!place) before.adapters = {};
  scope.__openTabs._logNonce = nonce;
  scope.__openTabs._readinessNonce = nonce;
  return "";
}

/**
 * Check that the adapter is present with its hash, and freeze it.
 * @param {string} name
 * @param {string} hash
 * @returns {string} the problem, or ""
 */
export function seal(name, hash) {
  const box = /** @type {any} */ (globalThis).__openTabs;
  const adapter = box?.adapters?.[name];
  if (typeof adapter !== "object" || adapter === null) return "Its script did not register an adapter.";
  if (adapter.__adapterHash !== hash) return `The adapter has another hash: ${String(adapter.__adapterHash).slice(0, 64)}`;
  if (!Array.isArray(adapter.tools)) return "The adapter has no list of tools.";
  for (const tool of adapter.tools) Object.freeze(tool);
  Object.freeze(adapter.tools);
  Object.freeze(adapter);
  /** @type {any} */
  const fixed = { __proto__: null, value: adapter, writable: false, configurable: false, enumerable: true };
  Object.defineProperty(box.adapters, name, fixed);
  return "";
}

/**
 * Remove an adapter, and with the last one everything that was added for adapters.
 * @param {string} name
 */
export function remove(name) {
  const scope = /** @type {any} */ (globalThis);
  const box = scope.__openTabs;
  const old = box?.adapters?.[name];
  if (!old) return;
  const plain = Object.getPrototypeOf(old) === Object.prototype;
  for (const hook of plain ? ["onDeactivate", "teardown"] : ["teardown"]) {
    try {
      old[hook]?.();
    } catch (error) {
      console.warn(`Tabhub: ${hook} of the plugin ${name} failed:`, error);
    }
  }
  const { [name]: _, ...others } = Object.getOwnPropertyDescriptors(scope.__openTabs.adapters);
  const rest = Object.getOwnPropertyDescriptors(scope.__openTabs);
  delete rest.adapters;
  if (rest.pluginConfigs) {
    const { [name]: _, ...configs } = Object(rest.pluginConfigs.value);
    rest.pluginConfigs = { ...rest.pluginConfigs, value: configs };
  }
  const own = ["pluginConfig", "pluginConfigs", "preScript", "log", "_logNonce", "_readinessNonce", "_setLogTransport"];
  own.push("_notifyReadinessChanged", "_navigationInterceptor", "_pluginName");
  const last = Object.keys(others).length === 0;
  if (last) for (const key of own) delete rest[key];
  if (last && Reflect.ownKeys(rest).length === 0 && Reflect.deleteProperty(scope, "__openTabs")) return;
  const next = Object.defineProperties(/** @type {any} */ ({}), rest);
  if (!last) next.adapters = Object.defineProperties({}, others);
  scope.__openTabs = next;
}

/**
 * Whether an adapter is ready; one without `isReady` always is.
 * @param {string} name
 * @returns {Promise<boolean>}
 */
export async function probe(name) {
  const adapter = /** @type {any} */ (globalThis).__openTabs?.adapters?.[name];
  if (typeof adapter !== "object" || adapter === null) return false;
  if (typeof adapter.isReady !== "function") return true;
  const box = /** @type {any} */ (globalThis).__openTabs;
  Reflect.set(box, "pluginConfig", box.pluginConfigs?.[name]);
  try {
    return (await adapter.isReady()) === true;
  } catch {
    return false;
  }
}

/**
 * Notify an adapter that the URL changed within the page.
 * @param {string} name
 */
export function navigated(name) {
  const adapter = /** @type {any} */ (globalThis).__openTabs?.adapters?.[name];
  if (!adapter || Object.getPrototypeOf(adapter) !== Object.prototype) return;
  try {
    adapter.onNavigate?.(location.href);
  } catch (error) {
    console.warn(`Tabhub: onNavigate of the plugin ${name} failed:`, error);
  }
}

/**
 * Run a tool. The result is encoded as JSON here, since the browser would silently drop what it cannot transfer.
 * @param {string} name
 * @param {string} toolName
 * @param {Record<string, unknown>} input
 * @param {string} dispatchId
 * @param {string} channel the event for progress to the page relay, and for cancellation from it
 * @param {number} most maximum length of the result
 * @returns {Promise<Record<string, unknown>>}
 */
export async function run(name, toolName, input, dispatchId, channel, most) {
  const adapter = /** @type {any} */ (globalThis).__openTabs?.adapters?.[name];
  if (typeof adapter !== "object" || adapter === null) return { kind: "absent" };
  const tool = Array.isArray(adapter.tools) ? adapter.tools.find((/** @type {any} */ one) => one?.name === toolName) : null;
  if (typeof tool?.handle !== "function") return { kind: "no-tool" };
  const box = /** @type {any} */ (globalThis).__openTabs;
  // Plugins read their settings there. Those of another plugin on this page are not theirs.
  Reflect.set(box, "pluginConfig", box.pluginConfigs?.[name]);
  const plain = Object.getPrototypeOf(adapter) === Object.prototype;
  const ending = new AbortController();
  const stop = () => ending.abort();
  document.addEventListener(`${channel}:${dispatchId}`, stop);
  const context = {
    signal: ending.signal,
    /** @param {{ progress?: number, total?: number, message?: string }} [report] */
    reportProgress(report) {
      const { progress = 0, total, message } = report ?? {};
      const detail = JSON.stringify({ dispatchId, progress, total, message });
      document.dispatchEvent(new CustomEvent(channel, { detail }));
    },
    /**
     * Like fetch, for requests with a secret setting of the plugin: `{{setting:KEY}}` in the URL, a header or the body. The
     * hub makes the request, so that the value does not enter the page; in the response it is masked.
     * @param {string | URL} url
     * @param {{ method?: string, headers?: HeadersInit, body?: string, signal?: AbortSignal }} [options]
     * @returns {Promise<Response>}
     */
    async request(url, { method = "GET", headers = {}, body, signal = ending.signal } = {}) {
      if (body !== undefined && body !== null && typeof body !== "string") throw new TypeError("The body of request() must be a text.");
      const list = headers instanceof Headers || Array.isArray(headers) ? [...headers] : Object.entries(headers);
      const id = crypto.randomUUID();
      const detail = JSON.stringify({
        dispatchId,
        id,
        url: String(url),
        method,
        headers: Object.fromEntries(list),
        ...(body ? { body } : {}),
      });
      const answer = await new Promise((resolve, reject) => {
        const answered = (/** @type {Event} */ event) => resolve(JSON.parse(/** @type {CustomEvent} */ (event).detail));
        document.addEventListener(`${channel}:${id}`, answered, { once: true });
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        document.dispatchEvent(new CustomEvent(`${channel}:request`, { detail }));
      });
      if (typeof answer.error === "string") throw Object.assign(new Error(answer.error), { code: "REQUEST_FAILED" });
      const empty = [101, 204, 205, 304].includes(answer.status) || method.toUpperCase() === "HEAD";
      const response = new Response(empty ? null : answer.body, { status: answer.status, headers: answer.headers });
      return Object.defineProperty(response, "url", { value: answer.url });
    },
  };
  /** @type {(hook: string, ...args: unknown[]) => void} */
  const runHook = (hook, ...args) => {
    try {
      if (plain) adapter[hook]?.(...args);
    } catch (error) {
      console.warn(`Tabhub: ${hook} of the plugin ${name} failed:`, error);
    }
  };
  /** @type {(value: any) => any} */
  const copied = (value) => {
    // Libraries add a `toJSON` to arrays that gives text; only where there is one, the value is copied without it.
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return Object.setPrototypeOf(value.map(copied), null);
    if (typeof value.toJSON === "function" && value.toJSON !== polluted) return value;
    const fields = Object.keys(value).map((key) => [key, copied(value[key])]);
    return Object.setPrototypeOf(Object.fromEntries(fields), null);
  };
  const polluted = /** @type {any} */ (Object.prototype).toJSON;
  const begun = performance.now();
  let success = false;
  runHook("onToolInvocationStart", toolName);
  try {
    const value = (await tool.handle(input, context)) ?? null;
    const text = JSON.stringify("toJSON" in Array.prototype || polluted ? copied(value) : value) ?? "null";
    success = true;
    return text.length > most ? { kind: "huge", size: text.length } : { kind: "output", text };
  } catch (error) {
    const { message, code, category, retryable, retryAfterMs } = Object(error);
    const text = typeof message === "string" && message !== "" ? message : String(error);
    const failure = /** @type {Record<string, unknown>} */ ({ kind: "error", message: text.slice(0, 4000) });
    if (typeof code === "string") failure["code"] = code.slice(0, 200);
    if (typeof category === "string") failure["category"] = category.slice(0, 50);
    if (typeof retryable === "boolean") failure["retryable"] = retryable;
    if (typeof retryAfterMs === "number") failure["retryAfterMs"] = retryAfterMs;
    return failure;
  } finally {
    document.removeEventListener(`${channel}:${dispatchId}`, stop);
    runHook("onToolInvocationEnd", toolName, success, performance.now() - begun);
  }
}
