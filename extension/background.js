/**
 * The service worker: it only connects the parts. Every listener is registered while this file runs, so that the
 * browser can wake the worker for it.
 */

import { log, lastErrorText, tellLogTo } from "./log.js";
import { about, browserId } from "./link/identity.js";
import { reviveBy } from "./link/keepalive.js";
import * as read from "./link/params.js";
import { Rpc, textOf } from "./link/rpc.js";
import { Link } from "./link/socket.js";
import { showIcon } from "./panel/icon.js";
import { servePanel } from "./panel/serve.js";
import { tabCommands } from "./tabs/commands.js";
import { Debugger } from "./tabs/debugger.js";
import { PageScripts, readSettings } from "./tabs/inject.js";
import { watchNavigation } from "./tabs/navigation.js";
import { PageTools } from "./tabs/pagetools.js";
import { tellTabsTo, watchTabs } from "./tabs/state.js";

/** @typedef {import("./link/rpc.js").Handler} Handler */

const startedAt = Date.now();
const identity = browserId((message) => log("error", "identity", message));
const facts = about();
/** @type {Rpc | null} */
let rpc = null;

const cdp = new Debugger({
  event: (event) => rpc?.notify("cdp.event", event),
  detached: (tabId, reason) => rpc?.notify("cdp.detached", { tabId, reason }),
  changed: (attached) => {
    rpc?.notify("debugger.changed", { attached });
    panel.refresh();
  },
  note: (message) => log("warning", "debugger", message),
});

const scripts = new PageScripts((message) => log("error", "pages", message));
const pages = new PageTools(scripts, (message) => log("warning", "pages", message));

async function getState() {
  const [tabs, windows] = await Promise.all([chrome.tabs.query({}), chrome.windows.getAll()]);
  const lastError = lastErrorText();
  return {
    browserId: await identity,
    ...(await facts),
    startedAt,
    tabs: tabs.length,
    windows: windows.length,
    debugger: { attached: cdp.attached() },
    ...(lastError === null ? {} : { lastError }),
  };
}

/** Everything the hub may ask; what is not here is refused. @type {ReadonlyMap<string, Handler>} */
const methods = new Map([
  ...tabCommands(cdp),
  ["getState", getState],
  ["browser/executeTool", (params, call) => pages.execute(params, call)],
  [
    "forwardCDPCommand",
    (params, call) => {
      const method = read.requiredString(params, "method");
      const given = read.optionalObject(params, "params") ?? {};
      return cdp.command(read.tabIdOf(params), method, given, call, {
        sessionId: read.optionalString(params, "sessionId"),
        interruptible: read.optionalBoolean(params, "interruptible"),
      });
    },
  ],
  [
    "subscribeCDPEvents",
    async (params) => {
      await cdp.subscribe(read.tabIdOf(params), read.requiredStrings(params, "events", 100));
      return {};
    },
  ],
]);

/** @typedef {(params: Record<string, unknown>) => void} Notified */
const notifications = new Map(
  /** @type {[string, Notified][]} */ ([
    ["ping", () => void rpc?.notify("pong", {})],
    ["pong", () => {}],
    ["cancel", (params) => rpc?.cancel(params["id"])],
    ["extension.reload", () => chrome.runtime.reload()],
    ["pages.settings", (params) => void pages.change(readSettings(params))],
    ["tool.invocationStart", () => {}],
    ["tool.invocationEnd", () => {}],
  ]),
);

const link = new Link({
  browserId: () => identity,
  opened: (auth, send) => {
    const opened = new Rpc({ send, methods, notifications, note: (message) => log("warning", "link", message) });
    rpc = opened;
    if (auth.debuggerIdleMs !== undefined) cdp.idleMs = auth.debuggerIdleMs;
    introduce(opened, auth.managed).catch((error) => {
      log("error", "link", `The hub was not told of the tabs: ${textOf(error)}`);
    });
    return {
      receive: (data) => opened.receive(data),
      ping: () => opened.notify("ping", {}),
      closed: () => {
        rpc = null;
        tellLogTo(null);
        void tellTabsTo(null);
        pages.tellTo(null);
        cdp.unsubscribeAll();
        opened.close();
      },
    };
  },
  changed: (state) => {
    showIcon(state);
    panel.refresh();
  },
  note: (message) => log("warning", "link", message),
});

/**
 * @param {Rpc} opened
 * @param {boolean} managed
 */
async function introduce(opened, managed) {
  const hello = { browserId: await identity, ...(await facts), managed };
  // A page the hub opens from now on is one whose tools we see.
  await scripts.ready;
  if (rpc !== opened) return;
  opened.notify("extension.hello", hello);
  tellLogTo((entry) => opened.notify("log", entry));
  await tellTabsTo({
    change: (change) => opened.request("tab.stateChanged", change),
    syncAll: (tabs) => opened.notify("tab.syncAll", { tabs, plugins: {}, debugger: { attached: cdp.attached() } }),
  });
  if (rpc === opened) pages.tellTo(opened);
}

const panel = servePanel({
  state: async () => {
    const [tabs, { browserName }] = await Promise.all([chrome.tabs.query({}), facts]);
    const [debugged, lastError] = [cdp.attached().length, lastErrorText()];
    return { link: link.state, tabs: tabs.length, debugged, browserName, lastError };
  },
  opened: () => link.wake(),
});

self.addEventListener("unhandledrejection", (event) => log("error", "worker", textOf(event.reason)));
self.addEventListener("error", (event) => log("error", "worker", event.message));
watchTabs();
watchNavigation();
scripts.start();
pages.start();
cdp.start();
reviveBy(() => link.wake());
void link.start();
