/**
 * Which tabs are ready for which plugin: closed, unavailable or ready, asked of the adapters again and again.
 *
 * Owns the asking (often at first, seldom later; what was ready may cease to be) and what the hub was told. A change is
 * told once however many there are at the same moment.
 */

/** @typedef {{ state: "closed" | "unavailable" | "ready", tabs: { tabId: number, ready: boolean }[] }} State */
/** @typedef {{ ready: boolean, wait: number, turn: number, timer: ReturnType<typeof setTimeout> | undefined }} Watch */
/** @typedef {(plugin: string, state: State) => Promise<unknown>} Teller */

const FIRST_WAIT = 200;
const LONGEST_WAIT = 30_000;
const COALESCE_MS = 30;

export class Readiness {
  /** @type {Map<string, Map<number, Watch>>} */
  #plugins = new Map();
  /** What the hub knows of each plugin. @type {Map<string, string>} */
  #told = new Map();
  /** @type {Teller | null} */
  #teller = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #ask;
  #note;

  /**
   * @param {(tabId: number, plugin: string) => Promise<boolean>} ask
   * @param {(message: string) => void} note
   */
  constructor(ask, note) {
    this.#ask = ask;
    this.#note = note;
  }

  /**
   * Tell someone from now on; null when there is no hub.
   * @param {Teller | null} teller
   */
  tellTo(teller) {
    this.#teller = teller;
    this.#told.clear();
    this.#soon();
  }

  /** The state of every plugin. @returns {Record<string, State>} */
  states() {
    return Object.fromEntries([...this.#plugins.keys()].map((plugin) => [plugin, this.#state(plugin)]));
  }

  /**
   * These are the plugins there are.
   * @param {readonly string[]} names
   */
  only(names) {
    for (const [plugin, tabs] of [...this.#plugins]) {
      if (names.includes(plugin)) continue;
      for (const tabId of [...tabs.keys()]) this.leave(plugin, tabId);
      this.#plugins.delete(plugin);
      this.#told.delete(plugin);
    }
    for (const plugin of names) if (!this.#plugins.has(plugin)) this.#plugins.set(plugin, new Map());
    this.#soon();
  }

  /**
   * The tabs that are watched for a plugin.
   * @param {string} plugin
   */
  tabs(plugin) {
    return [...(this.#plugins.get(plugin)?.keys() ?? [])];
  }

  /**
   * A tab shows a page for a plugin. It is asked at once when the adapter is there, and else counts as not ready.
   * @param {string} plugin
   * @param {number} tabId
   * @param {boolean} given whether the adapter is there
   */
  async look(plugin, tabId, given) {
    const tabs = this.#plugins.get(plugin);
    if (!tabs) return;
    const watch = tabs.get(tabId) ?? { ready: false, wait: FIRST_WAIT, turn: 0, timer: undefined };
    if (!tabs.has(tabId)) this.#soon();
    tabs.set(tabId, watch);
    clearTimeout(watch.timer);
    const turn = ++watch.turn;
    const ready = given && (await this.#ask(tabId, plugin));
    // Asked again in between, or of a page that was left.
    if (tabs.get(tabId) !== watch || watch.turn !== turn) return;
    if (watch.ready !== ready) this.#soon();
    // One that ceases to be ready is often ready again soon: logged in anew, or loaded.
    watch.wait = ready ? LONGEST_WAIT : watch.ready ? FIRST_WAIT : Math.min(watch.wait * 2, LONGEST_WAIT);
    watch.ready = ready;
    clearTimeout(watch.timer);
    if (given) watch.timer = setTimeout(() => void this.look(plugin, tabId, true), watch.wait);
  }

  /**
   * A tab is not a plugin's any more.
   * @param {string} plugin
   * @param {number} tabId
   */
  leave(plugin, tabId) {
    const watch = this.#plugins.get(plugin)?.get(tabId);
    if (!watch) return;
    clearTimeout(watch.timer);
    this.#plugins.get(plugin)?.delete(tabId);
    this.#soon();
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

  #soon() {
    if (!this.#teller || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#tell();
    }, COALESCE_MS);
  }

  #tell() {
    const teller = this.#teller;
    if (!teller) return;
    for (const [plugin, state] of Object.entries(this.states())) {
      const written = JSON.stringify(state);
      if (this.#told.get(plugin) === written) continue;
      this.#told.set(plugin, written);
      teller(plugin, state).catch((error) => {
        // A hub that went away asks for everything when it is back.
        if (teller === this.#teller) this.#note(`The hub did not take the state of ${plugin}: ${error.message}`);
      });
    }
  }
}
