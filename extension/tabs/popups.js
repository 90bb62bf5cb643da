/**
 * Tabs that pages open: their openers, and keeping them behind the person's tab.
 *
 * The browser reports the active tab as the opener of a new tab, whichever page opened it; navigation events have the
 * real one. A page that an agent uses in the background may open a tab, but not in front of the person's tab.
 */

import { textOf } from "../link/rpc.js";
import { originOf } from "../link/command_sites.js";
import { restoreFocusAfterPopup } from "./focus.js";

/** The opener by tab; with its origin, if a frame of another site opened it. @type {Map<number, { tabId: number, origin?: string }>} */
const openers = new Map();

/**
 * The opener of a tab.
 * @param {chrome.tabs.Tab} tab
 * @returns {{ tabId?: number | undefined, origin?: string }}
 */
export function openerOf(tab) {
  return (tab.id === undefined ? undefined : openers.get(tab.id)) ?? { tabId: tab.openerTabId };
}

/**
 * Listen for events; call this while the worker starts.
 * @param {object} parts
 * @param {(tabId: number) => boolean} parts.isUsed whether an agent uses a tab
 * @param {(tabId: number) => void} parts.report
 * @param {(message: string) => void} parts.note
 */
export function watchPopups({ isUsed, report, note }) {
  chrome.webNavigation.onCreatedNavigationTarget.addListener(({ sourceTabId, sourceFrameId, tabId }) => {
    openers.set(tabId, { tabId: sourceTabId });
    report(tabId);
    // What a frame writes into its popup is not of the page around the frame.
    if (sourceFrameId !== 0) void noteFrame(tabId, sourceTabId, sourceFrameId).then(() => report(tabId));
    if (!isUsed(sourceTabId)) return;
    sendBehind(tabId, sourceTabId).catch((error) => note(`A tab that a page opened could not be moved behind: ${textOf(error)}`));
  });
  chrome.tabs.onRemoved.addListener((tabId) => openers.delete(tabId));
}

/**
 * @param {number} tabId
 * @param {number} sourceTabId
 * @param {number} frameId
 */
async function noteFrame(tabId, sourceTabId, frameId) {
  const frame = await chrome.webNavigation.getFrame({ tabId: sourceTabId, frameId }).catch(() => null);
  if (frame && openers.has(tabId)) openers.set(tabId, { tabId: sourceTabId, origin: originOf(frame.url) });
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
