/**
 * Commands that follow a script without another round trip to the hub: they are sent if a script's result says so.
 */

import { cdpText } from "./errors.js";
import { keepFocus } from "./focus.js";

/** @typedef {Record<string, unknown>} CdpObject */
/** @typedef {{ method: string, params: CdpObject }} Command */

/**
 * Whether the result of a script says that the chained commands are to be sent.
 * @param {CdpObject} found
 */
export function wantsToProceed({ result }) {
  const value = /** @type {{ value?: unknown } | undefined} */ (result)?.value;
  return typeof value === "object" && value !== null && /** @type {CdpObject} */ (value)["go"] === true;
}

/**
 * Send the chained commands in order. Returns the script's result with the answer to the last one, or with the error: the
 * script itself has run in any case.
 * @param {chrome.debugger.DebuggerSession & { tabId: number }} session
 * @param {CdpObject} found
 * @param {readonly Command[]} follow
 * @param {Promise<unknown>} onSite rejects if they must not be sent
 */
export async function runChained(session, found, follow, onSite) {
  try {
    await onSite;
    keepFocus(session.tabId, follow);
    const sent = follow.map(({ method, params }) => chrome.debugger.sendCommand(session, method, params));
    return { ...found, followed: { result: (await Promise.all(sent)).at(-1) ?? {} } };
  } catch (error) {
    return { ...found, followed: { error: cdpText(error) } };
  }
}
