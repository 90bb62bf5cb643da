/**
 * The plugins of this browser: the hub's list, kept while the worker sleeps, and what the browser's events mean for it.
 *
 * Connects the parts: adapters in pages, readiness, calls, logs. Who speaks from a page is what the browser says.
 */

import * as read from "../link/params.js";
import { isObject, textOf } from "../link/rpc.js";
import { Dispatch } from "./dispatch.js";
import { Adapters } from "./adapters.js";
import { PluginLogs } from "./logs.js";
import { isFor, readPlugin } from "./plugin.js";
import { registerPreScripts } from "./prescripts.js";
import { Readiness } from "./readiness.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {import("../link/rpc.js").Handler} Handler */
/** @typedef {import("./plugin.js").Plugin} Plugin */
/** @typedef {import("../link/recipients.js").Hub} Hub */

const STORED = "plugins";
const MOST_PLUGINS = 500;

export class Plugins {
  /** @type {readonly Plugin[]} */
  #list = [];
  /** Settled once the list is known and, for a change of it, the pages have it. @type {Promise<void>} */
  #known = Promise.resolve();
  /** @type {Hub | null} */
  #hub = null;
  #note;
  #adapters;
  #readiness;
  #logs = new PluginLogs();
  #dispatch;

  /**
   * @param {import("./adapters.js").Evaluate} evaluate runs a script that is not a file
   * @param {(message: string) => void} note
   */
  constructor(evaluate, note) {
    this.#note = note;
    this.#adapters = new Adapters(evaluate, note);
    this.#readiness = new Readiness((tabId, plugin) => this.#adapters.ready(tabId, plugin), note);
    this.#dispatch = new Dispatch({
      plugins: () => this.#known.then(() => this.#list),
      ready: (tab, plugin) => this.#usable(tab, plugin),
      page: (tabId) => this.#adapters.page(tabId),
      progress: (params) => this.#hub?.notify("tool.progress", params),
    });
  }

  /** What the hub may ask. @returns {[string, Handler][]} */
  methods() {
    return [
      ["tool.dispatch", (params, call) => this.#dispatch.execute(params, call)],
      ["plugin.uninstall", (params) => this.#uninstall(read.requiredString(params, "name"))],
      ["getAdapters", () => this.#facts()],
    ];
  }

  /** What the hub may tell. @returns {[string, (params: Params) => void][]} */
  notifications() {
    return [
      ["sync.full", ({ plugins }) => void this.#change(this.#readAll(plugins))],
      [
        "plugin.update",
        (params) => {
          const [plugin] = this.#readAll([params["plugin"]]);
          if (plugin) void this.#change((list) => [...list.filter(({ name }) => name !== plugin.name), plugin]);
        },
      ],
    ];
  }

  /**
   * Tell a hub from now on; null when there is none.
   * @param {Hub | null} hub
   */
  tellTo(hub) {
    this.#hub = hub;
    this.#readiness.tellTo(hub && ((plugin, state) => hub.request("tab.stateChanged", { plugin, ...state })));
    this.#logs.tellTo(hub && ((entries) => void hub.notify("plugin.log", { entries })));
  }

  /** The state of each plugin's tabs. */
  states() {
    return this.#readiness.states();
  }

  /** Listen to the browser; call this while the worker starts. */
  start() {
    const { webNavigation, tabs, runtime } = chrome;
    this.#known = this.#recall().catch((error) => this.#note(`The plugins were not remembered: ${textOf(error)}`));
    webNavigation.onCommitted.addListener(({ tabId, frameId, documentId, documentLifecycle, url }) => {
      if (frameId === 0 && documentLifecycle !== "prerender") this.#left(tabId, documentId, url);
    });
    webNavigation.onDOMContentLoaded.addListener(({ tabId, frameId, documentLifecycle }) => {
      if (frameId === 0 && documentLifecycle !== "prerender") void this.#look(tabId);
    });
    const moved = (/** @type {{ tabId: number, frameId: number }} */ { tabId, frameId }) => {
      if (frameId !== 0) return;
      void this.#look(tabId).then(() => this.#adapters.moved(tabId));
    };
    webNavigation.onHistoryStateUpdated.addListener(moved);
    webNavigation.onReferenceFragmentUpdated.addListener(moved);
    // Also a page from the back/forward cache, which has no other beginning.
    tabs.onUpdated.addListener((tabId, { status, discarded }) => {
      if (discarded) this.#left(tabId);
      if (status === "complete" || discarded !== undefined) void this.#look(tabId);
    });
    tabs.onRemoved.addListener((tabId) => this.#left(tabId));
    tabs.onReplaced.addListener((tabId, before) => {
      this.#left(before);
      void this.#look(tabId);
    });
    runtime.onMessage.addListener((message, sender) => {
      if (isObject(message) && message["type"] === "plugins") this.#heard(message, sender);
    });
  }

  /**
   * @param {Params} message of a relay
   * @param {chrome.runtime.MessageSender} sender
   */
  #heard({ what, plugin, entries, left, detail }, { id, tab, frameId, documentId, url }) {
    const tabId = tab?.id;
    if (id !== chrome.runtime.id || tabId === undefined || frameId !== 0) return;
    if (what === "progress") return this.#dispatch.progress({ tabId, documentId }, detail);
    const known = this.#list.find(({ name }) => name === plugin);
    if (!known || !isFor(known, url ?? "")) return;
    if (what === "logs") this.#logs.take(known.name, entries, left);
    else if (what === "ready") void this.#readiness.look(known.name, tabId, this.#adapters.has(tabId, known));
  }

  async #recall() {
    const { [STORED]: stored } = await chrome.storage.session.get(STORED);
    if (!Array.isArray(stored)) return;
    this.#list = stored;
    this.#readiness.only(this.#list.map(({ name }) => name));
    void this.#lookAtAll();
  }

  /** @param {unknown} given */
  #readAll(given) {
    /** @type {Map<string, Plugin>} */
    const found = new Map();
    for (const item of Array.isArray(given) ? given.slice(0, MOST_PLUGINS) : []) {
      try {
        const plugin = readPlugin(item);
        found.set(plugin.name, plugin);
      } catch (error) {
        this.#note(`A plugin of the hub was not taken: ${textOf(error)}`);
      }
    }
    return [...found.values()];
  }

  /**
   * Take another list; one change after the other.
   * @param {readonly Plugin[] | ((list: readonly Plugin[]) => readonly Plugin[])} next
   * @returns {Promise<void>}
   */
  #change(next) {
    this.#known = this.#known
      .then(async () => {
        this.#list = typeof next === "function" ? next(this.#list) : next;
        this.#readiness.only(this.#list.map(({ name }) => name));
        const looked = this.#lookAtAll();
        await chrome.storage.session.set({ [STORED]: this.#list });
        await registerPreScripts(this.#list, this.#note);
        // A page that does not answer holds up its own tab only.
        void looked;
      })
      .catch((error) => this.#note(`The hub's plugins were not taken: ${textOf(error)}`));
    return this.#known;
  }

  /** @param {string} name */
  async #uninstall(name) {
    await this.#change((list) => list.filter((plugin) => plugin.name !== name));
    await this.#lookAtAll();
    return {};
  }

  async #lookAtAll() {
    const tabs = await chrome.tabs.query({});
    await Promise.all(tabs.map((tab) => this.#settle(tab)));
  }

  /** @param {number} tabId */
  async #look(tabId) {
    await this.#known;
    const [tab, frame] = await Promise.all([
      chrome.tabs.get(tabId).catch(() => null), // closed by now
      chrome.webNavigation.getFrame({ tabId, frameId: 0 }).catch(() => null),
    ]);
    // A page the browser had prepared or kept becomes the tab's without a word.
    if (frame) this.#left(tabId, frame.documentId, frame.url);
    if (tab) await this.#settle(tab);
  }

  /** @param {chrome.tabs.Tab} tab */
  async #settle(tab) {
    const { id: tabId, url = "" } = tab;
    if (tabId === undefined) return;
    const list = this.#list;
    for (const plugin of list) {
      if (!isFor(plugin, url)) this.#readiness.leave(plugin.name, tabId);
      else if (!this.#adapters.has(tabId, plugin)) void this.#readiness.look(plugin.name, tabId, false);
    }
    await this.#adapters.settle(tab, list);
    for (const plugin of this.#list) {
      if (isFor(plugin, url) && this.#adapters.has(tabId, plugin)) void this.#readiness.look(plugin.name, tabId, true);
    }
  }

  /**
   * @param {number} tabId
   * @param {string} [documentId] the page it shows now; none when the tab is gone
   * @param {string} [url]
   */
  #left(tabId, documentId, url) {
    if (documentId !== undefined && this.#adapters.page(tabId)?.documentId === documentId) return;
    this.#adapters.left(tabId, documentId);
    this.#dispatch.left(tabId, documentId);
    for (const plugin of this.#list) {
      if (url !== undefined && isFor(plugin, url)) void this.#readiness.look(plugin.name, tabId, false);
      else this.#readiness.leave(plugin.name, tabId);
    }
  }

  /**
   * Why a tab cannot be used now, or nothing.
   * @param {chrome.tabs.Tab} tab
   * @param {Plugin} plugin
   */
  async #usable(tab, plugin) {
    const tabId = /** @type {number} */ (tab.id);
    if (tab.discarded) return `Tab ${tabId} is asleep to save memory. Activate it first.`;
    if (!this.#adapters.has(tabId, plugin)) await this.#settle(tab);
    if (!this.#adapters.has(tabId, plugin)) {
      const why = this.#adapters.page(tabId)?.problems.get(plugin.name) ?? "Its page takes no scripts now.";
      return `${plugin.name} is not in tab ${tabId}: ${why}`;
    }
    if (await this.#adapters.ready(tabId, plugin.name)) return "";
    void this.#readiness.look(plugin.name, tabId, true);
    return `${plugin.name} is not ready in tab ${tabId}: the page may still load, or want a login.`;
  }

  /** Which adapters are in which tabs. */
  #facts() {
    const adapters = this.#list.map((plugin) => ({
      plugin: plugin.name,
      hash: plugin.hash,
      matches: plugin.patterns,
      world: "MAIN",
      tabIds: this.#readiness.tabs(plugin.name).filter((tabId) => this.#adapters.has(tabId, plugin)),
    }));
    return { adapters };
  }
}
