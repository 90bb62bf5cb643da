/**
 * The recipients of what the extension reports: the hub on this computer, and agents over a relay.
 *
 * Owns which recipient gets which message. The local hub gets notifications and requests; over a relay there are only
 * notifications. What concerns one agent (a call, a subscription, its plugins) goes to that agent alone: ids of calls over a
 * relay are "conn-…:…". What concerns the browser (tabs, tools of pages) goes to all.
 */

/** @typedef {Record<string, unknown>} Params */
/** @typedef {import("./messages.js").FromExtension} FromExtension */
/**
 * How the parts of the extension report: each message has the parameters that src/tabhub/wire declares.
 * @typedef {{ notify: <M extends keyof FromExtension>(method: M, params: FromExtension[M]) => boolean, request: <M extends keyof FromExtension>(method: M, params: FromExtension[M]) => Promise<unknown> }} Hub
 */
/** @typedef {{ notify: (method: string, params: Params, connectionId?: string) => boolean, request: (method: string, params: Params) => Promise<unknown> }} Member */

export const DIRECT = "hub";
export const RELAY = "relay";
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
  /** The connection whose plugins run; undefined for those of the local hub. @type {string | undefined} */
  pluginsOf;
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
    if (method === "tool.progress") return this.#notifyOne(ownerOf(idIn(params, "dispatchId")), method, params);
    if (method === "plugin.log") return this.#notifyOne(this.direct ? DIRECT : this.pluginsOf, method, params);
    const sent = this.direct?.notify(method, params) ?? false;
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
    const shown = owners.some((owner) => owner !== DIRECT) ? redacted() : params;
    for (const owner of owners) this.#notifyOne(owner, method, owner === DIRECT ? params : shown);
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
    if (method === "plugin.request") {
      // Over a relay there are no requests, and the agent there is not the one that has the plugin's settings.
      const direct = ownerOf(idIn(params, "dispatchId")) === DIRECT ? this.direct : null;
      return direct?.request(method, params) ?? Promise.reject(new Error("It needs a browser that is connected to the hub itself."));
    }
    this.relay?.notify(method, params);
    return this.direct?.request(method, params) ?? Promise.resolve({});
  }

  /**
   * @param {string | undefined} owner
   * @param {string} method
   * @param {Params} params
   */
  #notifyOne(owner, method, params) {
    if (owner === undefined) return false;
    return (owner === DIRECT ? this.direct?.notify(method, params) : this.relay?.notify(method, params, owner)) ?? false;
  }
}

/**
 * @param {Params} params
 * @param {string} name
 */
function idIn(params, name) {
  return params[name];
}
