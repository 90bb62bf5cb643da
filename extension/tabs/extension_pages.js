/**
 * Keeps agents out of the extension's own pages, where the person decides about permissions.
 *
 * Owns which commands would navigate a tab there, or leave a script that runs in the next page: in a page of the
 * extension it would run with the extension's privileges.
 */

import { FAILED, RpcError } from "../link/rpc.js";
import { ownPage } from "./errors.js";

/** @typedef {{ method: string, params: Record<string, unknown> }} Command */

const OWN = chrome.runtime.getURL("");
/** An extension's URL, also after other schemes (`view-source:`). */
const EXTENSION_URL = /^(?:[a-z-]+:\s*)*chrome-extension:/i;
const NAVIGATING = ["Page.navigate", "Target.createTarget"];
const PERSISTENT = ["Page.addScriptToEvaluateOnNewDocument", "Page.addScriptToEvaluateOnLoad", "Debugger.setBreakpointByUrl"];

/** @param {unknown} url */
export function isOwn(url) {
  return typeof url === "string" && url.startsWith(OWN);
}

/**
 * Refuse commands that lead into the extension's pages, now or later.
 * @param {number} tabId
 * @param {readonly Command[]} commands
 * @param {boolean} inChild whether they are for a frame or worker in another process, which never becomes a page of the extension
 */
export function refuseOwnPages(tabId, commands, inChild) {
  for (const { method, params } of commands) {
    if (NAVIGATING.includes(method) && EXTENSION_URL.test(URL.parse(String(params["url"]))?.href ?? "")) {
      throw ownPage(tabId, "would show");
    }
    if (!inChild && (PERSISTENT.includes(method) || params["scriptToEvaluateOnLoad"] !== undefined)) {
      throw new RpcError(FAILED, `${method} is refused: the script would also run in pages without permission.`);
    }
  }
}

/**
 * Whether the history of a debugged tab contains a page of the extension.
 * @param {number} tabId
 */
export async function couldShowOwn(tabId) {
  const history = /** @type {{ entries: { url: string }[] }} */ (
    await chrome.debugger.sendCommand({ tabId }, "Page.getNavigationHistory")
  );
  return history.entries.some(({ url }) => isOwn(url));
}
