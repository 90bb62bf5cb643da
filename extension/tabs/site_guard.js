/**
 * What keeps a command in the site it was allowed for, though its tab goes elsewhere meanwhile.
 *
 * Owns the look at the tab before a command is sent, and the words put before a script. A page can keep its thread busy
 * while its tab moves on: then what was sent to it waits, and the browser runs it in the page that comes next. Only the
 * script itself can see where it runs.
 */

import { FAILED, RpcError } from "../link/rpc.js";
import { originOf } from "../link/command_sites.js";

/** @typedef {{ method: string, params: Record<string, unknown> }} Command */

const GONE = "The tab went to another site before the command ran. Look where it is, and repeat the command if it is still wanted.";
const STRICT = /^\s*(?:"use strict"|'use strict')\s*;/;

/**
 * Refuse a command if its tab shows another site by now; gives the address it shows.
 * @param {number} tabId
 * @param {string} site
 */
export async function stillAt(tabId, site) {
  const tab = await chrome.tabs.get(tabId).catch(() => null);
  const url = tab?.url || tab?.pendingUrl || "";
  // A tab that is gone is refused by the command itself.
  if (tab && originOf(url) !== site) throw new RpcError(FAILED, GONE);
  return url;
}

/**
 * A command as it is sent for one site alone.
 * @param {Command} command
 * @param {string} site
 * @param {string} url of the page
 * @returns {Command}
 */
export function bound({ method, params }, site, url) {
  const { expression, functionDeclaration, objectId, urls } = params;
  if (method === "Network.getCookies" && urls === undefined) return { method, params: { ...params, urls: [url] } };
  if (method === "Runtime.evaluate" && typeof expression === "string") {
    const strict = STRICT.exec(expression)?.[0] ?? "";
    return { method, params: { ...params, expression: strict + look(site) + expression.slice(strict.length) } };
  }
  // An object is of one page, and of no other.
  if (method === "Runtime.callFunctionOn" && typeof functionDeclaration === "string" && objectId === undefined) {
    const wrapped = `function (...given) { ${look(site)} return (${functionDeclaration}\n).apply(this, given); }`;
    return { method, params: { ...params, functionDeclaration: wrapped } };
  }
  return { method, params };
}

/**
 * Words for a script that end it in a page of another site; a frame belongs to the page it is in. None of what they look
 * at can be made to say something else by a page.
 * @param {string} site
 */
function look(site) {
  const origins = JSON.stringify(/^[a-z-]+:$/.test(site) ? ["null", `${site}//`] : [site]);
  const top = "location.ancestorOrigins?.length ? location.ancestorOrigins[location.ancestorOrigins.length - 1] : location.origin";
  return `if (!${origins}.includes(${top})) throw new Error(${JSON.stringify(GONE)});`;
}
