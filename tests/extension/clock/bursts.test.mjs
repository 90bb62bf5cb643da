/** How often changes are reported: of a tab at most once in 100 ms, of a page's tools once in 500 ms; the last always. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";
import { event, pass, settle } from "./virtual.mjs";

test("a tab that changes all the time is reported at most ten times a second", async () => {
  const names = ["onCreated", "onUpdated", "onActivated", "onRemoved", "onReplaced", "onMoved", "onAttached", "onDetached"];
  globalThis.chrome = {
    tabs: { ...Object.fromEntries(names.map((name) => [name, event()])), query: async () => [], TAB_ID_NONE: -1 },
    windows: { onFocusChanged: event(), onRemoved: event(), getAll: async () => [], WINDOW_ID_NONE: -1 },
  };
  const { reportTabsTo, watchTabs } = await import("../../../extension/tabs/state.js");
  const reports = [];
  watchTabs();
  await reportTabsTo({ change: async ({ tab }) => reports.push([Date.now(), tab.title]), syncAll() {} });
  for (let change = 1; change <= 300; change += 1) {
    chrome.tabs.onUpdated.fire(1, {}, { id: 1, title: `t${change}` });
    await pass(10);
  }
  await pass(200);
  const pauses = reports.slice(1).map(([at], number) => at - reports[number][0]);
  assert.ok(Math.min(...pauses) >= 100, `pauses between reports: ${pauses}`);
  assert.ok(reports.length >= 25, `${reports.length} reports in 3 s`);
  assert.equal(reports.at(-1)[1], "t300");
});

test("a page that changes its tools all the time is reported at most twice a second", async () => {
  const reports = [];
  const postMessage = (message) => reports.push([Date.now(), message]);
  const port = { onMessage: event(), onDisconnect: event(), postMessage, disconnect() {} };
  let offer;
  class None {
    tools = [];
    stop() {}
    refresh() {}
  }
  class Own extends None {
    constructor(changed) {
      super();
      offer = (name) => {
        this.tools = [{ name }];
        changed();
      };
    }
  }
  const events = { addEventListener() {}, removeEventListener() {} };
  const page = vm.createContext({
    ...{ Date, setTimeout, clearTimeout, setInterval, clearInterval, MessageChannel },
    NativeContext: { find: () => null },
    PageContext: Own,
    McpbClient: None,
    PageForms: None,
    SubmitEvent: class {},
    pageChecks: { tools: (tools) => ({ tools }) },
    chrome: { runtime: { id: "x", connect: () => port } },
    document: { hidden: false, ...events },
    window: events,
  });
  vm.runInContext(readFileSync(new URL("../../../extension/page/proxy.js", import.meta.url), "utf8"), page);
  for (let change = 1; change <= 300; change += 1) {
    offer(`t${change}`);
    await pass(10);
  }
  await pass(600);
  await settle();
  page.pageProxy.stop();
  const pauses = reports.slice(1).map(([at], number) => at - reports[number][0]);
  assert.ok(Math.min(...pauses) >= 500, `pauses between reports: ${pauses}`);
  assert.ok(reports.length >= 6, `${reports.length} reports in 3 s`);
  assert.equal(reports.at(-1)[1].tools[0].name, "t300");
});
