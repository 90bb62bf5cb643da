/**
 * Which tabs are ready for which plugin: closed, unavailable or ready, by polling the adapters.
 *
 * Owns the polling (often at first, seldom later, since a ready tab may become unready) and what was reported to the hub.
 * Simultaneous changes are reported together.
 */

/** @typedef {{ state: "closed" | "unavailable" | "ready", tabs: { tabId: number, ready: boolean }[] }} State */
/** @typedef {{ ready: boolean, wait: number, checks: number, timer: ReturnType<typeof setTimeout> | undefined }} Watch */
/** @typedef {(plugin: string, state: State) => Promise<unknown>} Recipient */

const FIRST_WAIT = 200;
const MAX_WAIT = 30_000;
const COALESCE_MS = 30;

export class Readiness {
  /** @type {Map<string, Map<number, Watch>>} */
  #plugins = new Map();
  /** The last report of each plugin. @type {Map<string, string>} */
  #reported = new Map();
  /** @type {Recipient | null} */
  #recipient = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #isReady;
  #note;

  /**
   * @param {(tabId: number, plugin: string) => Promise<boolean>} isReady
   * @param {(message: string) => void} note
   */
  constructor(isReady, note) {
    this.#isReady = isReady;
    this.#note = note;
  }

  /**
   * Report to a recipient from now on; null when the hub is disconnected.
   * @param {Recipient | null} recipient
   */
  reportTo(recipient) {
    this.#recipient = recipient;
    this.#reported.clear();
    this.#reportSoon();
  }

  /** The state of every plugin. @returns {Record<string, State>} */
  states() {
    return Object.fromEntries([...this.#plugins.keys()].map((plugin) => [plugin, this.#state(plugin)]));
  }

  /**
   * Set the plugins that exist.
   * @param {readonly string[]} names
   */
  setPlugins(names) {
    for (const [plugin, tabs] of [...this.#plugins]) {
      if (names.includes(plugin)) continue;
      for (const tabId of [...tabs.keys()]) this.remove(plugin, tabId);
      this.#plugins.delete(plugin);
      this.#reported.delete(plugin);
    }
    for (const plugin of names) if (!this.#plugins.has(plugin)) this.#plugins.set(plugin, new Map());
    this.#reportSoon();
  }

  /**
   * The tabs that are watched for a plugin.
   * @param {string} plugin
   */
  tabs(plugin) {
    return [...(this.#plugins.get(plugin)?.keys() ?? [])];
  }

  /**
   * Check a tab with a page for a plugin. Without the adapter it is not ready.
   * @param {string} plugin
   * @param {number} tabId
   * @param {boolean} installed whether the adapter is installed
   */
  async check(plugin, tabId, installed) {
    const tabs = this.#plugins.get(plugin);
    if (!tabs) return;
    const watch = tabs.get(tabId) ?? { ready: false, wait: FIRST_WAIT, checks: 0, timer: undefined };
    if (!tabs.has(tabId)) this.#reportSoon();
    tabs.set(tabId, watch);
    clearTimeout(watch.timer);
    const check = ++watch.checks;
    const ready = installed && (await this.#isReady(tabId, plugin));
    // Checked again in the meantime, or the page was left.
    if (tabs.get(tabId) !== watch || watch.checks !== check) return;
    if (watch.ready !== ready) this.#reportSoon();
    // A tab that becomes unready is often ready again soon, after a login or reload.
    watch.wait = ready ? MAX_WAIT : watch.ready ? FIRST_WAIT : Math.min(watch.wait * 2, MAX_WAIT);
    watch.ready = ready;
    clearTimeout(watch.timer);
    if (installed) watch.timer = setTimeout(() => void this.check(plugin, tabId, true), watch.wait);
  }

  /**
   * A tab no longer shows a page for a plugin.
   * @param {string} plugin
   * @param {number} tabId
   */
  remove(plugin, tabId) {
    const watch = this.#plugins.get(plugin)?.get(tabId);
    if (!watch) return;
    clearTimeout(watch.timer);
    this.#plugins.get(plugin)?.delete(tabId);
    this.#reportSoon();
  }

  /**
   * @param {string} plugin
   * @returns {State}
   */
  #state(plugin) {
    const tabs = [...(this.#plugins.get(plugin) ?? [])].map(([tabId, { ready }]) => ({ tabId, ready }));
    if (tabs.length === 0) return { state: "closed", tabs };
    return { state: tabs.some(({ ready }) => ready) ? "ready" : "unavailable", tabs };
  }

  #reportSoon() {
    if (!this.#recipient || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#report();
    }, COALESCE_MS);
  }

  #report() {
    const recipient = this.#recipient;
    if (!recipient) return;
    for (const [plugin, state] of Object.entries(this.states())) {
      const written = JSON.stringify(state);
      if (this.#reported.get(plugin) === written) continue;
      this.#reported.set(plugin, written);
      recipient(plugin, state).catch((error) => {
        // A reconnected hub gets everything again.
        if (recipient === this.#recipient) this.#note(`The state of ${plugin} could not be reported to the hub: ${error.message}`);
      });
    }
  }
}
