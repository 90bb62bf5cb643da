/**
 * What agents over a relay may see: nothing of the sites that the person keeps from them.
 *
 * Owns which sites each tab shows, in its page and in frames, now or as soon as it has navigated, and what is left out of
 * results, events and notifications. A tab with a page or a frame of a hidden site is hidden as a whole: agents get its id
 * and its place, but no URL, no title and no events.
 */

import { FAILED, RpcError, isObject } from "./rpc.js";
import { isWide, originOf } from "./command_sites.js";
import { Levels } from "./relay_levels.js";

/** @typedef {import("./rpc.js").Params} Params */
/** @typedef {import("./recipients.js").Member} Member */
/**
 * What a tab shows, as URLs.
 * @typedef {object} Shown
 * @property {string | null} top null if unknown
 * @property {string | null} pending
 * @property {Map<number, string>} frames
 * @property {string} maker the page that made one without a site of its own
 */

const HIDDEN = "The person keeps agents over a relay off this site.";
const BEYOND = "Commands that reach beyond a page are refused, because the person keeps agents over a relay off some sites.";
const WEB = /^(?:blob:|view-source:)*(?:https?|wss?):/i;
const URLS = /(?:https?|wss?):\/\/[^\s"'<>(){}|^`]+/gi;
/** What a sentence puts after a URL. */
const TAIL = /[.,;:!?\]…]+$/;
const MASK = "[a site the person keeps agents off]";
/** Content of a page, which may name other sites. */
const CONTENT = ["click", "hover", "type", "screenshot", "tool.dispatch", "browser/executeTool"];
const CONTENT_CDP = /^(?!Target\.|Storage\.|Network\.|Fetch\.|Page\.|Security\.|Log\.|Browser\.|\w*(?:Storage|DB|Worker|Service)\.)/;
/** Notifications that say only that something ended. */
const ENDS = ["cdp.detached", "debugger.changed", "browser/disconnected"];

export class RelayView {
  levels = new Levels("ask", []);
  /** @type {Map<number, Shown>} */
  #shown = new Map();
  /** @type {Promise<unknown>} */
  #seeded = Promise.resolve();
  /** Notifications are sent in order. @type {Promise<unknown>} */
  #sent = Promise.resolve();

  /** Listen for events; call this while the worker starts. */
  start() {
    const { webNavigation, tabs } = chrome;
    webNavigation.onBeforeNavigate.addListener(({ tabId, frameId, url }) => {
      if (frameId === 0) this.#of(tabId).pending = url;
      else this.#of(tabId).frames.set(frameId, url);
    });
    webNavigation.onCommitted.addListener(({ tabId, frameId, url }) => {
      const shown = this.#of(tabId);
      if (frameId !== 0) return void shown.frames.set(frameId, url);
      // A page without a site of its own shows what the one before it has made.
      if (shown.top !== null && isWeb(shown.top)) shown.maker = shown.top;
      [shown.top, shown.pending, shown.frames] = [url, null, new Map()];
    });
    webNavigation.onErrorOccurred.addListener(({ tabId, frameId, url }) => {
      const shown = this.#of(tabId);
      if (frameId === 0 && shown.pending === url) shown.pending = null;
    });
    webNavigation.onCreatedNavigationTarget.addListener(({ sourceTabId, tabId }) => {
      const { top, maker } = this.#of(sourceTabId);
      this.#of(tabId).maker = top !== null && isWeb(top) ? top : maker;
    });
    tabs.onRemoved.addListener((tabId) => this.#shown.delete(tabId));
    tabs.onReplaced.addListener((_tabId, removedTabId) => this.#shown.delete(removedTabId));
  }

  /** @param {Levels} levels */
  change(levels) {
    this.levels = levels;
    if (levels.hides) this.#seeded = chrome.tabs.query({}).then((tabs) => Promise.all(tabs.map(({ id }) => this.isHidden(id))));
  }

  /**
   * Refuse a command on a hidden tab, or one that names a hidden site.
   * @param {string} name
   * @param {Params} params
   */
  async check(name, params) {
    if (!this.levels.hides) return;
    if (isWide(name, params)) throw new RpcError(FAILED, BEYOND);
    const { ahead, follow, tabId, ...given } = params;
    const chained = [ahead, follow].flat().filter((each) => isObject(each) && !CONTENT_CDP.test(String(each["method"])));
    const named = [...(isContent(name, params) ? [] : [given]), ...chained];
    if (this.filter(named).length < named.length || (await this.isHidden(tabId))) throw new RpcError(FAILED, HIDDEN);
    const reached = await this.#reached(name, params);
    if (reached.urls.some((url) => this.#isHiddenUrl(url))) throw new RpcError(FAILED, HIDDEN);
    for (const each of reached.tabs) if (await this.isHidden(each)) throw new RpcError(FAILED, HIDDEN);
  }

  /**
   * The tabs and URLs that a command acts on besides those it names by `tabId` and `url`.
   * @param {string} name
   * @param {Params} params
   * @returns {Promise<{ tabs: unknown[], urls: string[] }>}
   */
  async #reached(name, { tabIds, windowId, sessionId, url, origin, cookies, name: cookie }) {
    if (Array.isArray(tabIds)) return { tabs: tabIds, urls: [] };
    if (name === "closeWindow" && Number.isSafeInteger(windowId)) {
      const inside = await chrome.tabs.query({ windowId: /** @type {number} */ (windowId) }).catch(() => []);
      return { tabs: inside.map(({ id }) => id), urls: [] };
    }
    if (name === "restoreSession") {
      const closed = await chrome.sessions.getRecentlyClosed();
      const wanted = closed.find(({ tab, window }) => (tab ?? window)?.sessionId === sessionId);
      return { tabs: [], urls: [wanted?.tab, ...(wanted?.window?.tabs ?? [])].map((tab) => tab?.url ?? "") };
    }
    if (name === "deleteCookies" && typeof url === "string" && typeof cookie === "string") {
      const found = await chrome.cookies.getAll({ url, name: cookie, partitionKey: {} }).catch(() => []);
      return { tabs: [], urls: found.map(({ domain }) => siteOfCookie(domain)) };
    }
    // Cookies are cleared for all hosts of a domain.
    if (name === "clearSiteData" && cookies === true && this.levels.hidesNear(String(origin))) throw new RpcError(FAILED, HIDDEN);
    return { tabs: [], urls: [] };
  }

  /**
   * The result of a command, without what is hidden.
   * @param {string} name
   * @param {Params} params
   * @param {unknown} result
   */
  async result(name, params, result) {
    if (!this.levels.hides) return result;
    await this.#seeded;
    const content = isContent(name, params);
    // The tab may have navigated meanwhile.
    if ((await this.isHidden(params["tabId"])) && !(isObject(result) && "url" in result)) throw new RpcError(FAILED, HIDDEN);
    const [kept] = content ? [result] : this.filter([result]);
    if (kept === undefined && result !== undefined) throw new RpcError(FAILED, HIDDEN);
    return kept;
  }

  /**
   * The connection to a relay, without notifications about what is hidden.
   * @param {Member} rpc
   * @returns {Member}
   */
  member(rpc) {
    /** @param {string} method @param {Params} params @param {string} [connectionId] */
    const send = async (method, params, connectionId) => {
      await this.#seeded;
      // The first events of a page may come before its navigation is reported.
      if (method === "cdp.event") await this.isHidden(params["tabId"]);
      const kept = this.notification(method, params);
      if (kept) rpc.notify(method, kept, connectionId);
    };
    return {
      notify: (method, params, connectionId) => {
        if (!this.levels.hides) return rpc.notify(method, params, connectionId);
        this.#sent = this.#sent.then(() => send(method, params, connectionId));
        return true;
      },
      request: (method, params) => rpc.request(method, params),
    };
  }

  /**
   * The parameters of a notification, without what is hidden; null if nothing is left.
   * @param {string} method
   * @param {Params} params
   * @returns {Params | null}
   */
  notification(method, params) {
    if (!this.levels.hides || ENDS.includes(method)) return params;
    if (method === "tab.stateChanged" && isObject(params["tab"])) return { ...params, tab: this.filter([params["tab"]])[0] };
    if (method === "tab.stateChanged" && !("plugin" in params)) return params;
    const { tabId, origin } = params;
    if (tabId !== undefined && (this.#hides(tabId) || this.#isHiddenUrl(origin))) return null;
    const content = method === "cdp.event" && CONTENT_CDP.test(String(params["method"]));
    return content ? params : (this.filter([params])[0] ?? null);
  }

  /**
   * The items that are not hidden.
   * @template Value
   * @param {readonly Value[]} values
   * @returns {Value[]}
   */
  filter(values) {
    return values.map((value) => /** @type {Value} */ (this.#filter(value))).filter((value) => value !== undefined);
  }

  /**
   * A value without hidden parts, undefined if it is hidden itself: items of lists are left out one by one.
   * @param {unknown} value
   * @returns {unknown}
   */
  #filter(value) {
    if (typeof value === "string") return this.#isHiddenUrl(value) ? undefined : this.#mask(value);
    if (Array.isArray(value)) return this.filter(value);
    if (!isObject(value)) return value;
    const { tabId, url, domain } = value;
    if (tabId !== undefined && (this.#hides(tabId) || this.#isHiddenUrl(url))) return typeof url === "string" ? blank(value) : undefined;
    if (typeof domain === "string" && this.#isHiddenUrl(siteOfCookie(domain))) return undefined;
    const kept = Object.entries(value).map(([key, each]) => [key, this.#filter(each)]);
    return kept.some(([key, each]) => each === undefined && value[String(key)] !== undefined) ? undefined : Object.fromEntries(kept);
  }

  /**
   * Whether a tab shows a hidden site; a tab that does not exist shows none.
   * @param {unknown} tabId
   */
  async isHidden(tabId) {
    if (!Number.isSafeInteger(tabId)) return false;
    const id = /** @type {number} */ (tabId);
    const [tab, frames] = await Promise.all([
      chrome.tabs.get(id).catch(() => null),
      chrome.webNavigation.getAllFrames({ tabId: id }).catch(() => null),
    ]);
    if (!tab) return false;
    const shown = this.#of(id);
    shown.top = tab.url ?? "";
    shown.pending = tab.pendingUrl ?? shown.pending;
    shown.frames = new Map((frames ?? []).filter(({ frameId }) => frameId !== 0).map(({ frameId, url }) => [frameId, url]));
    return this.#hides(id);
  }

  /** @param {unknown} tabId */
  #hides(tabId) {
    const shown = this.#shown.get(/** @type {number} */ (tabId));
    if (!shown || shown.top === null) return true;
    const { top, pending, frames, maker } = shown;
    const pages = isWeb(top) ? [top] : pending === null ? [maker] : [];
    if (pending !== null) pages.push(pending);
    return (
      pages.some((url) => this.levels.of(originOf(unwrapped(url))) === "block") ||
      // Other frames are part of the page that shows them.
      [...frames.values()].some((url) => this.levels.rule(originOf(unwrapped(url))) === "block")
    );
  }

  /**
   * A text without the URLs of hidden sites in it.
   * @param {string} text
   */
  #mask(text) {
    if (!text.includes("://")) return text;
    return text.replace(URLS, (url) => {
      const bare = url.replace(TAIL, "");
      return this.#isHiddenUrl(bare) || this.#isHiddenUrl(url) ? MASK + url.slice(bare.length) : url;
    });
  }

  /** @param {unknown} text */
  #isHiddenUrl(text) {
    return typeof text === "string" && isWeb(text) && this.levels.of(originOf(unwrapped(text))) === "block";
  }

  /** @param {number} tabId */
  #of(tabId) {
    const known = this.#shown.get(tabId);
    if (known) return known;
    const shown = { top: null, pending: null, frames: new Map(), maker: "" };
    this.#shown.set(tabId, shown);
    return shown;
  }
}

/**
 * Whether the parameters and the result of a command are content of a page.
 * @param {string} name
 * @param {Params} params
 */
function isContent(name, params) {
  return CONTENT.includes(name) || (name === "forwardCDPCommand" && CONTENT_CDP.test(String(params["method"])));
}

/**
 * A tab of which agents get only the id and the place.
 * @param {Params} tab
 */
function blank(tab) {
  return { ...tab, url: "", title: "", ...("audible" in tab ? { audible: false, lastAccessed: 0 } : {}) };
}

/** @param {string} domain */
function siteOfCookie(domain) {
  return `https://${domain.replace(/^\./, "")}/`;
}

/** @param {string} url */
function isWeb(url) {
  return WEB.test(url);
}

/** @param {string} url */
function unwrapped(url) {
  return url.replace(/^view-source:/i, "");
}
