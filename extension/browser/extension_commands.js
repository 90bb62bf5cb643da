/**
 * Commands on the extension itself: its log, and its open pages.
 */

import * as read from "../link/params.js";
import { commandMap } from "../link/rpc.js";
import { recentLog } from "../log.js";
import { explanation, headline } from "../panel/connection_text.js";
import { short } from "./lists.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {import("../link/rpc.js").Handler} Handler */
/** @typedef {import("../panel/connection_text.js").PanelState} PanelState */

/** @type {readonly ["info", "warning", "error"]} */
const LEVELS = ["info", "warning", "error"];

/** @param {Params} params */
function getLogs(params) {
  const [least, limit] = [read.oneOf(params, "level", LEVELS), read.optionalInteger(params, "limit", 1) ?? 100];
  const [source, since] = [read.optionalString(params, "source"), read.optionalTime(params, "since") ?? 0];
  const all = recentLog();
  const wanted = all.filter(
    (entry) =>
      LEVELS.indexOf(entry.level) >= LEVELS.indexOf(least) &&
      (source === undefined || entry.source === source) &&
      entry.time >= since,
  );
  const entries = wanted.slice(-limit).map((entry) => ({ ...entry, time: new Date(entry.time).toISOString() }));
  const sources = [...new Set(all.map((entry) => entry.source))];
  return { entries, sources, ...(wanted.length > limit ? { more: wanted.length - limit } : {}) };
}

/**
 * The commands, given the state that the panel shows.
 * @param {() => Promise<PanelState>} state
 * @returns {ReadonlyMap<string, Handler>}
 */
export function extensionCommands(state) {
  async function getPanels() {
    const kinds = /** @type {chrome.runtime.ContextType[]} */ (["POPUP", "SIDE_PANEL", "TAB"]);
    const [contexts, { link, tabs, debugged, lastError }] = await Promise.all([
      chrome.runtime.getContexts({ contextTypes: kinds }),
      state(),
    ]);
    // A page without a URL is still loading.
    const shown = contexts.filter(({ documentUrl }) => documentUrl);
    const open = shown.map(({ contextType, documentUrl, windowId, tabId }) => ({
      kind: contextType.toLowerCase(),
      page: short(documentUrl).replace(chrome.runtime.getURL(""), ""),
      windowId,
      ...(tabId < 0 ? {} : { tabId }),
    }));
    const shows = { headline: headline(link), explanation: explanation(link), tabs, debugged };
    return { open, shows: { ...shows, ...(lastError === null ? {} : { lastError }) } };
  }

  return commandMap({ getLogs, getPanels });
}
