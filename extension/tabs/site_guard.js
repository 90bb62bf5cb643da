/**
 * Keeps a command on the site it was allowed for, although its tab may navigate in the meantime.
 *
 * Owns the check of the tab before a command is sent, and the check that is prepended to a script. A page can block its
 * thread while its tab navigates; then the browser runs a waiting script in the next page, and only the script itself can
 * see where it runs.
 */

import { FAILED, RpcError } from "../link/rpc.js";
import { originOf } from "../link/command_sites.js";

/** @typedef {{ method: string, params: Record<string, unknown> }} Command */

const NAVIGATED = "The tab navigated to another site before the command ran. Check its URL, and repeat the command if it is still needed.";
const STRICT = /^\s*(?:"use strict"|'use strict')\s*;/;

/** Whether a URL is of a site. @param {string} url @param {string} site */
export function isOn(url, site) {
  return originOf(url) === site;
}

/** A tab shows another site than a command was allowed for. */
export function navigated() {
  return new RpcError(FAILED, NAVIGATED);
}

/**
 * A command, restricted to one site.
 * @param {Command} command
 * @param {string} site
 * @param {string} url of the page
 * @returns {Command}
 */
export function restrictToSite({ method, params }, site, url) {
  const { expression, functionDeclaration, objectId, urls } = params;
  if (method === "Network.getCookies" && urls === undefined) return { method, params: { ...params, urls: [url] } };
  if (method === "Runtime.evaluate" && typeof expression === "string") {
    const strict = STRICT.exec(expression)?.[0] ?? "";
    return { method, params: { ...params, expression: strict + siteCheck(site) + expression.slice(strict.length) } };
  }
  // An object id is valid in one page only.
  if (method === "Runtime.callFunctionOn" && typeof functionDeclaration === "string" && objectId === undefined) {
    const wrapped = `function (...given) { ${siteCheck(site)} return (${functionDeclaration}\n).apply(this, given); }`;
    return { method, params: { ...params, functionDeclaration: wrapped } };
  }
  return { method, params };
}

/**
 * Code that ends a script in a page of another site; a frame belongs to its top page. A page cannot change any of the
 * values that it reads.
 * @param {string} site
 */
function siteCheck(site) {
  const origins = JSON.stringify(/^[a-z-]+:$/.test(site) ? ["null", `${site}//`] : [site]);
  const top = "location.ancestorOrigins?.length ? location.ancestorOrigins[location.ancestorOrigins.length - 1] : location.origin";
  // An error page of the browser belongs to no site.
  return `if (location.protocol !== "chrome-error:" && !${origins}.includes(${top})) throw new Error(${JSON.stringify(NAVIGATED)});`;
}
