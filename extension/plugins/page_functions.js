/**
 * What is run in a page's own world, where adapters live. The browser copies these functions there one by one: each
 * stands alone, and uses nothing of this file.
 *
 * The page can change everything they touch, so what they give back is data and no more. A page that tampers deceives
 * about its own tab only. Adapters register at `globalThis.__openTabs.adapters[name]`; one made with a class runs its
 * hooks itself, as the bundles of the OpenTabs SDK do, and for a plain object they are run here.
 */

/**
 * Make room for an adapter: end the one of that name, and see that a new one can register.
 * @param {string} name
 * @param {string} nonce what the adapter's messages carry
 * @returns {string} what is in the way, or nothing
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
  // What cannot be written any more is left as it is, and a copy takes its place.
  if (!open) {
    const { adapters, ...rest } = known ? Object.getOwnPropertyDescriptors(before) : { adapters: undefined };
    const box = Object.defineProperties(/** @type {any} */ ({}), rest);
    const others = { ...Object.getOwnPropertyDescriptors(Object(adapters?.value)) };
    delete others[name];
    box.adapters = Object.defineProperties({}, others);
    try {
      scope.__openTabs = box;
    } catch {
      // Told below: it is not ours then.
    }
    if (scope.__openTabs !== box) return "The page has locked __openTabs, where plugins register.";
  } else if (!place) before.adapters = {};
  scope.__openTabs._logNonce = nonce;
  scope.__openTabs._readinessNonce = nonce;
  return "";
}

/**
 * See that the adapter is there with its stamp, and fix it in its place.
 * @param {string} name
 * @param {string} hash
 * @returns {string} what is wrong, or nothing
 */
export function seal(name, hash) {
  const box = /** @type {any} */ (globalThis).__openTabs;
  const adapter = box?.adapters?.[name];
  if (typeof adapter !== "object" || adapter === null) return "Its script did not register an adapter.";
  if (adapter.__adapterHash !== hash) return `The adapter has another stamp: ${String(adapter.__adapterHash).slice(0, 64)}`;
  if (!Array.isArray(adapter.tools)) return "The adapter has no list of tools.";
  for (const tool of adapter.tools) Object.freeze(tool);
  Object.freeze(adapter.tools);
  Object.freeze(adapter);
  Object.defineProperty(box.adapters, name, { value: adapter, writable: false, configurable: false, enumerable: true });
  return "";
}

/**
 * Remove an adapter, and with the last one all that was made for adapters.
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
  const made = ["pluginConfig", "preScript", "log", "_logNonce", "_readinessNonce", "_setLogTransport"];
  made.push("_notifyReadinessChanged", "_navigationInterceptor", "_pluginName");
  const last = Object.keys(others).length === 0;
  if (last) for (const key of made) delete rest[key];
  if (last && Reflect.ownKeys(rest).length === 0 && Reflect.deleteProperty(scope, "__openTabs")) return;
  const next = Object.defineProperties(/** @type {any} */ ({}), rest);
  if (!last) next.adapters = Object.defineProperties({}, others);
  scope.__openTabs = next;
}

/**
 * Whether an adapter says it can be used now; an adapter that never says is.
 * @param {string} name
 * @returns {Promise<boolean>}
 */
export async function probe(name) {
  const adapter = /** @type {any} */ (globalThis).__openTabs?.adapters?.[name];
  if (typeof adapter !== "object" || adapter === null) return false;
  if (typeof adapter.isReady !== "function") return true;
  try {
    return (await adapter.isReady()) === true;
  } catch {
    return false;
  }
}

/**
 * Tell an adapter that the page's address changed within the page.
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
 * Run a tool. What it gives is written as JSON here: the browser would drop what it cannot carry without a word.
 * @param {string} name
 * @param {string} toolName
 * @param {Record<string, unknown>} input
 * @param {string} dispatchId
 * @param {string} channel the event by which the page's relay is told of progress, and by which it tells of the end
 * @param {number} most characters of the result
 * @returns {Promise<Record<string, unknown>>}
 */
export async function run(name, toolName, input, dispatchId, channel, most) {
  const adapter = /** @type {any} */ (globalThis).__openTabs?.adapters?.[name];
  if (typeof adapter !== "object" || adapter === null) return { kind: "absent" };
  const tool = Array.isArray(adapter.tools) ? adapter.tools.find((/** @type {any} */ one) => one?.name === toolName) : null;
  if (typeof tool?.handle !== "function") return { kind: "no-tool" };
  const plain = Object.getPrototypeOf(adapter) === Object.prototype;
  const ending = new AbortController();
  const stop = () => ending.abort();
  document.addEventListener(`${channel}:${dispatchId}`, stop);
  const context = {
    signal: ending.signal,
    /** @param {{ progress?: number, total?: number, message?: string }} [how] */
    reportProgress(how) {
      const { progress = 0, total, message } = how ?? {};
      const detail = JSON.stringify({ dispatchId, progress, total, message });
      document.dispatchEvent(new CustomEvent(channel, { detail }));
    },
  };
  /** @type {(hook: string, ...args: unknown[]) => void} */
  const tell = (hook, ...args) => {
    try {
      if (plain) adapter[hook]?.(...args);
    } catch (error) {
      console.warn(`Tabhub: ${hook} of the plugin ${name} failed:`, error);
    }
  };
  const begun = performance.now();
  let success = false;
  tell("onToolInvocationStart", toolName);
  try {
    const text = JSON.stringify((await tool.handle(input, context)) ?? null) ?? "null";
    success = true;
    return text.length > most ? { kind: "huge", size: text.length } : { kind: "output", text };
  } catch (error) {
    const { message, code, category, retryable, retryAfterMs } = Object(error);
    const words = typeof message === "string" && message !== "" ? message : String(error);
    const kept = /** @type {Record<string, unknown>} */ ({ kind: "error", message: words.slice(0, 4000) });
    if (typeof code === "string") kept["code"] = code.slice(0, 200);
    if (typeof category === "string") kept["category"] = category.slice(0, 50);
    if (typeof retryable === "boolean") kept["retryable"] = retryable;
    if (typeof retryAfterMs === "number") kept["retryAfterMs"] = retryAfterMs;
    return kept;
  } finally {
    document.removeEventListener(`${channel}:${dispatchId}`, stop);
    tell("onToolInvocationEnd", toolName, success, performance.now() - begun);
  }
}
