/**
 * Commands on tabs, one function each, in one table.
 *
 * None of them takes the focus unless requested.
 */

import * as read from "../link/params.js";
import { FAILED, RpcError, commandMap } from "../link/rpc.js";
import { failure } from "./errors.js";
import { allowedUrl, navigateAndWait } from "./navigation.js";
import { putIntoGroup, requestedGroup, sessionGroup } from "./session_groups.js";
import { waitForRemoval } from "./removal.js";
import { allTabs, reportTab, tabInfo } from "./state.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {import("../link/rpc.js").Handler} Handler */
/** @typedef {import("./debugger.js").Debugger} Debugger */

const MAX_WAIT = 300_000;
/** After this a page that is still loading is reported as it is. */
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
  const group = requestedGroup(params);
  // In the window of its group: a tab that is added to a group in another window moves there.
  const windowId = read.optionalInteger(params, "windowId") ?? (group && (await sessionGroup(group.key))?.windowId);
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
  if (group) await putIntoGroup(group, tab, note);
  if (until === "load") return reportTab(await loaded(tab.id));
  return reportTab(await existing(tab.id));
}

/**
 * A new tab, once its page has loaded.
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
  const removed = (/** @type {number} */ removedId) => listener(removedId);
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
 * For a browser that runs without a window.
 * @param {string} url
 * @param {boolean} focused
 */
async function createWindow(url, focused) {
  const created = await chrome.windows.create({ url, focused });
  const tab = created?.tabs?.[0];
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
  const closed = waitForRemoval(chrome.tabs.onRemoved, tabId);
  // The browser answers only when the page has allowed closing.
  await Promise.race([chrome.tabs.remove(tabId), closed]);
  if (!(await closed)) throw new RpcError(FAILED, `Tab ${tabId} is still open: its page asks for confirmation.`);
  return { closed: true };
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
 * The commands; the debugger is for what the extension API does not offer.
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
    // The browser would abort it silently, also with the debugger.
    if (url.startsWith("data:")) throw new RpcError(FAILED, "A data: URL opens only in a new tab. Create one.");
    const move = () => chrome.tabs.update(tabId, { url });
    const documentStatus = (/** @type {string | undefined} */ there) => cdp.documentStatus(tabId, there);
    const longest = timeoutMs && Math.min(timeoutMs, MAX_WAIT);
    return navigateAndWait(tabId, { move, url, until, timeoutMs: longest, documentStatus }, call);
  }

  /**
   * A function that goes back or forward in the tab's history. The extension API skips every page without a user gesture,
   * which is every page an agent was on; it is used only where no debugger can attach.
   * @param {number} tabId
   * @param {-1 | 1} step
   * @param {Call} call
   * @returns {Promise<() => Promise<unknown>>}
   */
  async function historyStep(tabId, step, call) {
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
   * A step in the history, or a reload.
   * @param {(tabId: number, params: Params, call: Call) => Promise<() => Promise<unknown>>} prepare
   * @returns {(params: Params, call: Call) => Promise<import("../link/messages.js").Arrival>}
   */
  function moving(prepare) {
    return async (params, call) => {
      const tabId = read.tabIdOf(params);
      await existing(tabId);
      const move = await prepare(tabId, params, call);
      const arrived = await navigateAndWait(tabId, { move, url: undefined, until: "load", timeoutMs: undefined }, call);
      const short = { tabId, url: arrived.url, title: arrived.title, status: arrived.status };
      return arrived.ok ? short : { ...short, ok: false, ...read.withoutUndefined({ error: arrived.error }) };
    };
  }

  return commandMap({
    getTabs,
    createTab: (params) => createTab(params, note),
    selectTab,
    activateTab,
    closeTab,
    browser_navigate: navigate,
    goBack: moving((tabId, _params, call) => historyStep(tabId, -1, call)),
    goForward: moving((tabId, _params, call) => historyStep(tabId, 1, call)),
    reloadTab: moving(async (tabId, params) => {
      const bypassCache = read.optionalBoolean(params, "ignoreCache") ?? false;
      return () => chrome.tabs.reload(tabId, { bypassCache });
    }),
  });
}
