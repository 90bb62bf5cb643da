/**
 * Reporting tabs to the hub: all of them on connection and when needed, single ones when they change.
 *
 * Owns the form of a tab on the wire and how often changes are reported. A page may change its title a hundred times a
 * second: a tab is reported at most once in 100 ms, and its last state always.
 */

import { openerOf } from "./popups.js";
import { isStopped, stoppedKnown } from "./stopped.js";

/** @typedef {import("../link/messages.js").TabInfo} Tab */
/** Everything but the opener is always sent. @typedef {Required<Omit<Tab, "openerTabId" | "openerOrigin">> & Pick<Tab, "openerTabId" | "openerOrigin">} TabInfo */
/** @typedef {import("../link/messages.js").TabStateChanged} Change */
/** @typedef {{ change: (change: Change) => Promise<unknown>, syncAll: (tabs: TabInfo[]) => void }} Recipient */

const COALESCE_MS = 100;

/** @type {Recipient | null} */
let recipient = null;
/** @type {number} */
let focusedWindow = chrome.windows.WINDOW_ID_NONE;
/** The active tab of each window, to report when it is no longer active. @type {Map<number, number>} */
const activeTabs = new Map();
/** Tabs reported less than 100 ms ago, with their newer state, if any. @type {Map<number, chrome.tabs.Tab | null>} */
const recent = new Map();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let syncTimer;

/**
 * A tab in the form of the hub's protocol.
 * @param {chrome.tabs.Tab} tab
 * @returns {TabInfo}
 */
export function tabInfo(tab) {
  const { tabId: openerTabId, origin: openerOrigin } = openerOf(tab);
  return {
    tabId: tab.id ?? chrome.tabs.TAB_ID_NONE,
    url: tab.url || tab.pendingUrl || "",
    title: tab.title ?? "",
    active: tab.active,
    windowId: tab.windowId,
    windowFocused: tab.windowId === focusedWindow,
    index: tab.index,
    status: tab.status ?? "complete",
    pinned: tab.pinned,
    incognito: tab.incognito,
    groupId: tab.groupId,
    ...(openerTabId === undefined ? {} : { openerTabId }),
    ...(openerOrigin === undefined ? {} : { openerOrigin }),
    discarded: tab.discarded,
    audible: tab.audible ?? false,
    lastAccessed: tab.lastAccessed ?? 0,
    stopped: isStopped(tab.id),
  };
}

/**
 * All tabs.
 * @returns {Promise<TabInfo[]>}
 */
export async function allTabs() {
  const tabs = await chrome.tabs.query({});
  return tabs.map(tabInfo);
}

/**
 * Report to a recipient from now on, beginning with all tabs; null when the hub is disconnected.
 * @param {Recipient | null} next
 */
export async function reportTabsTo(next) {
  recipient = next;
  if (!next) return;
  const [windows, inFront] = await Promise.all([
    chrome.windows.getAll(),
    chrome.tabs.query({ active: true }),
    stoppedKnown(),
  ]);
  focusedWindow = windows.find((window) => window.focused)?.id ?? chrome.windows.WINDOW_ID_NONE;
  for (const tab of inFront) if (tab.id !== undefined) activeTabs.set(tab.windowId, tab.id);
  await syncAll();
}

async function syncAll() {
  const current = recipient;
  const tabs = await allTabs();
  // The recipient may have changed in the meantime; the next one gets its own report.
  if (current && current === recipient) current.syncAll(tabs);
}

/** Report all tabs soon, once for several requests. */
function syncSoon() {
  if (!recipient || syncTimer !== undefined) return;
  syncTimer = setTimeout(() => {
    syncTimer = undefined;
    void syncAll();
  }, COALESCE_MS);
}

/** @param {Change} change */
function send(change) {
  recipient?.change(change).catch(syncSoon);
}

/** @param {chrome.tabs.Tab} tab */
function updated(tab) {
  if (tab.id === undefined || !recipient) return;
  if (recent.has(tab.id)) recent.set(tab.id, tab);
  else sendUpdate(tab.id, tab);
}

/**
 * @param {number} tabId
 * @param {chrome.tabs.Tab} tab
 */
function sendUpdate(tabId, tab) {
  recent.set(tabId, null);
  setTimeout(() => {
    const latest = recent.get(tabId);
    recent.delete(tabId);
    if (latest) sendUpdate(tabId, latest);
  }, COALESCE_MS);
  send({ tabId, change: "updated", tab: tabInfo(tab) });
}

/**
 * @param {number} tabId
 * @param {(tab: chrome.tabs.Tab) => void} use
 */
function withTab(tabId, use) {
  if (!recipient) return;
  chrome.tabs.get(tabId).then(use, () => {
    // Already closed: onRemoved reports it.
  });
}

/**
 * Report a tab's state now.
 * @param {number} tabId
 */
export function reportTabNow(tabId) {
  withTab(tabId, (tab) => send({ tabId, change: "updated", tab: tabInfo(tab) }));
}

/**
 * Report a tab that an answer describes, and return its description. The report goes first because the hub applies
 * reports in order, but an answer only when its caller resumes.
 * @param {chrome.tabs.Tab} tab
 * @returns {TabInfo}
 */
export function reportTab(tab) {
  const info = tabInfo(tab);
  if (recent.has(info.tabId)) recent.set(info.tabId, null); // drop an older state that has not been sent yet
  send({ tabId: info.tabId, change: "updated", tab: info });
  return info;
}

/** Listen for events; call this while the worker starts, so that an event can wake it. */
export function watchTabs() {
  const { tabs, windows } = chrome;
  tabs.onCreated.addListener((tab) => {
    if (tab.id !== undefined) send({ tabId: tab.id, change: "created", tab: tabInfo(tab) });
  });
  tabs.onUpdated.addListener((_tabId, _change, tab) => updated(tab));
  tabs.onActivated.addListener(({ tabId, windowId }) => {
    const before = activeTabs.get(windowId);
    activeTabs.set(windowId, tabId);
    withTab(tabId, (tab) => send({ tabId, change: "activated", tab: tabInfo(tab) }));
    if (before !== undefined && before !== tabId) withTab(before, updated);
  });
  tabs.onRemoved.addListener((tabId) => {
    if (recent.has(tabId)) recent.set(tabId, null);
    send({ tabId, change: "removed" });
  });
  tabs.onReplaced.addListener((tabId, removedTabId) => {
    if (recent.has(removedTabId)) recent.set(removedTabId, null);
    // At once, before the new id is reported: the hub would take it for another tab.
    send({ tabId, change: "replaced", removedTabId });
    reportTabNow(tabId);
  });
  // These also change the index of other tabs.
  tabs.onMoved.addListener(syncSoon);
  tabs.onAttached.addListener(syncSoon);
  tabs.onDetached.addListener(syncSoon);
  windows.onFocusChanged.addListener((windowId) => {
    focusedWindow = windowId;
    syncSoon();
  });
  windows.onRemoved.addListener((windowId) => activeTabs.delete(windowId));
}
