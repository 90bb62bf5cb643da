/**
 * The commands on tabs: what the hub may ask of the browser, one function each, listed in one table.
 *
 * Nothing here takes the focus unless it is asked to.
 */

import * as read from "../link/params.js";
import { FAILED, RpcError, commandMap } from "../link/rpc.js";
import { failure } from "./errors.js";
import { allowedUrl, travel } from "./navigation.js";
import { groupWish, ownGroup, putIntoGroup } from "./session_groups.js";
import { allTabs, reportTab, tabInfo } from "./state.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {import("../link/rpc.js").Handler} Handler */
/** @typedef {import("./debugger.js").Debugger} Debugger */

const CLOSE_MS = 2_000;
const LONGEST_WAIT = 300_000;
/** A page that is slow to load is given as it is. */
const LOAD_MS = 10_000;

async function getTabs() {
  return { tabs: await allTabs() };
}

/**
 * @param {Params} params
 * @param {(message: string) => void} note
 */
async function createTab(params, note) {
  const url = await allowedUrl(read.optionalString(params, "url") ?? "about:blank");
  const active = read.optionalBoolean(params, "active") ?? false;
  const wish = groupWish(params);
  // Where its group is: a tab that is grouped in another window would move there.
  const windowId = read.optionalInteger(params, "windowId") ?? (wish && (await ownGroup(wish.key))?.windowId);
  const index = read.optionalInteger(params, "index");
  const openerTabId = read.optionalInteger(params, "openerTabId");
  const until = read.oneOf(params, "waitUntil", ["none", "load"]);
  const place = {
    ...(windowId === undefined ? {} : { windowId }),
    ...(index === undefined ? {} : { index }),
    ...(openerTabId === undefined ? {} : { openerTabId }),
  };
  const windows = windowId === undefined ? await chrome.windows.getAll({ windowTypes: ["normal"] }) : [];
  const alone = windowId === undefined && windows.length === 0;
  let tab;
  try {
    tab = alone ? await createWindow(url, active) : await chrome.tabs.create({ url, active, ...place });
  } catch (error) {
    throw failure(error, openerTabId ?? chrome.tabs.TAB_ID_NONE);
  }
  if (tab.id === undefined) return tabInfo(tab);
  if (wish) await putIntoGroup(wish, tab, note);
  if (until === "load") return reportTab(await loaded(tab.id));
  return reportTab(await existing(tab.id));
}

/**
 * A tab just made, when its page has loaded.
 * @param {number} tabId
 */
async function loaded(tabId) {
  const { promise, resolve } = /** @type {PromiseWithResolvers<void>} */ (Promise.withResolvers());
  const timer = setTimeout(resolve, LOAD_MS);
  /**
   * @param {number} changed
   * @param {{ status?: string }} [change]
   */
  const listener = (changed, change) => {
    if (changed === tabId && (!change || change.status === "complete")) resolve();
  };
  const removed = (/** @type {number} */ gone) => listener(gone);
  chrome.tabs.onUpdated.addListener(listener);
  chrome.tabs.onRemoved.addListener(removed);
  try {
    if ((await existing(tabId)).status !== "complete") await promise;
    return await existing(tabId);
  } finally {
    clearTimeout(timer);
    chrome.tabs.onUpdated.removeListener(listener);
    chrome.tabs.onRemoved.removeListener(removed);
  }
}

/**
 * A browser can run without a window.
 * @param {string} url
 * @param {boolean} focused
 */
async function createWindow(url, focused) {
  const made = await chrome.windows.create({ url, focused });
  const tab = made?.tabs?.[0];
  if (!tab) throw new RpcError(FAILED, "The browser has no window and did not open one.");
  return tab;
}

/** @param {Params} params */
async function selectTab(params) {
  return reportTab(await existing(read.tabIdOf(params)));
}

/** @param {Params} params */
async function activateTab(params) {
  const tabId = read.tabIdOf(params);
  const focusWindow = read.optionalBoolean(params, "focusWindow") ?? false;
  await existing(tabId);
  const tab = await chrome.tabs.update(tabId, { active: true });
  if (focusWindow && tab) await chrome.windows.update(tab.windowId, { focused: true });
  return reportTab(await existing(tabId));
}

/** @param {Params} params */
async function closeTab(params) {
  const tabId = read.tabIdOf(params);
  await existing(tabId);
  const gone = removal(tabId);
  // The browser does not answer before its page has let the tab go.
  await Promise.race([chrome.tabs.remove(tabId), gone]);
  if (!(await gone)) throw new RpcError(FAILED, `Tab ${tabId} is still open: its page asks the person first.`);
  return { closed: true };
}

/**
 * Whether a tab goes away soon: a page may hold its tab open with a question to the person.
 * @param {number} tabId
 * @returns {Promise<boolean>}
 */
function removal(tabId) {
  return new Promise((resolve) => {
    /** @param {number} removed */
    const listener = (removed) => {
      if (removed === tabId) finish(true);
    };
    /** @param {boolean} gone */
    const finish = (gone) => {
      clearTimeout(timer);
      chrome.tabs.onRemoved.removeListener(listener);
      resolve(gone);
    };
    const timer = setTimeout(() => finish(false), CLOSE_MS);
    chrome.tabs.onRemoved.addListener(listener);
  });
}

/** @param {number} tabId */
async function existing(tabId) {
  try {
    return await chrome.tabs.get(tabId);
  } catch (error) {
    throw failure(error, tabId);
  }
}

/**
 * The commands, given the debugger that does what the browser's own functions for extensions do not.
 * @param {Debugger} cdp
 * @param {(message: string) => void} note
 * @returns {ReadonlyMap<string, Handler>}
 */
export function tabCommands(cdp, note) {
  /**
   * @param {Params} params
   * @param {Call} call
   */
  async function navigate(params, call) {
    const tabId = read.tabIdOf(params);
    const until = read.oneOf(params, "waitUntil", ["load", "commit", "none"]);
    const timeoutMs = read.optionalInteger(params, "timeoutMs", 1);
    const url = await allowedUrl(read.requiredString(params, "url"));
    await existing(tabId);
    // The browser would abort it without a word, by the debugger too.
    if (url.startsWith("data:")) throw new RpcError(FAILED, "A data: address opens only in a new tab. Create one.");
    const move = () => chrome.tabs.update(tabId, { url });
    return travel(tabId, { move, url, until, timeoutMs: timeoutMs && Math.min(timeoutMs, LONGEST_WAIT) }, call);
  }

  /**
   * How to go along the tab's history, if there is a page to go to. The browser's own function for it passes over every
   * page the person has not touched, which is every page an agent was on; it is only used where no debugger may attach.
   * @param {number} tabId
   * @param {-1 | 1} step
   * @param {Call} call
   * @returns {Promise<() => Promise<unknown>>}
   */
  async function going(tabId, step, call) {
    let history;
    try {
      history = await cdp.command(tabId, "Page.getNavigationHistory", {}, call);
    } catch {
      return () => (step < 0 ? chrome.tabs.goBack(tabId) : chrome.tabs.goForward(tabId));
    }
    const { currentIndex, entries } = /** @type {{ currentIndex: number, entries: { id: number }[] }} */ (history);
    const entry = entries[currentIndex + step];
    if (!entry) throw new RpcError(FAILED, `The tab's history has no page ${step < 0 ? "before" : "after"} this one.`);
    return () => cdp.command(tabId, "Page.navigateToHistoryEntry", { entryId: entry.id }, call);
  }

  /**
   * A move along the tab's history, or a reload.
   * @param {(tabId: number, params: Params, call: Call) => Promise<() => Promise<unknown>>} way
   * @returns {(params: Params, call: Call) => Promise<import("../link/messages.js").Arrival>}
   */
  function moving(way) {
    return async (params, call) => {
      const tabId = read.tabIdOf(params);
      await existing(tabId);
      const move = await way(tabId, params, call);
      const arrived = await travel(tabId, { move, url: undefined, until: "load", timeoutMs: undefined }, call);
      const short = { tabId, url: arrived.url, title: arrived.title, status: arrived.status };
      return arrived.ok ? short : { ...short, ok: false, ...read.given({ error: arrived.error }) };
    };
  }

  return commandMap({
    getTabs,
    createTab: (params) => createTab(params, note),
    selectTab,
    activateTab,
    closeTab,
    browser_navigate: navigate,
    goBack: moving((tabId, _params, call) => going(tabId, -1, call)),
    goForward: moving((tabId, _params, call) => going(tabId, 1, call)),
    reloadTab: moving(async (tabId, params) => {
      const bypassCache = read.optionalBoolean(params, "ignoreCache") ?? false;
      return () => chrome.tabs.reload(tabId, { bypassCache });
    }),
  });
}
