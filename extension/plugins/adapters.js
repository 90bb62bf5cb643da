/**
 * Adapters in pages: which document has which, put there as files of the extension, and taken out again.
 *
 * An adapter that is a file needs nothing of the page's Content-Security-Policy. What happens to one tab happens in
 * turn, each step to one document: a page that has been left in between gets nothing meant for the one before.
 */

import { isObject, textOf } from "../link/rpc.js";
import { navigated, prepare, probe, remove, seal } from "./page_functions.js";
import { isFor } from "./plugin.js";

/** @typedef {import("./plugin.js").Plugin} Plugin */
/**
 * A document with a relay of ours.
 * @typedef {object} Page
 * @property {number} tabId
 * @property {string} documentId
 * @property {string} channel
 * @property {string} nonce
 * @property {Map<string, string>} stamps
 * @property {Map<string, string>} problems why a plugin is not in it
 */
/** @typedef {(tabId: number, source: string) => Promise<unknown>} Evaluate */

/** A page that is blocked by a dialog or a script of its own is not waited for longer. */
const PATIENCE_MS = 5_000;
const RELAY = ["plugins/page_relay.js"];

export class Adapters {
  /** @type {Map<number, Page>} */
  #pages = new Map();
  /** @type {Map<number, Promise<unknown>>} */
  #turns = new Map();
  #evaluate;
  #note;

  /**
   * @param {Evaluate} evaluate runs a script that is not a file
   * @param {(message: string) => void} note
   */
  constructor(evaluate, note) {
    this.#evaluate = evaluate;
    this.#note = note;
  }

  /**
   * The page of a tab, if it has been given anything.
   * @param {number} tabId
   */
  page(tabId) {
    return this.#pages.get(tabId);
  }

  /**
   * Whether a tab has a plugin's present adapter.
   * @param {number} tabId
   * @param {Plugin} plugin
   */
  has(tabId, plugin) {
    return this.#pages.get(tabId)?.stamps.get(plugin.name) === plugin.hash;
  }

  /**
   * The tab has left its page.
   * @param {number} tabId
   * @param {string} [documentId] the page it shows now
   */
  left(tabId, documentId) {
    if (this.#pages.get(tabId)?.documentId !== documentId) this.#pages.delete(tabId);
  }

  /**
   * Give a tab's page exactly the adapters that are for it.
   * @param {chrome.tabs.Tab} tab
   * @param {readonly Plugin[]} plugins
   */
  settle(tab, plugins) {
    const [tabId, url] = [tab.id, tab.url ?? ""];
    if (tabId === undefined || tab.discarded) return Promise.resolve();
    const wanted = plugins.filter((plugin) => isFor(plugin, url));
    return this.#inTurn(tabId, async () => {
      if (wanted.length === 0 && !this.#pages.has(tabId)) return;
      const page = await this.#open(tabId);
      for (const name of [...page.stamps.keys()]) {
        if (!wanted.some((plugin) => plugin.name === name)) await this.#remove(page, name);
      }
      for (const plugin of wanted) if (page.stamps.get(plugin.name) !== plugin.hash) await this.#give(page, plugin);
    });
  }

  /**
   * Whether an adapter says that it is ready; false when the page does not answer.
   * @param {number} tabId
   * @param {string} name
   */
  async ready(tabId, name) {
    const page = this.#pages.get(tabId);
    if (!page?.stamps.has(name)) return false;
    return (await this.#inMain(page, probe, [name]).catch(() => false)) === true;
  }

  /**
   * Tell a page's adapters that its address changed.
   * @param {number} tabId
   */
  moved(tabId) {
    const page = this.#pages.get(tabId);
    for (const name of page?.stamps.keys() ?? []) {
      this.#inMain(/** @type {Page} */ (page), navigated, [name]).catch(() => null); // the page has gone
    }
  }

  /**
   * @param {number} tabId
   * @param {() => Promise<unknown>} work
   */
  #inTurn(tabId, work) {
    const turn = (this.#turns.get(tabId) ?? Promise.resolve()).then(work).catch((error) => {
      // A page of the browser's own, or one that was left: the next one has its own turn.
      if (!/Cannot access|No (tab|document|frame)|was removed|cannot be scripted|error page/i.test(textOf(error))) {
        this.#note(`Tab ${tabId} was not given its plugins: ${textOf(error)}`);
      }
    });
    this.#turns.set(tabId, turn);
    return turn.finally(() => this.#turns.get(tabId) === turn && this.#turns.delete(tabId));
  }

  /**
   * The tab's page with its relay.
   * @param {number} tabId
   * @returns {Promise<Page>}
   */
  async #open(tabId) {
    const known = this.#pages.get(tabId);
    if (known) return known;
    const injected = chrome.scripting.executeScript({ target: { tabId }, files: RELAY, injectImmediately: true });
    const [answer] = await within(injected, PATIENCE_MS);
    const facts = answer?.result;
    if (!answer || !isObject(facts)) throw new Error("its relay did not start");
    /** @type {Page} */
    const page = {
      tabId,
      documentId: answer.documentId,
      channel: String(facts["channel"]),
      nonce: String(facts["nonce"]),
      stamps: new Map(Object.entries(/** @type {Record<string, string>} */ (facts["stamps"]))),
      problems: new Map(),
    };
    this.#pages.set(tabId, page);
    return page;
  }

  /**
   * @param {Page} page
   * @param {Plugin} plugin
   */
  async #give(page, plugin) {
    const { name, hash } = plugin;
    page.stamps.delete(name);
    const problem = await this.#put(page, plugin).catch((error) => textOf(error));
    if (problem === "") {
      await this.#inRelay(page, (key, stamp) => void (pluginRelay && (pluginRelay.stamps[key] = stamp)), [name, hash]);
      page.stamps.set(name, hash);
      page.problems.delete(name);
    } else if (page.problems.get(name) !== problem && this.#pages.get(page.tabId) === page) {
      page.problems.set(name, problem);
      this.#note(`The plugin ${name} is not in tab ${page.tabId}: ${problem}`);
    }
  }

  /**
   * @param {Page} page
   * @param {Plugin} plugin
   * @returns {Promise<string>} what went wrong, or nothing
   */
  async #put(page, { name, hash, file, source }) {
    const hindered = await this.#inMain(page, prepare, [name, page.nonce]);
    if (hindered !== "") return typeof hindered === "string" ? hindered : "The page hinders it.";
    if (file !== null) {
      const target = { tabId: page.tabId, documentIds: [page.documentId] };
      const injected = chrome.scripting.executeScript({ target, files: [file], world: "MAIN", injectImmediately: true });
      await within(injected, PATIENCE_MS);
    } else if (source !== null) await within(this.#evaluate(page.tabId, source), PATIENCE_MS);
    const wrong = await this.#inMain(page, seal, [name, hash]);
    return typeof wrong === "string" ? wrong : "The page hinders it.";
  }

  /**
   * @param {Page} page
   * @param {string} name
   */
  async #remove(page, name) {
    page.stamps.delete(name);
    page.problems.delete(name);
    await this.#inMain(page, remove, [name]);
    await this.#inRelay(page, (key) => void delete pluginRelay?.stamps[key], [name]);
  }

  /**
   * Run a function in the page's own world.
   * @template {any[]} Args
   * @param {Page} page
   * @param {(...args: Args) => unknown} func
   * @param {Args} args
   */
  async #inMain(page, func, args) {
    const target = { tabId: page.tabId, documentIds: [page.documentId] };
    const injected = chrome.scripting.executeScript({ target, func, args, world: "MAIN", injectImmediately: true });
    return (await within(injected, PATIENCE_MS))[0]?.result;
  }

  /**
   * Run a function in the extension's own world of the page.
   * @param {Page} page
   * @param {(...args: string[]) => void} func
   * @param {string[]} args
   */
  async #inRelay(page, func, args) {
    const target = { tabId: page.tabId, documentIds: [page.documentId] };
    await within(chrome.scripting.executeScript({ target, func, args, injectImmediately: true }), PATIENCE_MS);
  }
}

/**
 * What a promise gives, or an error when that takes too long.
 * @template Given
 * @param {Promise<Given>} promise
 * @param {number} ms
 * @returns {Promise<Given>}
 */
export async function within(promise, ms) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`The page did not answer within ${ms} ms: a dialog or a script holds it.`)), ms);
  });
  try {
    return /** @type {Given} */ (await Promise.race([promise, late]));
  } finally {
    clearTimeout(timer);
  }
}
