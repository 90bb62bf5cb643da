/**
 * What the browser says when it refuses, as the error the hub knows.
 */

import { FAILED, RpcError, TAB_NOT_FOUND, textOf } from "../link/rpc.js";

/**
 * The error for a tab that is not there (any more).
 * @param {number} tabId
 * @param {string} [why]
 */
export function noTab(tabId, why = "It may have been closed.") {
  return new RpcError(TAB_NOT_FOUND, `No tab with id ${tabId}. ${why}`);
}

/**
 * The error for a tab that shows a page of the extension's own, or would.
 * @param {number} tabId
 * @param {string} [what] it does
 */
export function ownPage(tabId, what = "shows") {
  return new RpcError(FAILED, `Tab ${tabId} ${what} Tabhub's own panel. The panel is the person's alone: use another tab.`);
}

/**
 * An error of the browser's own, sorted into those the hub tells apart.
 * @param {unknown} error
 * @param {number} tabId
 */
export function failure(error, tabId) {
  if (error instanceof RpcError) return error;
  const text = textOf(error);
  if (/^No tab with (given )?id/.test(text)) return noTab(tabId);
  return new RpcError(FAILED, text);
}

/**
 * The browser gives a protocol error as JSON text; its message is what is worth telling.
 * @param {unknown} error
 */
export function cdpText(error) {
  const text = textOf(error);
  try {
    const { message, data } = JSON.parse(text);
    return typeof message === "string" ? message + (typeof data === "string" ? `: ${data}` : "") : text;
  } catch {
    return text;
  }
}
