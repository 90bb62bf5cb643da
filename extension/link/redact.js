/**
 * What agents over a relay hear of a page's traffic: all but what would open the accounts in it.
 *
 * Owns which parts of an event of the DevTools Protocol are secrets. Who listens in one site is told of the requests that
 * lead to the next before the tab is there, and what one agent hears all agents of its user hear.
 */

/** @typedef {Record<string, unknown>} CdpObject */

const SECRET = /^(?:cookie|set-cookie|authorization|proxy-authorization)$/i;
const HEADERS = ["headers", "requestHeaders"];
/** The same headers once more, as text or as lists. */
const AGAIN = ["headersText", "requestHeadersText", "associatedCookies", "blockedCookies", "exemptedCookies"];
/** Where in an event a request or an answer is described. */
const PARTS = ["request", "response", "redirectResponse"];

/**
 * An event without secrets.
 * @template {{ method: string, params: CdpObject }} Event
 * @param {Event} event
 * @returns {Event}
 */
export function veiled(event) {
  if (!/^(?:Network|Fetch)\./.test(event.method)) return event;
  const params = without(event.params);
  for (const part of PARTS) {
    const described = params[part];
    if (typeof described === "object" && described !== null) params[part] = without(/** @type {CdpObject} */ (described));
  }
  return { ...event, params };
}

/** @param {CdpObject} described */
function without(described) {
  const left = { ...described };
  for (const name of HEADERS) {
    const headers = left[name];
    if (typeof headers !== "object" || headers === null) continue;
    left[name] = Object.fromEntries(Object.entries(headers).filter(([header]) => !SECRET.test(header)));
  }
  for (const name of AGAIN) if (name in left) left[name] = Array.isArray(left[name]) ? [] : "";
  return left;
}
