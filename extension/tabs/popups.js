/**
 * Tabs that pages open: their openers, and keeping them behind the person's tab.
 *
 * The browser reports the active tab as the opener of a new tab, whichever page opened it; navigation events have the
 * real one. A page that an agent uses in the background may open a tab, but not in front of the person's tab.
 */

import { textOf } from "../link/rpc.js";
import { restoreFocusAfterPopup } from "./focus.js";

/** The opener by tab. @type {Map<number, number>} */
const openers = new Map();

/**
 * The opener of a tab.
 * @param {chrome.tabs.Tab} tab
 */
export function openerOf(tab) {
  return (tab.id === undefined ? undefined : openers.get(tab.id)) ?? tab.openerTabId;
}

/**
 * Listen for events; call this while the worker starts.
 * @param {object} parts
 * @param {(tabId: number) => boolean} parts.isUsed whether an agent uses a tab
 * @param {(tabId: number) => void} parts.report
 * @param {(message: string) => void} parts.note
 */
export function watchPopups({ isUsed, report, note }) {
  chrome.webNavigation.onCreatedNavigationTarget.addListener(({ sourceTabId, tabId }) => {
    openers.set(tabId, sourceTabId);
    report(tabId);
    if (!isUsed(sourceTabId)) return;
    sendBehind(tabId, sourceTabId).catch((error) => note(`A tab that a page opened could not be moved behind: ${textOf(error)}`));
  });
  chrome.tabs.onRemoved.addListener((tabId) => openers.delete(tabId));
}

/**
 * Restore the active tab and the focused window, unless the opener itself was active.
 * @param {number} tabId
 * @param {number} sourceTabId
 */
async function sendBehind(tabId, sourceTabId) {
  const [tab, source] = await Promise.all([chrome.tabs.get(tabId), chrome.tabs.get(sourceTabId)]);
  const before = tab.openerTabId;
  const covers = tab.active && before !== undefined && before !== sourceTabId;
  if (covers) await chrome.tabs.update(before, { active: true });
  const visible = tab.windowId === source.windowId ? !covers : source.active;
  await restoreFocusAfterPopup(tab.windowId, (focused) => visible && focused === source.windowId);
}
