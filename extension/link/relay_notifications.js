/**
 * What agents over a relay may tell this browser. Settings, marks and panel matters are the hub's on this computer
 * alone; plugins are taken only where there is no such hub, and the person agrees to code of theirs in pages.
 */

/** @typedef {Record<string, unknown>} Params */
/** @typedef {(params: Params) => void} Notified */

/**
 * @param {object} wiring
 * @param {[string, Notified][]} wiring.plugins
 * @param {() => boolean} wiring.direct whether a hub on this computer is connected
 * @param {() => Promise<boolean>} wiring.may
 * @param {(message: string) => void} wiring.note
 * @returns {Map<string, Notified>}
 */
export function relayNotifications({ plugins, direct, may, note }) {
  let given = false;

  /**
   * @param {Notified} take
   * @param {Params} params
   */
  async function plugin(take, params) {
    const none = Array.isArray(params["plugins"]) && params["plugins"].length === 0;
    if (direct() || (none && !given)) return;
    if (!(await may())) return note("Plugins of an agent over the relay were not taken: they are not allowed.");
    if (direct()) return;
    given = true;
    take(params);
  }

  /** @type {[string, Notified][]} */
  const ignored = ["pages.settings", "agents.marks", "plugins.changed"].map((method) => [method, () => {}]);
  return new Map([
    ...ignored,
    ...plugins.map(([method, take]) => /** @type {[string, Notified]} */ ([method, (params) => void plugin(take, params)])),
  ]);
}
