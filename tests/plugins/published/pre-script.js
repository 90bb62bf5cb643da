"use strict";
(() => {
  // Runs before the page's own scripts, so it sees what they send.
  const box = (globalThis.__openTabs ??= {});
  const kept = ((box.preScript ??= {})["counter"] = {});
  kept.first = !("pageBegan" in globalThis);
  const before = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const badge = new Headers(init?.headers).get("X-Badge");
    if (badge !== null) kept.badge = badge;
    return before(input, init);
  };
})();
//# sourceMappingURL=pre-script.iife.js.map
