/**
 * What keeps agents out of the extension's own pages, where a person says what may be done.
 *
 * Owns which commands would lead a tab there, or leave something in it that runs in whatever page comes next: in a page
 * of ours that would be run with all that the extension may do.
 */

import { FAILED, RpcError } from "../link/rpc.js";
import { ownPage } from "./errors.js";

/** @typedef {{ method: string, params: Record<string, unknown> }} Command */

const OWN = chrome.runtime.getURL("");
/** An extension's address, also behind other schemes (`view-source:`). */
const TO_EXTENSION = /^(?:[a-z-]+:\s*)*chrome-extension:/i;
const LEADING = ["Page.navigate", "Target.createTarget"];
const LASTING = ["Page.addScriptToEvaluateOnNewDocument", "Page.addScriptToEvaluateOnLoad", "Debugger.setBreakpointByUrl"];

/** @param {unknown} url */
export function isOwn(url) {
  return typeof url === "string" && url.startsWith(OWN);
}

/**
 * Refuse commands that lead into our pages, now or later.
 * @param {number} tabId
 * @param {readonly Command[]} commands
 * @param {boolean} inChild whether they are for a frame or worker in another process, which never becomes a page of ours
 */
export function keepOut(tabId, commands, inChild) {
  for (const { method, params } of commands) {
    if (LEADING.includes(method) && TO_EXTENSION.test(URL.parse(String(params["url"]))?.href ?? "")) {
      throw ownPage(tabId, "would show");
    }
    if (!inChild && (LASTING.includes(method) || params["scriptToEvaluateOnLoad"] !== undefined)) {
      throw new RpcError(FAILED, `${method} is not sent: the script would also run in pages that nobody was asked about.`);
    }
  }
}

/**
 * Whether a step back or forth in its history would take a debugged tab to a page of ours.
 * @param {number} tabId
 */
export async function couldShowOwn(tabId) {
  const history = /** @type {{ entries: { url: string }[] }} */ (
    await chrome.debugger.sendCommand({ tabId }, "Page.getNavigationHistory")
  );
  return history.entries.some(({ url }) => isOwn(url));
}
