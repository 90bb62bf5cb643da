/**
 * Redacts CDP events for agents over a relay: credentials in a page's network traffic are removed.
 *
 * Owns which parts of an event are secret. An agent that listens on one site receives requests to the next site before
 * the tab is there, and all agents of a user receive the same events.
 */

/** @typedef {Record<string, unknown>} CdpObject */

const SECRET = /^(?:cookie|set-cookie|authorization|proxy-authorization)$/i;
const HEADERS = ["headers", "requestHeaders"];
/** Fields with the same headers as text or as lists. */
const HEADER_COPIES = ["headersText", "requestHeadersText", "associatedCookies", "blockedCookies", "exemptedCookies"];
/** Fields of an event that describe a request or response. */
const PARTS = ["request", "response", "redirectResponse"];

/**
 * The event without secrets.
 * @template {{ method: string, params: CdpObject }} Event
 * @param {Event} event
 * @returns {Event}
 */
export function redact(event) {
  if (!/^(?:Network|Fetch)\./.test(event.method)) return event;
  const params = redactFields(event.params);
  for (const part of PARTS) {
    const described = params[part];
    if (typeof described === "object" && described !== null) params[part] = redactFields(/** @type {CdpObject} */ (described));
  }
  return { ...event, params };
}

/** @param {CdpObject} described */
function redactFields(described) {
  const redacted = { ...described };
  for (const name of HEADERS) {
    const headers = redacted[name];
    if (typeof headers !== "object" || headers === null) continue;
    redacted[name] = Object.fromEntries(Object.entries(headers).filter(([header]) => !SECRET.test(header)));
  }
  for (const name of HEADER_COPIES) if (name in redacted) redacted[name] = Array.isArray(redacted[name]) ? [] : "";
  return redacted;
}
