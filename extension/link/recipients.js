/**
 * The recipients of what the extension reports: the hub on this computer, and agents over a relay.
 *
 * Owns which recipient gets which message. The local hub gets notifications and requests; over a relay there are only
 * notifications. Messages about one call go to where the call came from: ids of calls over a relay are "conn-…:…".
 */

/** @typedef {Record<string, unknown>} Params */
/** @typedef {import("./messages.js").FromExtension} FromExtension */
/**
 * How the parts of the extension report: each message has the parameters that src/tabhub/wire declares.
 * @typedef {{ notify: <M extends keyof FromExtension>(method: M, params: FromExtension[M]) => boolean, request: <M extends keyof FromExtension>(method: M, params: FromExtension[M]) => Promise<unknown> }} Hub
 */
/** @typedef {{ notify: (method: string, params: Params) => boolean, request: (method: string, params: Params) => Promise<unknown> }} Member */

export const DIRECT = "hub";
export const RELAY = "relay";
/** Notifications that go only to the local hub if it is connected. */
const LOCAL_ONLY = ["plugin.log"];

/**
 * Who sent a request: the local hub, or one connection of a relay.
 * @param {unknown} id
 */
export function ownerOf(id) {
  return typeof id === "string" && id.startsWith("conn-") ? id.slice(0, id.indexOf(":") >>> 0) : DIRECT;
}

export class Hubs {
  /** @type {Member | null} */
  direct = null;
  /** @type {Member | null} */
  relay = null;
  #ask;

  /** @param {(question: Params) => Promise<unknown>} ask asks the person at this browser on behalf of a page */
  constructor(ask) {
    this.#ask = ask;
  }

  get any() {
    return this.direct !== null || this.relay !== null;
  }

  /**
   * @template {keyof FromExtension} M
   * @param {M} method
   * @param {FromExtension[M]} params
   */
  notify(method, params) {
    if (method === "tool.progress") return this.#of(idIn(params, "dispatchId"))?.notify(method, params) ?? false;
    const sent = this.direct?.notify(method, params) ?? false;
    if (sent && LOCAL_ONLY.includes(method)) return sent;
    return (this.relay?.notify(method, params) ?? false) || sent;
  }

  /**
   * @template {keyof FromExtension} M
   * @param {readonly string[]} owners
   * @param {M} method
   * @param {FromExtension[M]} params
   * @param {() => FromExtension[M]} redacted the parameters as they are sent over a relay
   */
  notifyOwners(owners, method, params, redacted) {
    if (owners.includes(DIRECT)) this.direct?.notify(method, params);
    if (owners.some((owner) => owner !== DIRECT)) this.relay?.notify(method, redacted());
  }

  /**
   * @template {keyof FromExtension} M
   * @param {M} method
   * @param {FromExtension[M]} params
   * @returns {Promise<unknown>}
   */
  request(method, params) {
    if (method === "browser/elicitConfirmation" && ownerOf(idIn(params, "callId")) !== DIRECT) return this.#ask(params);
    if (method === "browser/elicitConfirmation") {
      return this.direct?.request(method, params) ?? Promise.reject(new Error("The hub is not connected."));
    }
    this.relay?.notify(method, params);
    return this.direct?.request(method, params) ?? Promise.resolve({});
  }

  /** @param {unknown} id of a call */
  #of(id) {
    return ownerOf(id) === DIRECT ? this.direct : this.relay;
  }
}

/**
 * @param {Params} params
 * @param {string} name
 */
function idIn(params, name) {
  return params[name];
}
