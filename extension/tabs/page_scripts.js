/**
 * Content scripts for page tools, in pages of the allowed origins, with or without a `document.modelContext`.
 *
 * Owns the settings for page tools, which outlive the worker, and the scripts that the browser injects because of them.
 * Pages of other origins get none.
 */

import { textOf } from "../link/rpc.js";

/**
 * @typedef {object} PageSettings
 * @property {boolean} modelContext
 * @property {string[]} allowedOrigins
 * @property {number} maxTools of one document
 * @property {number} maxBytes of the definitions of these tools
 * @property {number} maxDocuments of one tab
 * @property {number} maxUpdates lists of tools per second of one tab
 */

const PROXY = ["bounds", "page_context", "native", "mcpb", "forms", "proxy"].map((name) => `page/${name}.js`);
const CONTEXT = ["page/model_context.js"];
/** The scripts registered here; plugins register others. */
const OWN = ["page-proxy", "page-context"];
/** @type {PageSettings} */
const DEFAULTS = { modelContext: true, allowedOrigins: ["*"], maxTools: 100, maxBytes: 262_144, maxDocuments: 50, maxUpdates: 10 };

export class PageScripts {
  /** @type {PageSettings} */
  settings = DEFAULTS;
  /** Resolves when pages that open from now on get their scripts. @type {Promise<void>} */
  ready = Promise.resolve();
  #note;

  /** @param {(message: string) => void} note */
  constructor(note) {
    this.#note = note;
  }

  /** Restore the settings; call this while the worker starts. */
  start() {
    this.ready = this.#start().catch((error) => this.#note(`The scripts for pages could not be registered: ${textOf(error)}`));
  }

  /**
   * Change the settings.
   * @param {PageSettings} settings
   * @returns {Promise<void>}
   */
  change(settings) {
    this.ready = this.ready
      .then(() => this.#change(settings))
      .catch((error) => this.#note(`The settings for pages could not be changed: ${textOf(error)}`));
    return this.ready;
  }

  /**
   * Whether pages of an origin may offer tools.
   * @param {string} origin
   */
  allows(origin) {
    return this.settings.allowedOrigins.some((allowed) => {
      if (allowed === "*" || allowed === origin) return true;
      const [scheme, host] = allowed.split("://*.");
      return host !== undefined && origin.startsWith(`${scheme}://`) && origin.endsWith(`.${host}`);
    });
  }

  async #start() {
    const { pageSettings } = await chrome.storage.local.get("pageSettings");
    if (pageSettings !== undefined) this.settings = readSettings(/** @type {Record<string, unknown>} */ (pageSettings));
    await this.#register();
    // The session's storage is empty only when the extension itself has just been started: open pages know nothing of it.
    const { pagesTold } = await chrome.storage.session.get("pagesTold");
    if (pagesTold) return;
    await chrome.storage.session.set({ pagesTold: true });
    void this.#inject();
  }

  /** @param {PageSettings} settings */
  async #change(settings) {
    if (JSON.stringify(settings) === JSON.stringify(this.settings)) return;
    this.settings = settings;
    await chrome.storage.local.set({ pageSettings: settings });
    await this.#register();
    void this.#inject();
  }

  #matches() {
    const { allowedOrigins } = this.settings;
    if (allowedOrigins.includes("*")) return ["<all_urls>"];
    return allowedOrigins.map(patternOf).filter((pattern) => pattern !== null);
  }

  async #register() {
    const matches = this.#matches();
    const common = { matches, allFrames: true, matchOriginAsFallback: true, runAt: /** @type {const} */ ("document_start") };
    /** @type {chrome.scripting.RegisteredContentScript[]} */
    const wanted = [{ id: "page-proxy", js: PROXY, world: "ISOLATED", ...common }];
    if (this.settings.modelContext) wanted.unshift({ id: "page-context", js: CONTEXT, world: "MAIN", ...common });
    const present = await chrome.scripting.getRegisteredContentScripts({ ids: OWN });
    // Unchanged scripts stay registered: a page that opens in between would get none.
    if (matches.length > 0 && wanted.length === present.length && wanted.every((script) => isAmong(script, present))) return;
    if (present.length > 0) await chrome.scripting.unregisterContentScripts({ ids: present.map(({ id }) => id) });
    if (matches.length > 0) await chrome.scripting.registerContentScripts(wanted);
  }

  /** Inject the scripts into open pages. */
  async #inject() {
    const tabs = await chrome.tabs.query({});
    await Promise.all(tabs.map((tab) => this.#injectInto(tab.id ?? chrome.tabs.TAB_ID_NONE)));
  }

  /** @param {number} tabId */
  async #injectInto(tabId) {
    try {
      const frames = (await chrome.webNavigation.getAllFrames({ tabId })) ?? [];
      const frameIds = frames.filter(({ url }) => this.allows(originOf(url))).map(({ frameId }) => frameId);
      if (frameIds.length === 0) return;
      const target = { tabId, frameIds };
      if (this.settings.modelContext) await chrome.scripting.executeScript({ target, files: CONTEXT, world: "MAIN" });
      await chrome.scripting.executeScript({ target, files: PROXY });
    } catch {
      // A page of the browser, or one that was closed.
    }
  }
}

/**
 * @param {chrome.scripting.RegisteredContentScript} wanted
 * @param {chrome.scripting.RegisteredContentScript[]} present
 */
function isAmong(wanted, present) {
  const found = present.find(({ id }) => id === wanted.id);
  return String(found?.js) === String(wanted.js) && String(found?.matches) === String(wanted.matches);
}

/**
 * The match pattern of an origin, or null if it is invalid. A pattern without a port would match any port.
 * @param {string} origin
 */
function patternOf(origin) {
  const found = /^(https?):\/\/((?:\*\.)?[^/:*]+|\[[^\]]+\])(:\d+)?$/.exec(origin);
  if (!found) return null;
  const [, scheme, host, port = scheme === "https" ? ":443" : ":80"] = found;
  return `${scheme}://${host}${port}/*`;
}

/** @param {string} url */
function originOf(url) {
  return URL.parse(url)?.origin ?? "null";
}

/**
 * The settings from the hub or the storage, with defaults for missing or invalid ones.
 * @param {Record<string, unknown>} given
 * @returns {PageSettings}
 */
export function readSettings({ modelContext, allowedOrigins, ...limits }) {
  const origins = Array.isArray(allowedOrigins) ? allowedOrigins.filter((origin) => typeof origin === "string") : null;
  const limit = (/** @type {"maxTools" | "maxBytes" | "maxDocuments" | "maxUpdates"} */ name) =>
    Number.isSafeInteger(limits[name]) ? Number(limits[name]) : DEFAULTS[name];
  return {
    modelContext: modelContext !== false,
    allowedOrigins: origins ?? DEFAULTS.allowedOrigins,
    maxTools: limit("maxTools"),
    maxBytes: limit("maxBytes"),
    maxDocuments: limit("maxDocuments"),
    maxUpdates: limit("maxUpdates"),
  };
}
