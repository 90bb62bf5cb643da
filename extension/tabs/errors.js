/**
 * Errors of the browser as errors of the hub's protocol.
 */

import { FAILED, RpcError, TAB_NOT_FOUND, textOf } from "../link/rpc.js";

/**
 * The error for a tab that does not exist.
 * @param {number} tabId
 * @param {string} [why]
 */
export function noTab(tabId, why = "It may have been closed.") {
  return new RpcError(TAB_NOT_FOUND, `No tab with id ${tabId}. ${why}`);
}

/**
 * The error for a tab that shows a page of the extension, or would.
 * @param {number} tabId
 * @param {string} [what] it does
 */
export function ownPage(tabId, what = "shows") {
  return new RpcError(FAILED, `Tab ${tabId} ${what} Tabhub's own panel, which agents cannot use. Use another tab.`);
}

/**
 * An error of the browser as one that the hub distinguishes.
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
 * The message of a CDP error, which the browser reports as JSON.
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
