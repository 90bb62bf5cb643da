/**
 * Commands on history, and on closed tabs and windows that can be restored.
 */

import * as read from "../link/params.js";
import { FAILED, RpcError, commandMap, textOf } from "../link/rpc.js";
import { reportTab } from "../tabs/state.js";
import { cut, moment, short } from "./lists.js";

/** @typedef {import("../link/rpc.js").Params} Params */

const MOST = 1_000;
const SOME = 100;
/** The browser's own limit. */
const MOST_CLOSED = 25;

/** @param {Params} params */
async function searchHistory(params) {
  const text = read.optionalText(params, "query", 1_000) ?? "";
  const most = Math.min(read.optionalInteger(params, "maxResults", 1) ?? SOME, MOST);
  // Without a start time the browser searches one day only.
  const startTime = read.optionalTime(params, "startTime") ?? 0;
  const times = read.withoutUndefined({ startTime, endTime: read.optionalTime(params, "endTime") });
  const found = await chrome.history.search({ text, maxResults: most + 1, ...times });
  const entries = found.map(({ url, title, lastVisitTime, visitCount, typedCount }) => ({
    url: short(url),
    title: short(title),
    ...moment("lastVisitTime", lastVisitTime),
    visitCount: visitCount ?? 0,
    typedCount: typedCount ?? 0,
  }));
  return { entries: entries.slice(0, most), ...(entries.length > most ? { cut: true } : {}) };
}

/** @param {Params} params */
async function getVisits(params) {
  const visits = await chrome.history.getVisits({ url: read.requiredString(params, "url") });
  const newest = [...visits].sort((a, b) => (b.visitTime ?? 0) - (a.visitTime ?? 0));
  const listed = newest.map(({ visitId, visitTime, transition, referringVisitId }) => ({
    visitId,
    ...moment("visitTime", visitTime),
    transition,
    ...(referringVisitId === "0" ? {} : { referringVisitId }),
  }));
  return cut("visits", listed, MOST);
}

/**
 * @param {chrome.sessions.Session} session
 * @returns {import("../link/messages.js").ClosedSession}
 */
function closedInfo({ lastModified, tab, window }) {
  const closed = { sessionId: tab?.sessionId ?? window?.sessionId ?? "", ...moment("closedAt", lastModified * 1000) };
  if (tab) return { ...closed, kind: "tab", url: short(tab.url), title: short(tab.title) };
  const tabs = window?.tabs ?? [];
  const listed = tabs.slice(0, 20).map(({ url, title }) => ({ url: short(url), title: short(title) }));
  return { ...closed, kind: "window", tabCount: tabs.length, tabs: listed };
}

/** @param {Params} params */
async function getRecentlyClosed(params) {
  const maxResults = Math.min(read.optionalInteger(params, "maxResults", 1) ?? MOST_CLOSED, MOST_CLOSED);
  const closed = await chrome.sessions.getRecentlyClosed({ maxResults });
  return { closed: closed.map(closedInfo) };
}

/**
 * @param {Params} params
 * @returns {Promise<import("../link/messages.js").Restored>}
 */
async function restoreSession(params) {
  const sessionId = read.requiredString(params, "sessionId");
  const [fronts, windows] = await Promise.all([chrome.tabs.query({ active: true }), chrome.windows.getAll()]);
  let restored;
  try {
    restored = await chrome.sessions.restore(sessionId);
  } catch (error) {
    throw new RpcError(FAILED, textOf(error));
  }
  await putBack(fronts, windows, restored);
  const tabs = restored.tab ? [restored.tab] : (restored.window?.tabs ?? []);
  const now = await Promise.all(tabs.map((tab) => chrome.tabs.get(tab.id ?? chrome.tabs.TAB_ID_NONE)));
  return { kind: restored.tab ? "tab" : "window", tabs: now.slice(0, MOST).map(reportTab) };
}

/**
 * Send a restored tab or window to the back: the browser raises it.
 * @param {chrome.tabs.Tab[]} fronts
 * @param {chrome.windows.Window[]} windows
 * @param {chrome.sessions.Session} restored
 */
async function putBack(fronts, windows, { tab, window }) {
  const before = tab && fronts.find(({ windowId }) => windowId === tab.windowId)?.id;
  if (before !== undefined) await chrome.tabs.update(before, { active: true });
  const focused = windows.find((each) => each.focused)?.id;
  const focusTaken = window !== undefined || (tab !== undefined && tab.windowId !== focused);
  if (focusTaken && focused !== undefined) await chrome.windows.update(focused, { focused: true });
}

export const historyCommands = commandMap({ searchHistory, getVisits, getRecentlyClosed, restoreSession });
