/**
 * Tabs that pages open: where they come from, and that they do not push themselves in front of the person.
 *
 * Of a new tab the browser says that it belongs to the one in front, whichever page opened it; its navigation events
 * know better. A page that an agent uses in the background may open a tab, but not over what the person looks at.
 */

import { textOf } from "../link/rpc.js";
import { giveFocusBack } from "./focus.js";

/** By tab, the tab whose page opened it. @type {Map<number, number>} */
const openers = new Map();

/**
 * The tab that a tab was opened from.
 * @param {chrome.tabs.Tab} tab
 */
export function openerOf(tab) {
  return (tab.id === undefined ? undefined : openers.get(tab.id)) ?? tab.openerTabId;
}

/**
 * Listen to the browser; call this while the worker starts.
 * @param {object} parts
 * @param {(tabId: number) => boolean} parts.used whether an agent uses a tab
 * @param {(tabId: number) => void} parts.tell
 * @param {(message: string) => void} parts.note
 */
export function watchPopups({ used, tell, note }) {
  chrome.webNavigation.onCreatedNavigationTarget.addListener(({ sourceTabId, tabId }) => {
    openers.set(tabId, sourceTabId);
    tell(tabId);
    if (!used(sourceTabId)) return;
    stepBack(tabId, sourceTabId).catch((error) => note(`A tab that a page opened stays in front: ${textOf(error)}`));
  });
  chrome.tabs.onRemoved.addListener((tabId) => openers.delete(tabId));
}

/**
 * Bring back what was in front, in its window and among the windows, unless the page that opened the tab was there itself.
 * @param {number} tabId
 * @param {number} sourceTabId
 */
async function stepBack(tabId, sourceTabId) {
  const [tab, source] = await Promise.all([chrome.tabs.get(tabId), chrome.tabs.get(sourceTabId)]);
  const before = tab.openerTabId;
  const covers = tab.active && before !== undefined && before !== sourceTabId;
  if (covers) await chrome.tabs.update(before, { active: true });
  const seen = tab.windowId === source.windowId ? !covers : source.active;
  await giveFocusBack(tab.windowId, (focused) => seen && focused === source.windowId);
}
