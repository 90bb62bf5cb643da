// The frame around the page file of a Python plugin. It provides `plugin`, `ToolError`, `log` and `config`, and registers
// what `plugin({ isReady, tools: { name(input, { reportProgress }) { … } } })` describes.
(() => {
const about = __ABOUT__;
class ToolError extends Error {
  constructor(message, code = "ERROR", options = {}) {
    super(message);
    this.name = "ToolError";
    this.code = code;
    this.category = options.category;
    this.retryable = options.retryable === true;
    this.retryAfterMs = options.retryAfterMs;
  }
  static auth(message) { return new ToolError(message, "AUTH_ERROR", { category: "auth" }); }
  static notFound(message) { return new ToolError(message, "NOT_FOUND", { category: "not_found" }); }
  static validation(message) { return new ToolError(message, "VALIDATION_ERROR", { category: "validation" }); }
  static internal(message) { return new ToolError(message, "INTERNAL_ERROR", { category: "internal" }); }
  static timeout(message) { return new ToolError(message, "TIMEOUT", { category: "timeout", retryable: true }); }
  static rateLimited(message, retryAfterMs) {
    return new ToolError(message, "RATE_LIMITED", { category: "rate_limit", retryable: true, retryAfterMs });
  }
}
const config = (key) => globalThis.__openTabs?.pluginConfigs?.[about.name]?.[key];
const say = (level) => (message, ...data) => {
  const nonce = globalThis.__openTabs?._logNonce ?? "";
  const entry = { level, message: String(message), data, ts: new Date().toISOString() };
  window.postMessage({ type: "opentabs:plugin-logs", plugin: about.name, entries: [entry], nonce }, "*");
};
const log = { debug: say("debug"), info: say("info"), warn: say("warning"), error: say("error") };
const plugin = (page) => {
  const own = page.tools ?? {};
  const missing = about.tools.filter((name) => typeof own[name] !== "function");
  if (missing.length) throw new Error(`${about.name}: the page file has no function for ${missing.join(", ")}`);
  const adapter = { ...about, isReady: async () => true };
  for (const hook of ["isReady", "teardown", "onActivate", "onDeactivate", "onNavigate",
    "onToolInvocationStart", "onToolInvocationEnd"]) {
    if (typeof page[hook] === "function") adapter[hook] = page[hook].bind(page);
  }
  adapter.tools = about.tools.map((name) => ({ name, handle: async (input, context) => own[name](input, context) }));
  const known = globalThis.__openTabs ?? {};
  const others = Object.getOwnPropertyDescriptors(known.adapters ?? {});
  delete others[about.name];
  const adapters = Object.defineProperties({}, others);
  adapters[about.name] = adapter;
  globalThis.__openTabs = Object.assign({}, known, { adapters });
};
__PAGE__
})();
