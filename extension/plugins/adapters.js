/**
 * Adapters in pages: injecting them as files of the extension, and removing them again.
 *
 * Adapters that are files are not subject to the page's Content-Security-Policy. Changes of one tab are made one after the
 * other, each for one document: the next page gets nothing that was meant for the previous one.
 */

import { isObject, textOf } from "../link/rpc.js";
import { navigated, prepare, probe, remove, seal } from "./page_functions.js";
import { isFor } from "./plugin.js";

/** @typedef {import("./plugin.js").Plugin} Plugin */
/**
 * A document with the page relay.
 * @typedef {object} Page
 * @property {number} tabId
 * @property {string} documentId
 * @property {string} channel
 * @property {string} nonce
 * @property {Map<string, string>} hashes of the installed adapters by plugin
 * @property {Map<string, string>} problems why an adapter is not installed
 */
/** @typedef {(tabId: number, source: string) => Promise<unknown>} Evaluate */

/** How long to wait for a page that is blocked by a dialog or script. */
const TIMEOUT_MS = 5_000;
const RELAY = ["plugins/page_relay.js"];

export class Adapters {
  /** @type {Map<number, Page>} */
  #pages = new Map();
  /** @type {Map<number, Promise<unknown>>} */
  #queues = new Map();
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
   * The page of a tab, if it has the page relay.
   * @param {number} tabId
   */
  page(tabId) {
    return this.#pages.get(tabId);
  }

  /**
   * Whether a tab has a plugin's current adapter.
   * @param {number} tabId
   * @param {Plugin} plugin
   */
  has(tabId, plugin) {
    return this.#pages.get(tabId)?.hashes.get(plugin.name) === plugin.hash;
  }

  /**
   * The tab has left its page.
   * @param {number} tabId
   * @param {string} [documentId] the current page
   */
  pageLeft(tabId, documentId) {
    if (this.#pages.get(tabId)?.documentId !== documentId) this.#pages.delete(tabId);
  }

  /**
   * Install exactly the adapters for a tab's page.
   * @param {chrome.tabs.Tab} tab
   * @param {readonly Plugin[]} plugins
   */
  apply(tab, plugins) {
    const [tabId, url] = [tab.id, tab.url ?? ""];
    if (tabId === undefined || tab.discarded) return Promise.resolve();
    const wanted = plugins.filter((plugin) => isFor(plugin, url));
    return this.#enqueue(tabId, async () => {
      if (wanted.length === 0 && !this.#pages.has(tabId)) return;
      const page = await this.#open(tabId);
      for (const name of [...page.hashes.keys()]) {
        if (!wanted.some((plugin) => plugin.name === name)) await this.#remove(page, name);
      }
      for (const plugin of wanted) if (page.hashes.get(plugin.name) !== plugin.hash) await this.#install(page, plugin);
    });
  }

  /**
   * Whether an adapter is ready; false if the page does not answer.
   * @param {number} tabId
   * @param {string} name
   */
  async ready(tabId, name) {
    const page = this.#pages.get(tabId);
    if (!page?.hashes.has(name)) return false;
    return (await this.#inMain(page, probe, [name]).catch(() => false)) === true;
  }

  /**
   * Notify a page's adapters that its URL changed.
   * @param {number} tabId
   */
  notifyNavigated(tabId) {
    const page = this.#pages.get(tabId);
    for (const name of page?.hashes.keys() ?? []) {
      this.#inMain(/** @type {Page} */ (page), navigated, [name]).catch(() => null); // the page was closed
    }
  }

  /**
   * @param {number} tabId
   * @param {() => Promise<unknown>} work
   */
  #enqueue(tabId, work) {
    const queued = (this.#queues.get(tabId) ?? Promise.resolve()).then(work).catch((error) => {
      // A page of the browser, or one that was left.
      if (!/Cannot access|No (tab|document|frame)|was removed|cannot be scripted|error page/i.test(textOf(error))) {
        this.#note(`The plugins could not be installed in tab ${tabId}: ${textOf(error)}`);
      }
    });
    this.#queues.set(tabId, queued);
    return queued.finally(() => this.#queues.get(tabId) === queued && this.#queues.delete(tabId));
  }

  /**
   * The tab's page, with the page relay.
   * @param {number} tabId
   * @returns {Promise<Page>}
   */
  async #open(tabId) {
    const known = this.#pages.get(tabId);
    if (known) return known;
    const injected = chrome.scripting.executeScript({ target: { tabId }, files: RELAY, injectImmediately: true });
    const [answer] = await withTimeout(injected, TIMEOUT_MS);
    const facts = answer?.result;
    if (!answer || !isObject(facts)) throw new Error("the page relay did not start");
    /** @type {Page} */
    const page = {
      tabId,
      documentId: answer.documentId,
      channel: String(facts["channel"]),
      nonce: String(facts["nonce"]),
      hashes: new Map(Object.entries(/** @type {Record<string, string>} */ (facts["stamps"]))),
      problems: new Map(),
    };
    this.#pages.set(tabId, page);
    return page;
  }

  /**
   * @param {Page} page
   * @param {Plugin} plugin
   */
  async #install(page, plugin) {
    const { name, hash } = plugin;
    page.hashes.delete(name);
    const problem = await this.#inject(page, plugin).catch((error) => textOf(error));
    if (problem === "") {
      await this.#inRelay(page, (key, stamp) => void (pluginRelay && (pluginRelay.stamps[key] = stamp)), [name, hash]);
      page.hashes.set(name, hash);
      page.problems.delete(name);
    } else if (page.problems.get(name) !== problem && this.#pages.get(page.tabId) === page) {
      page.problems.set(name, problem);
      this.#note(`The plugin ${name} is not in tab ${page.tabId}: ${problem}`);
    }
  }

  /**
   * @param {Page} page
   * @param {Plugin} plugin
   * @returns {Promise<string>} the problem, or ""
   */
  async #inject(page, { name, hash, file, source }) {
    const problem = await this.#inMain(page, prepare, [name, page.nonce]);
    if (problem !== "") return typeof problem === "string" ? problem : "The page interferes.";
    if (file !== null) {
      const target = { tabId: page.tabId, documentIds: [page.documentId] };
      const injected = chrome.scripting.executeScript({ target, files: [file], world: "MAIN", injectImmediately: true });
      await withTimeout(injected, TIMEOUT_MS);
    } else if (source !== null) await withTimeout(this.#evaluate(page.tabId, source), TIMEOUT_MS);
    const invalid = await this.#inMain(page, seal, [name, hash]);
    return typeof invalid === "string" ? invalid : "The page interferes.";
  }

  /**
   * @param {Page} page
   * @param {string} name
   */
  async #remove(page, name) {
    page.hashes.delete(name);
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
    return (await withTimeout(injected, TIMEOUT_MS))[0]?.result;
  }

  /**
   * Run a function in the extension's own world of the page.
   * @param {Page} page
   * @param {(...args: string[]) => void} func
   * @param {string[]} args
   */
  async #inRelay(page, func, args) {
    const target = { tabId: page.tabId, documentIds: [page.documentId] };
    await withTimeout(chrome.scripting.executeScript({ target, func, args, injectImmediately: true }), TIMEOUT_MS);
  }
}

/**
 * The result of a promise, or an error after a timeout.
 * @template Result
 * @param {Promise<Result>} promise
 * @param {number} ms
 * @returns {Promise<Result>}
 */
export async function withTimeout(promise, ms) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const timeout = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`The page did not answer within ${ms} ms: a dialog or script blocks it.`)), ms);
  });
  try {
    return /** @type {Result} */ (await Promise.race([promise, timeout]));
  } finally {
    clearTimeout(timer);
  }
}
