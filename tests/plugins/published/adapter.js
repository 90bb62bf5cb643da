"use strict";
(() => {
  // The wrapper that a plugin's build adds to its class: the adapter runs its own hooks and has its own log.
  const name = "counter";
  const box = (globalThis.__openTabs ??= {});
  let transport = (entry) => console.log(entry.message);
  box._setLogTransport = (next) => {
    const before = transport;
    transport = next;
    return () => void (transport = before);
  };
  const say = (level, message, ...data) => transport({ level, message, data, ts: new Date().toISOString() });

  class ToolError extends Error {
    constructor(message, code, { category, retryable = false, retryAfterMs } = {}) {
      super(message);
      Object.assign(this, { name: "ToolError", code, category, retryable, retryAfterMs });
    }
  }

  class Counter {
    name = name;
    displayName = "Counter";
    description = "Counts what a shop sells";
    urlPatterns = ["*://127.0.0.1/*"];
    #hooks = (globalThis.hooks ??= []);
    tools = [
      {
        name: "read_badge",
        displayName: "Read Badge",
        description: "Reads the badge the page showed at its door.",
        icon: "key",
        handle: async () => {
          const { _pluginName, preScript } = globalThis.__openTabs;
          const kept = preScript?.[_pluginName] ?? {};
          return { badge: kept.badge ?? null, first: kept.first === true };
        },
      },
      {
        name: "count_up",
        displayName: "Count Up",
        description: "Counts, step by step.",
        icon: "plus",
        handle: async ({ to }, context) => {
          for (let at = 1; at <= to; at += 1) context?.reportProgress({ progress: at, total: to, message: `at ${at}` });
          say("info", `counted to ${to}`, { to });
          return { counted: to };
        },
      },
      {
        name: "sell_out",
        displayName: "Sell Out",
        description: "Fails, as a shop does that has nothing left.",
        icon: "x",
        handle: async () => {
          throw new ToolError("Nothing is left.", "SOLD_OUT", { category: "rate_limit", retryable: true, retryAfterMs: 1500 });
        },
      },
    ];
    async isReady() {
      return document.querySelector("[data-open]") !== null;
    }
    onActivate() {
      this.#hooks.push("activated");
    }
    onDeactivate() {
      this.#hooks.push("deactivated");
    }
    onToolInvocationStart(tool) {
      this.#hooks.push(`${tool} began`);
    }
    onToolInvocationEnd(tool, success) {
      this.#hooks.push(`${tool} ended ${success}`);
    }
    teardown() {
      this.#hooks.push("torn down");
    }
  }

  const plugin = new Counter();
  let batch = [];
  const flush = () => {
    const entries = batch;
    batch = [];
    if (entries.length === 0) return;
    window.postMessage({ type: "opentabs:plugin-logs", plugin: name, entries, nonce: globalThis.__openTabs?._logNonce ?? "" }, "*");
  };
  const restore = box._setLogTransport((entry) => void batch.push(entry));
  box._notifyReadinessChanged = () => {
    const nonce = globalThis.__openTabs?._readinessNonce;
    if (nonce) window.postMessage({ type: "opentabs:readiness-changed", plugin: name, nonce }, "*");
  };
  globalThis.opened = () => globalThis.__openTabs._notifyReadinessChanged();
  for (const tool of plugin.tools) {
    const own = tool.handle;
    tool.handle = async function (...given) {
      globalThis.__openTabs._pluginName = name;
      plugin.onToolInvocationStart(tool.name);
      let success = false;
      try {
        const output = await own.apply(this, given);
        success = true;
        return output;
      } finally {
        plugin.onToolInvocationEnd(tool.name, success, 0);
        flush();
      }
    };
  }
  const ending = plugin.teardown.bind(plugin);
  const leaving = plugin.onDeactivate.bind(plugin);
  plugin.teardown = () => {
    leaving();
    flush();
    restore();
    ending();
  };
  box.adapters ??= {};
  box.adapters[name] = plugin;
  plugin.onActivate();
})();(function(){var o=(globalThis).__openTabs;if(o&&o.adapters&&o.adapters["counter"]){var a=o.adapters["counter"];a.__adapterHash="3f1c0b7a9d2e4586a1b3c5d7e9f00112233445566778899aabbccddeeff01234";a.tools.forEach(Object.freeze);Object.freeze(a.tools);Object.freeze(a);Object.defineProperty(o.adapters,"counter",{value:a,writable:false,configurable:false,enumerable:true});Object.defineProperty(o,"adapters",{value:o.adapters,writable:false,configurable:false});}})();
//# sourceMappingURL=adapter.iife.js.map
