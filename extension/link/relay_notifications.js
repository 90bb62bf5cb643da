/**
 * Notifications from agents over a relay. Settings, badges and panel events are accepted only from the local hub.
 * Plugins are accepted only without a local hub, and if the person allows their code in pages.
 */

/** @typedef {Record<string, unknown>} Params */
/** @typedef {(params: Params) => void} Notified */

/**
 * @param {object} wiring
 * @param {[string, Notified][]} wiring.plugins
 * @param {() => boolean} wiring.direct whether the local hub is connected
 * @param {() => Promise<boolean>} wiring.may
 * @param {(message: string) => void} wiring.note
 * @returns {Map<string, Notified>}
 */
export function relayNotifications({ plugins, direct, may, note }) {
  let accepted = false;

  /**
   * @param {Notified} receive
   * @param {Params} params
   */
  async function plugin(receive, params) {
    const none = Array.isArray(params["plugins"]) && params["plugins"].length === 0;
    if (direct() || (none && !accepted)) return;
    if (!(await may())) return note("Plugins of an agent over the relay were refused: they are not allowed.");
    if (direct()) return;
    accepted = true;
    receive(params);
  }

  /** @type {[string, Notified][]} */
  const ignored = ["pages.settings", "agents.marks", "plugins.changed"].map((method) => [method, () => {}]);
  return new Map([
    ...ignored,
    ...plugins.map(([method, receive]) => /** @type {[string, Notified]} */ ([method, (params) => void plugin(receive, params)])),
  ]);
}
