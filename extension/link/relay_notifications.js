/**
 * Notifications from agents over a relay. Settings, badges and panel events are accepted only from the local hub.
 * Plugins are accepted only without a local hub, and if the person allows their code in pages.
 */

/** @typedef {Record<string, unknown>} Params */
/** @typedef {(params: Params) => void} Notified */
/** @typedef {(params: Params, from: string | undefined) => void} NotifiedFrom `from` is the connection of the agent */

/**
 * @param {object} wiring
 * @param {[string, Notified][]} wiring.plugins
 * @param {() => boolean} wiring.direct whether the local hub is connected
 * @param {(from: string | undefined) => Promise<boolean>} wiring.may
 * @param {(from: string | undefined) => void} wiring.accepted called when the plugins of an agent replace those before
 * @param {(message: string) => void} wiring.note
 * @returns {Map<string, NotifiedFrom>}
 */
export function relayNotifications({ plugins, direct, may, accepted, note }) {
  /** The agent whose plugins run. @type {string | undefined} */
  let owner;
  let any = false;

  /**
   * @param {Notified} receive
   * @param {Params} params
   * @param {string | undefined} from
   */
  async function plugin(receive, params, from) {
    const none = Array.isArray(params["plugins"]) && params["plugins"].length === 0;
    // An agent without plugins removes only its own.
    if (direct() || (none && !(any && from === owner))) return;
    if (!(await may(from))) return note("Plugins of an agent over the relay were refused: they are not allowed.");
    if (direct()) return;
    [any, owner] = [true, from];
    accepted(from);
    receive(params);
  }

  /** @type {[string, NotifiedFrom][]} */
  const ignored = ["pages.settings", "agents.marks", "plugins.changed"].map((method) => [method, () => {}]);
  return new Map([
    ...ignored,
    ...plugins.map(
      ([method, receive]) => /** @type {[string, NotifiedFrom]} */ ([method, (params, from) => void plugin(receive, params, from)]),
    ),
  ]);
}
