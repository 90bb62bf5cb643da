/**
 * The hub's picture of the tabs: all of them on connection and whenever in doubt, one at a time when one changes.
 *
 * Owns what a tab looks like on the wire and how often a change is told. A busy page may change its title a hundred
 * times a second: a tab is told at most once in 100 ms, and its last state always.
 */

import { openerOf } from "./popups.js";

/** @typedef {import("../link/messages.js").TabInfo} Tab */
/** Everything but the opener is always sent. @typedef {Required<Omit<Tab, "openerTabId">> & Pick<Tab, "openerTabId">} TabInfo */
/** @typedef {import("../link/messages.js").TabStateChanged} Change */
/** @typedef {{ change: (change: Change) => Promise<unknown>, syncAll: (tabs: TabInfo[]) => void }} Teller */

const COALESCE_MS = 100;

/** @type {Teller | null} */
let teller = null;
/** @type {number} */
let focusedWindow = chrome.windows.WINDOW_ID_NONE;
/** The tab in front of each window, to tell when it no longer is. @type {Map<number, number>} */
const front = new Map();
/** Tabs told less than 100 ms ago, with what has changed since. @type {Map<number, chrome.tabs.Tab | null>} */
const recent = new Map();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let syncTimer;

/**
 * A tab as the hub knows it.
 * @param {chrome.tabs.Tab} tab
 * @returns {TabInfo}
 */
export function tabInfo(tab) {
  const openerTabId = openerOf(tab);
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
    discarded: tab.discarded,
    audible: tab.audible ?? false,
    lastAccessed: tab.lastAccessed ?? 0,
  };
}

/**
 * Every tab there is.
 * @returns {Promise<TabInfo[]>}
 */
export async function allTabs() {
  const tabs = await chrome.tabs.query({});
  return tabs.map(tabInfo);
}

/**
 * Tell someone from now on, beginning with everything; null when there is no hub.
 * @param {Teller | null} next
 */
export async function tellTabsTo(next) {
  teller = next;
  if (!next) return;
  const [windows, inFront] = await Promise.all([chrome.windows.getAll(), chrome.tabs.query({ active: true })]);
  focusedWindow = windows.find((window) => window.focused)?.id ?? chrome.windows.WINDOW_ID_NONE;
  for (const tab of inFront) if (tab.id !== undefined) front.set(tab.windowId, tab.id);
  await syncAll();
}

async function syncAll() {
  const told = teller;
  const tabs = await allTabs();
  // The hub this was meant for may be gone by now; the next one gets its own.
  if (told && told === teller) told.syncAll(tabs);
}

/** Tell everything again soon, once however often it is asked for. */
function doubt() {
  if (!teller || syncTimer !== undefined) return;
  syncTimer = setTimeout(() => {
    syncTimer = undefined;
    void syncAll();
  }, COALESCE_MS);
}

/** @param {Change} change */
function tell(change) {
  teller?.change(change).catch(doubt);
}

/** @param {chrome.tabs.Tab} tab */
function updated(tab) {
  if (tab.id === undefined || !teller) return;
  if (recent.has(tab.id)) recent.set(tab.id, tab);
  else tellUpdate(tab.id, tab);
}

/**
 * @param {number} tabId
 * @param {chrome.tabs.Tab} tab
 */
function tellUpdate(tabId, tab) {
  recent.set(tabId, null);
  setTimeout(() => {
    const latest = recent.get(tabId);
    recent.delete(tabId);
    if (latest) tellUpdate(tabId, latest);
  }, COALESCE_MS);
  tell({ tabId, change: "updated", tab: tabInfo(tab) });
}

/**
 * @param {number} tabId
 * @param {(tab: chrome.tabs.Tab) => void} use
 */
function withTab(tabId, use) {
  if (!teller) return;
  chrome.tabs.get(tabId).then(use, () => {
    // A tab that is gone again: its removal is told by itself.
  });
}

/**
 * Tell a tab's state now.
 * @param {number} tabId
 */
export function tellTab(tabId) {
  withTab(tabId, (tab) => tell({ tabId, change: "updated", tab: tabInfo(tab) }));
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
  tell({ tabId: info.tabId, change: "updated", tab: info });
  return info;
}

/** Listen to the browser; call this while the worker starts, so that an event can wake it. */
export function watchTabs() {
  const { tabs, windows } = chrome;
  tabs.onCreated.addListener((tab) => {
    if (tab.id !== undefined) tell({ tabId: tab.id, change: "created", tab: tabInfo(tab) });
  });
  tabs.onUpdated.addListener((_tabId, _change, tab) => updated(tab));
  tabs.onActivated.addListener(({ tabId, windowId }) => {
    const before = front.get(windowId);
    front.set(windowId, tabId);
    withTab(tabId, (tab) => tell({ tabId, change: "activated", tab: tabInfo(tab) }));
    if (before !== undefined && before !== tabId) withTab(before, updated);
  });
  tabs.onRemoved.addListener((tabId) => {
    if (recent.has(tabId)) recent.set(tabId, null);
    tell({ tabId, change: "removed" });
  });
  tabs.onReplaced.addListener((tabId, removedTabId) => {
    if (recent.has(removedTabId)) recent.set(removedTabId, null);
    // At once, before anything is told of the new id: the hub would take it for another tab.
    tell({ tabId, change: "replaced", removedTabId });
    tellTab(tabId);
  });
  // These change the place of every tab beside the one they name.
  tabs.onMoved.addListener(doubt);
  tabs.onAttached.addListener(doubt);
  tabs.onDetached.addListener(doubt);
  windows.onFocusChanged.addListener((windowId) => {
    focusedWindow = windowId;
    doubt();
  });
  windows.onRemoved.addListener((windowId) => front.delete(windowId));
}
