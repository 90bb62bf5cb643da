/**
 * The service worker: it builds and connects the parts. Every listener is registered while this file runs, so that
 * events can wake the worker.
 */

import { bookmarkCommands } from "./browser/bookmarks.js";
import { discardCommands, downloadCommands } from "./browser/downloads.js";
import { historyCommands } from "./browser/history.js";
import { extensionCommands } from "./browser/extension_commands.js";
import { notifyCommands, watchNotifications } from "./browser/notify.js";
import { siteDataCommands } from "./browser/site_data.js";
import { windowCommands } from "./browser/windows.js";
import { log, lastErrorText, sendLogTo } from "./log.js";
import { RelayPermissions } from "./link/relay_permissions.js";
import { redact } from "./link/redact.js";
import { DIRECT, Hubs, RELAY, ownerOf } from "./link/recipients.js";
import { browserFacts, browserId } from "./link/identity.js";
import { keepRestarting } from "./link/keepalive.js";
import * as read from "./link/params.js";
import { Relay } from "./link/relay.js";
import { RelayView } from "./link/relay_view.js";
import { relayNotifications } from "./link/relay_notifications.js";
import { Rpc, commandMap, textOf } from "./link/rpc.js";
import { Link } from "./link/socket.js";
import { showIcon } from "./panel/icon.js";
import { approvalNotices } from "./panel/notify.js";
import { watchFront } from "./panel/open_panel.js";
import { servePanel } from "./panel/panel_server.js";
import { AgentWork, watchMenu } from "./panel/work.js";
import { Plugins } from "./plugins/plugins.js";
import { tabCommands } from "./tabs/commands.js";
import { Debugger } from "./tabs/debugger.js";
import { groupCommands } from "./tabs/groups.js";
import { PageScripts, readSettings } from "./tabs/page_scripts.js";
import { Drawing } from "./tabs/drawing.js";
import { failure } from "./tabs/errors.js";
import { AgentBadges } from "./tabs/agent_badges.js";
import { interactionCommands } from "./tabs/interaction.js";
import { Outlines } from "./tabs/outlines.js";
import { watchNavigation } from "./tabs/navigation.js";
import { PageTools } from "./tabs/page_tools.js";
import { watchPopups } from "./tabs/popups.js";
import { reportTab, reportTabNow, reportTabsTo, watchTabs } from "./tabs/state.js";
import { isStopped, resumeIn, stopIn, stoppedKnown, watchStopped, withoutStopped } from "./tabs/stopped.js";

/** @typedef {import("./link/rpc.js").Handler} Handler */

const startedAt = Date.now();
const identity = browserId((message) => log("error", "identity", message));
const facts = browserFacts();
/** @type {Rpc | null} */
let rpc = null;
let reports = 0;

const relayView = new RelayView();
const hubs = new Hubs((question) => relayPermissions.confirmForPage(question));
const cdp = new Debugger({
  event: (event, wantedBy) => hubs.notifyOwners(wantedBy, "cdp.event", event, () => (relayView.levels.unrestricted ? event : redact(event))),
  detached: (tabId, reason) => void hubs.notify("cdp.detached", { tabId, reason }),
  stopped: (tabId) => {
    void stopIn(tabId).then(() => reportTabNow(tabId));
    panel.refresh();
  },
  changed: (attached) => {
    hubs.notify("debugger.changed", { attached });
    panel.refresh();
  },
  note: (message) => log("warning", "debugger", message),
});

const scripts = new PageScripts((message) => log("error", "pages", message));
const pages = new PageTools(scripts, (message) => log("warning", "pages", message));
const badges = new AgentBadges((message) => log("warning", "badges", message));
const outlines = new Outlines();
/**
 * Do something while a tab shows neither badge nor outline.
 * @template Result
 * @param {number} tabId
 * @param {() => Promise<Result>} run
 */
const withoutMarks = (tabId, run) => outlines.hideDuring(tabId, () => badges.hideDuring(tabId, run));
const work = new AgentWork({
  changed: () => showIcon(link.state, work),
  note: (message) => log("warning", "menu", message),
});
const plugins = new Plugins(
  (tabId, expression) =>
    cdp.command(tabId, "Runtime.evaluate", { expression }, { id: "plugins", cancelled: false, onCancel: null }),
  (message) => log("error", "plugins", message),
);

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

/** What a panel shows of the connection. */
async function panelState() {
  const [tabs, { browserName }] = await Promise.all([chrome.tabs.query({}), facts, stoppedKnown()]);
  const [debugged, lastError] = [cdp.attached().length, lastErrorText()];
  const stopped = tabs
    .filter(({ id }) => isStopped(id))
    .map(({ id = chrome.tabs.TAB_ID_NONE, title = "", url = "" }) => ({ tabId: id, title, url }));
  return { link: link.state, tabs: tabs.length, debugged, browserName, lastError, stopped };
}

/**
 * The person returns a tab to the agents.
 * @param {number} tabId
 */
async function resumeTab(tabId) {
  await resumeIn(tabId);
  panel.refresh();
  try {
    return reportTab(await chrome.tabs.get(tabId));
  } catch (error) {
    throw failure(error, tabId);
  }
}

/** Maximum number of chained commands: enough for a text of some hundred keys. */
const MAX_CHAINED = 2000;

/**
 * Commands that are sent together with another one.
 * @param {Record<string, unknown>} params
 * @param {string} name
 */
function chainedCommands(params, name) {
  return read.optionalObjects(params, name, MAX_CHAINED).map((command) => ({
    method: read.requiredString(command, "method"),
    params: read.optionalObject(command, "params") ?? {},
  }));
}

const drawing = new Drawing(cdp);

/**
 * Take a picture for an agent that uses the browser without the hub's tools.
 * @template Result
 * @param {number} tabId
 * @param {import("./link/rpc.js").Call} call
 * @param {() => Promise<Result>} take
 */
const takePicture = (tabId, call, take) => withoutMarks(tabId, () => drawing.during(tabId, call, take));

/** All requests of the hub; others are refused. @type {ReadonlyMap<string, Handler>} */
const methods = withoutStopped(new Map([
  ...tabCommands(cdp, (message) => log("warning", "tabs", message)),
  ...interactionCommands(cdp, takePicture),
  ...groupCommands,
  ...windowCommands,
  ...historyCommands,
  ...bookmarkCommands,
  ...downloadCommands,
  ...siteDataCommands,
  ...notifyCommands,
  ...extensionCommands(panelState),
  ...plugins.methods(),
  ...commandMap({ getState, "browser/executeTool": (params, call) => pages.execute(params, call) }),
  [
    "forwardCDPCommand",
    (params, call) => {
      const method = read.requiredString(params, "method");
      const given = read.optionalObject(params, "params") ?? {};
      const tabId = read.tabIdOf(params);
      call.site ??= read.optionalString(params, "site");
      const options = {
        sessionId: read.optionalString(params, "sessionId"),
        interruptible: read.optionalBoolean(params, "interruptible"),
        ahead: chainedCommands(params, "ahead"),
        follow: chainedCommands(params, "follow"),
        owner: ownerOf(call.id),
      };
      const run = () => cdp.command(tabId, method, given, call, options);
      const commands = [...options.ahead, { method, params: given }, ...options.follow];
      if (commands.some((each) => each.method === "Page.captureScreenshot")) {
        return ownerOf(call.id).startsWith("conn-") ? takePicture(tabId, call, run) : withoutMarks(tabId, run);
      }
      const aside = badges.stepAside(tabId, commands);
      return aside ? aside.then(run) : run();
    },
  ],
  [
    "subscribeCDPEvents",
    async (params, call) => {
      const events = read.requiredStrings(params, "events", 100);
      await cdp.subscribe(read.tabIdOf(params), events, ownerOf(call.id), chainedCommands(params, "children"));
      return {};
    },
  ],
]));
/** Requests that only the hub on this machine may send, on behalf of the person. */
const ownMethods = new Map([
  ...methods,
  ...discardCommands,
  ...commandMap({ resumeTab: (params) => resumeTab(read.tabIdOf(params)) }),
]);

/** Notifications that are passed on to the panel. */
const PANEL_EVENTS = [
  "tool.invocationStart",
  "tool.invocationEnd",
  "confirmation.request",
  "confirmation.done",
  "panel.changed",
  "plugins.changed",
  "agent.event",
];

/** @typedef {import("./link/rpc.js").Params} Params */
/** @typedef {(params: Params) => void} Notified */
const notifications = new Map(
  /** @type {[string, Notified][]} */ ([
    ["ping", () => void rpc?.notify("pong", {})],
    ["pong", () => {}],
    ["cancel", (params) => rpc?.cancel(params["id"])],
    ["extension.reload", () => chrome.runtime.reload()],
    ["pages.settings", (params) => void pages.change(readSettings(params))],
    ["agents.marks", (params) => badges.change(params)],
    ["agents.outline", (params) => outlines.show(params)],
    ["agents.work", (params) => work.change(params)],
    ...plugins.notifications(),
    ...PANEL_EVENTS.map((method) => [method, (/** @type {Params} */ params) => void panel.event(method, params)]),
    [
      "confirmation.request",
      (params) => {
        work.asked(params);
        if (!panel.event("confirmation.request", params)) notices.show(params);
      },
    ],
    [
      "confirmation.done",
      (params) => {
        work.answered(params);
        panel.event("confirmation.done", params);
        notices.remove(params);
      },
    ],
  ]),
);

const link = new Link({
  browserId: () => identity,
  opened: (auth, send) => {
    const opened = new Rpc({ send, methods: ownMethods, notifications, note: (message) => log("warning", "link", message) });
    rpc = opened;
    if (auth.debuggerIdleMs !== undefined) cdp.idleMs = auth.debuggerIdleMs;
    introduce(opened, auth.managed).catch((error) => {
      log("error", "link", `The tabs could not be reported to the hub: ${textOf(error)}`);
    });
    return {
      receive: (data) => opened.receive(data),
      ping: () => opened.notify("ping", {}),
      closed: () => {
        rpc = hubs.direct = null;
        sendLogTo(null);
        void reportAll();
        badges.change({ tabs: [] });
        work.forget();
        cdp.unsubscribe((owner) => owner === DIRECT);
        opened.close();
      },
    };
  },
  changed: (state) => {
    showIcon(state, work);
    panel.refresh();
    if (state.phase === "connected") log("info", "link", `Connected to the hub at ${state.address}.`);
    else if (state.reason !== null && state.retryAt !== null) log("info", "link", state.reason);
  },
  note: (message) => log("warning", "link", message),
});

/**
 * @param {Rpc} opened
 * @param {boolean} managed
 */
async function introduce(opened, managed) {
  /** @type {import("./link/messages.js").ExtensionHello} */
  const hello = { browserId: await identity, ...(await facts), managed };
  // So that the tools of any page that the hub opens are seen.
  await scripts.ready;
  if (rpc !== opened) return;
  hubs.direct = opened;
  hubs.pluginsOf = undefined;
  opened.notify("extension.hello", hello);
  sendLogTo((entry) => opened.notify("log", entry));
  if (await reportAll()) panel.introduce();
}

/** Report everything to connected recipients, and changes from now on. Returns false if a later report replaced this one. */
async function reportAll() {
  const report = ++reports;
  const recipients = hubs.any ? hubs : null;
  const reported = reportTabsTo(
    recipients && {
      change: (change) => recipients.request("tab.stateChanged", change),
      syncAll: (tabs) => {
        const attached = cdp.attached();
        recipients.notify("tab.syncAll", { tabs, plugins: plugins.states(), debugger: { attached } });
      },
    },
  );
  if (!recipients) {
    pages.reportTo(null);
    plugins.reportTo(null);
  }
  await reported;
  if (!recipients || report !== reports) return false;
  pages.reportTo(recipients);
  plugins.reportTo(recipients);
  return true;
}

const relayPermissions = new RelayPermissions({
  view: relayView,
  watched: () => panel.open(),
  changed: () => {
    const state = relayState();
    work.askedRemotely(state.questions.length);
    panel.event("relay.changed", state);
  },
  note: (message) => log("warning", "relay", message),
});
const relay = new Relay({
  methods: relayPermissions.guard(methods),
  notifications: relayNotifications({
    plugins: plugins.notifications(),
    direct: () => hubs.direct !== null,
    // Their code would also run in the pages that agents get nothing of.
    may: async (from) =>
      !relayView.levels.hides && relayPermissions.may(`${RELAY} ${from}`, "", "run the code of its plugins in your pages"),
    accepted: (from) => {
      hubs.pluginsOf = from;
    },
    note: (message) => log("warning", "relay", message),
  }),
  identity: async () => ({ instanceId: await identity, ...(await facts) }),
  agentsChanged: (rpc) => {
    hubs.relay = rpc && relayView.member(rpc);
    if (!rpc) {
      relayPermissions.endApprovals();
      cdp.unsubscribe((owner) => owner !== DIRECT);
    }
    void reportAll();
  },
  changed: () => {
    relayView.change(relay.levels);
    relayPermissions.place = relay.place;
    link.setRelayOnly(relay.settings.instead && relay.settings.url !== "");
    panel.event("relay.changed", relayState());
  },
  note: (message) => log("warning", "relay", message),
});

function relayState() {
  return { ...relay.state(), questions: relayPermissions.questions() };
}

const notices = approvalNotices({
  answer: (params) => rpc?.notify("confirmation.response", params) === true,
  note: (message) => log("warning", "notify", message),
});
const panel = servePanel({
  state: panelState,
  hub: () => rpc,
  opened: () => wakeLinks(),
  own: new Map(
    /** @type {[string, (params: Params) => unknown][]} */ ([
      ["relay.state", relayState],
      [
        "relay.set",
        (params) => {
          relayPermissions.clearDenials();
          return relay.change(params).then(relayState);
        },
      ],
      ["relay.answer", (params) => relayPermissions.answer(params)],
      ["tabs.resume", (params) => resumeTab(read.tabIdOf(params))],
    ]),
  ),
});

watchMenu({
  request: (method, params) => (rpc ? rpc.request(method, params) : Promise.reject(new Error("The hub is not connected."))),
  say: (title, message) =>
    void chrome.notifications
      .create("menu", { type: "basic", iconUrl: chrome.runtime.getURL("icons/connected-128.png"), title, message })
      .catch((error) => log("warning", "notify", textOf(error))),
});
chrome.commands.onCommand.addListener((command) => {
  if (command !== "pause-agents" || !rpc) return;
  const asked = work.paused ? rpc.request("hub.resume", {}) : rpc.request("hub.pause", { mode: "wait" });
  void asked.catch((error) => log("warning", "panel", `The agents could not be paused or resumed: ${textOf(error)}`));
});
// From stop_area.js, in the extension's own world of a page.
chrome.runtime.onMessage.addListener((message, { tab, frameId, id }) => {
  if (tab?.id === undefined || frameId !== 0 || id !== chrome.runtime.id) return;
  if (message?.type === "stop.area") badges.place(tab.id, message.area);
  else if (message?.type === "stop.clicked" && badges.has(tab.id)) stopAgents(tab.id);
});

/**
 * The person stops the agents in a tab, by the badge.
 * @param {number} tabId
 */
function stopAgents(tabId) {
  cdp.stop(tabId);
  void stopIn(tabId).then(() => reportTabNow(tabId));
  panel.refresh();
}

function wakeLinks() {
  link.wake();
  relay.wake();
}

self.addEventListener("unhandledrejection", (event) => log("error", "worker", textOf(event.reason)));
self.addEventListener("error", (event) => log("error", "worker", event.message));
log("info", "worker", `The extension's worker started (version ${chrome.runtime.getManifest().version}).`);
watchStopped((message) => log("warning", "tabs", message));
watchTabs();
watchPopups({
  isUsed: (tabId) => cdp.attached().includes(tabId),
  report: reportTabNow,
  note: (message) => log("warning", "tabs", message),
});
watchNavigation();
relayView.start();
watchNotifications((message) => log("warning", "notify", message));
watchFront();
scripts.start();
pages.start();
plugins.start();
badges.start();
cdp.start();
keepRestarting(wakeLinks);
void link.start(relay.start());
