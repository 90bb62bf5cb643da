/**
 * What follows a script without another way to the hub and back: commands that are sent as soon as it says so.
 */

import { cdpText } from "./errors.js";
import { keepFocus } from "./focus.js";

/** @typedef {Record<string, unknown>} CdpObject */
/** @typedef {{ method: string, params: CdpObject }} Command */

/**
 * Whether a script wants what follows it to be sent.
 * @param {CdpObject} found
 */
export function saysGo({ result }) {
  const value = /** @type {{ value?: unknown } | undefined} */ (result)?.value;
  return typeof value === "object" && value !== null && /** @type {CdpObject} */ (value)["go"] === true;
}

/**
 * Send what follows a script, in order, and give what the script gave with the answer of the last. A failure on the way
 * is told beside it: what the script did is done.
 * @param {chrome.debugger.DebuggerSession & { tabId: number }} session
 * @param {CdpObject} found
 * @param {readonly Command[]} follow
 */
export async function followed(session, found, follow) {
  keepFocus(session.tabId, follow);
  try {
    const sent = follow.map(({ method, params }) => chrome.debugger.sendCommand(session, method, params));
    return { ...found, followed: { result: (await Promise.all(sent)).at(-1) ?? {} } };
  } catch (error) {
    return { ...found, followed: { error: cdpText(error) } };
  }
}
