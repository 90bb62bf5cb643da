/**
 * The plugins of this browser: the hub's list, stored while the worker is stopped, and the reactions to browser events.
 *
 * Connects the parts: adapters in pages, readiness, calls, logs. The sender of a message is taken from the browser.
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

const STORAGE_KEY = "plugins";
const MAX_PLUGINS = 500;

export class Plugins {
  /** @type {readonly Plugin[]} */
  #list = [];
  /** Resolves when the list is known and applied to pages. @type {Promise<void>} */
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
      request: (params) => this.#hub?.request("plugin.request", params) ?? Promise.reject(new Error("The hub is not connected.")),
    });
  }

  /** Requests of the hub. @returns {[string, Handler][]} */
  methods() {
    return [
      ["tool.dispatch", (params, call) => this.#dispatch.execute(params, call)],
      ["plugin.uninstall", (params) => this.#uninstall(read.requiredString(params, "name"))],
      ["getAdapters", () => this.#facts()],
    ];
  }

  /** Notifications of the hub. @returns {[string, (params: Params) => void][]} */
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
   * Report to a hub from now on; null when it is disconnected.
   * @param {Hub | null} hub
   */
  reportTo(hub) {
    this.#hub = hub;
    this.#readiness.reportTo(hub && ((plugin, state) => hub.request("tab.stateChanged", { plugin, ...state })));
    this.#logs.reportTo(hub && ((entries) => void hub.notify("plugin.log", { entries })));
  }

  /** The state of each plugin's tabs. */
  states() {
    return this.#readiness.states();
  }

  /** Listen for events; call this while the worker starts. */
  start() {
    const { webNavigation, tabs, runtime } = chrome;
    this.#known = this.#restore().catch((error) => this.#note(`The plugins could not be restored: ${textOf(error)}`));
    webNavigation.onCommitted.addListener(({ tabId, frameId, documentId, documentLifecycle, url }) => {
      if (frameId === 0 && documentLifecycle !== "prerender") this.#pageLeft(tabId, documentId, url);
    });
    webNavigation.onDOMContentLoaded.addListener(({ tabId, frameId, documentLifecycle }) => {
      if (frameId === 0 && documentLifecycle !== "prerender") void this.#updateTab(tabId);
    });
    const urlChanged = (/** @type {{ tabId: number, frameId: number }} */ { tabId, frameId }) => {
      if (frameId !== 0) return;
      void this.#updateTab(tabId).then(() => this.#adapters.notifyNavigated(tabId));
    };
    webNavigation.onHistoryStateUpdated.addListener(urlChanged);
    webNavigation.onReferenceFragmentUpdated.addListener(urlChanged);
    // Also for a page from the back/forward cache, which causes no other event.
    tabs.onUpdated.addListener((tabId, { status, discarded }) => {
      if (discarded) this.#pageLeft(tabId);
      if (status === "complete" || discarded !== undefined) void this.#updateTab(tabId);
    });
    tabs.onRemoved.addListener((tabId) => this.#pageLeft(tabId));
    tabs.onReplaced.addListener((tabId, before) => {
      this.#pageLeft(before);
      void this.#updateTab(tabId);
    });
    runtime.onMessage.addListener((message, sender, answer) => {
      if (!isObject(message) || message["type"] !== "plugins") return undefined;
      if (message["what"] !== "request") return this.#receive(message, sender);
      void this.#request(message["detail"], sender).then(answer);
      return true; // it is answered later
    });
  }

  /**
   * @param {Params} message of a page relay
   * @param {chrome.runtime.MessageSender} sender
   */
  #receive({ what, plugin, entries, left, detail }, { id, tab, frameId, documentId, url }) {
    const tabId = tab?.id;
    if (id !== chrome.runtime.id || tabId === undefined || frameId !== 0) return;
    if (what === "progress") return this.#dispatch.progress({ tabId, documentId }, detail);
    const known = this.#list.find(({ name }) => name === plugin);
    if (!known || !isFor(known, url ?? "")) return;
    if (what === "logs") this.#logs.add(known.name, entries, left);
    else if (what === "ready") void this.#readiness.check(known.name, tabId, this.#adapters.has(tabId, known));
  }

  /**
   * @param {unknown} detail
   * @param {chrome.runtime.MessageSender} sender
   * @returns {Promise<unknown>}
   */
  async #request(detail, { id, tab, frameId, documentId }) {
    const tabId = tab?.id;
    if (id !== chrome.runtime.id || tabId === undefined || frameId !== 0) return { error: "Not a page of a plugin." };
    return this.#dispatch.request({ tabId, documentId }, detail);
  }

  async #restore() {
    const { [STORAGE_KEY]: stored } = await chrome.storage.session.get(STORAGE_KEY);
    if (!Array.isArray(stored)) return;
    this.#list = stored;
    this.#readiness.setPlugins(this.#list.map(({ name }) => name));
    void this.#updateAllTabs();
  }

  /** @param {unknown} given */
  #readAll(given) {
    /** @type {Map<string, Plugin>} */
    const found = new Map();
    for (const item of Array.isArray(given) ? given.slice(0, MAX_PLUGINS) : []) {
      try {
        const plugin = readPlugin(item);
        found.set(plugin.name, plugin);
      } catch (error) {
        this.#note(`A plugin of the hub was refused: ${textOf(error)}`);
      }
    }
    return [...found.values()];
  }

  /**
   * Change the list; changes are applied one after the other.
   * @param {readonly Plugin[] | ((list: readonly Plugin[]) => readonly Plugin[])} next
   * @returns {Promise<void>}
   */
  #change(next) {
    this.#known = this.#known
      .then(async () => {
        this.#list = typeof next === "function" ? next(this.#list) : next;
        this.#readiness.setPlugins(this.#list.map(({ name }) => name));
        const updated = this.#updateAllTabs();
        await chrome.storage.session.set({ [STORAGE_KEY]: this.#list });
        await registerPreScripts(this.#list, this.#note);
        // Not awaited: a page that does not answer delays only its own tab.
        void updated;
      })
      .catch((error) => this.#note(`The hub's plugins could not be applied: ${textOf(error)}`));
    return this.#known;
  }

  /** @param {string} name */
  async #uninstall(name) {
    await this.#change((list) => list.filter((plugin) => plugin.name !== name));
    await this.#updateAllTabs();
    return {};
  }

  async #updateAllTabs() {
    const tabs = await chrome.tabs.query({});
    await Promise.all(tabs.map((tab) => this.#applyTo(tab)));
  }

  /** @param {number} tabId */
  async #updateTab(tabId) {
    await this.#known;
    const [tab, frame] = await Promise.all([
      chrome.tabs.get(tabId).catch(() => null), // already closed
      chrome.webNavigation.getFrame({ tabId, frameId: 0 }).catch(() => null),
    ]);
    // A prerendered or cached page becomes the tab's page without an event.
    if (frame) this.#pageLeft(tabId, frame.documentId, frame.url);
    if (tab) await this.#applyTo(tab);
  }

  /** @param {chrome.tabs.Tab} tab */
  async #applyTo(tab) {
    const { id: tabId, url = "" } = tab;
    if (tabId === undefined) return;
    const list = this.#list;
    for (const plugin of list) {
      if (!isFor(plugin, url)) this.#readiness.remove(plugin.name, tabId);
      else if (!this.#adapters.has(tabId, plugin)) void this.#readiness.check(plugin.name, tabId, false);
    }
    await this.#adapters.apply(tab, list);
    for (const plugin of this.#list) {
      if (isFor(plugin, url) && this.#adapters.has(tabId, plugin)) void this.#readiness.check(plugin.name, tabId, true);
    }
  }

  /**
   * @param {number} tabId
   * @param {string} [documentId] the current page; undefined when the tab was closed
   * @param {string} [url]
   */
  #pageLeft(tabId, documentId, url) {
    if (documentId !== undefined && this.#adapters.page(tabId)?.documentId === documentId) return;
    this.#adapters.pageLeft(tabId, documentId);
    this.#dispatch.pageLeft(tabId, documentId);
    for (const plugin of this.#list) {
      if (url !== undefined && isFor(plugin, url)) void this.#readiness.check(plugin.name, tabId, false);
      else this.#readiness.remove(plugin.name, tabId);
    }
  }

  /**
   * Why a tab cannot be used now, or "".
   * @param {chrome.tabs.Tab} tab
   * @param {Plugin} plugin
   */
  async #usable(tab, plugin) {
    const tabId = /** @type {number} */ (tab.id);
    if (tab.discarded) return `Tab ${tabId} is unloaded to save memory. Activate it first.`;
    if (!this.#adapters.has(tabId, plugin)) await this.#applyTo(tab);
    if (!this.#adapters.has(tabId, plugin)) {
      const reason = this.#adapters.page(tabId)?.problems.get(plugin.name) ?? "Scripts cannot run in its page.";
      return `${plugin.name} is not in tab ${tabId}: ${reason}`;
    }
    if (await this.#adapters.ready(tabId, plugin.name)) return "";
    void this.#readiness.check(plugin.name, tabId, true);
    return `${plugin.name} is not ready in tab ${tabId}: the page may still be loading, or require a login.`;
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
