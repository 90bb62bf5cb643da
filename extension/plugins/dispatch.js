/**
 * Calls of plugin tools: choosing the tab, running the tool in its page, and one answer.
 *
 * A call can move to another tab only before it has begun. Every error says with `sent` whether the tool may have run.
 * Results from a page are validated field by field and bounded.
 */

import "../page/bounds.js";
import * as read from "../link/params.js";
import { FAILED, RpcError, isObject, textOf } from "../link/rpc.js";
import { run } from "./page_functions.js";
import { isFor } from "./plugin.js";

/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {import("./adapters.js").Page} Page */
/** @typedef {import("./plugin.js").Plugin} Plugin */
/**
 * A call that runs in a page.
 * @typedef {object} RunningCall
 * @property {Page} page
 * @property {() => void} resetTimeout restarts its timeout
 * @property {(error: Error) => void} fail
 */
/** @typedef {{ plugin: Plugin, tool: string, input: Params, dispatchId: string, narrowed: string[] | undefined, timeoutMs: number }} PluginCall */

const CATEGORIES = ["auth", "rate_limit", "not_found", "validation", "internal", "timeout", "unavailable"];
const TIMEOUT_MS = 30_000;
const MAX_TIMEOUT_MS = 300_000;
const MAX_RESULT = 8 * 1024 * 1024;
const MAX_MESSAGE = 2000;
const MAX_RETRY_MS = 86_400_000;

/**
 * An error with the details for the hub.
 * @param {string} category
 * @param {string} message
 * @param {{ sent?: boolean, retryable?: boolean, code?: string, retryAfterMs?: number }} [more]
 */
function refusal(category, message, { sent = false, retryable = false, ...more } = {}) {
  return new RpcError(FAILED, message, { category, retryable, sent, ...more });
}

export class Dispatch {
  /** @type {Map<string, RunningCall>} */
  #running = new Map();
  #wiring;

  /**
   * @param {object} wiring
   * @param {() => Promise<readonly Plugin[]>} wiring.plugins
   * @param {(tab: chrome.tabs.Tab, plugin: Plugin) => Promise<string>} wiring.ready returns why a tab cannot be used, or ""
   * @param {(tabId: number) => Page | undefined} wiring.page
   * @param {(progress: import("../link/messages.js").ToolProgress) => void} wiring.progress
   * @param {(request: import("../link/messages.js").PluginRequest) => Promise<unknown>} wiring.request has the hub make a request
   */
  constructor(wiring) {
    this.#wiring = wiring;
  }

  /**
   * Run a tool of a plugin.
   * @param {Params} params
   * @param {Call} call
   * @returns {Promise<{ output: unknown }>}
   */
  async execute(params, call) {
    const name = read.requiredString(params, "plugin");
    const plugins = await this.#wiring.plugins();
    const plugin = plugins.find((one) => one.name === name);
    if (!plugin) throw refusal("unavailable", `This browser has no plugin named ${name.slice(0, 100)}.`);
    /** @type {PluginCall} */
    const request = {
      plugin,
      tool: read.requiredString(params, "tool"),
      input: read.optionalObject(params, "input") ?? {},
      dispatchId: read.requiredString(params, "dispatchId"),
      narrowed: params["urlPatterns"] === undefined ? undefined : read.requiredStrings(params, "urlPatterns", 500),
      timeoutMs: Math.min(read.optionalInteger(params, "timeoutMs", 1) ?? TIMEOUT_MS, MAX_TIMEOUT_MS),
    };
    const tabId = read.optionalInteger(params, "tabId");
    const tabs = tabId === undefined ? await this.#rankTabs(request) : [await this.#requestedTab(tabId, request)];
    if (tabs.length === 0) {
      const message = `No tab is open for ${name}. Open one at ${(request.narrowed ?? plugin.patterns).slice(0, 3).join(" or ")}.`;
      throw refusal("unavailable", message, { code: "closed", retryable: true });
    }
    let problem = "";
    for (const tab of tabs) {
      const reason = await this.#wiring.ready(tab, plugin);
      if (call.cancelled) throw refusal("unavailable", "cancelled");
      if (reason === "") {
        const answer = await this.#inTab(/** @type {number} */ (tab.id), request, call);
        if (typeof answer !== "string") return answer;
        problem ||= answer;
      } else problem ||= reason;
    }
    throw refusal("unavailable", problem, { code: "not_ready", retryable: true });
  }

  /**
   * Progress of a call, accepted only from the page that runs it.
   * @param {{ tabId: number, documentId: string | undefined }} sender as reported by the browser
   * @param {unknown} detail
   */
  progress({ tabId, documentId }, detail) {
    let given;
    try {
      given = JSON.parse(String(detail));
    } catch {
      return; // not an event of the page relay
    }
    if (!isObject(given)) return;
    const { dispatchId, progress, total, message } = given;
    const call = this.#running.get(String(dispatchId));
    if (call?.page.tabId !== tabId || call.page.documentId !== documentId || typeof progress !== "number") return;
    call.resetTimeout();
    const text = typeof message === "string" ? { message: message.slice(0, MAX_MESSAGE) } : {};
    this.#wiring.progress({ dispatchId: String(dispatchId), progress, ...(typeof total === "number" ? { total } : {}), ...text });
  }

  /**
   * A request for the hub, accepted only from the page that runs the call.
   * @param {{ tabId: number, documentId: string | undefined }} sender as reported by the browser
   * @param {unknown} detail
   * @returns {Promise<unknown>} the answer, or `{ error }`
   */
  async request({ tabId, documentId }, detail) {
    try {
      const given = JSON.parse(String(detail));
      const dispatchId = String(given.dispatchId);
      const call = this.#running.get(dispatchId);
      if (call?.page.tabId !== tabId || call.page.documentId !== documentId) throw new Error("No tool of the plugin is running.");
      const { url, method, headers, body } = given;
      const params = { dispatchId, url: String(url), method: String(method), headers: isObject(headers) ? texts(headers) : {} };
      return await this.#wiring.request(typeof body === "string" ? { ...params, body } : params);
    } catch (error) {
      return { error: textOf(error).slice(0, MAX_MESSAGE) };
    }
  }

  /**
   * A tab has left its page, or was closed.
   * @param {number} tabId
   * @param {string} [documentId] the current page
   */
  pageLeft(tabId, documentId) {
    for (const { page, fail } of this.#running.values()) {
      if (page.tabId === tabId && page.documentId !== documentId) {
        fail(refusal("unavailable", "The page was closed or navigated during the call. The action may have been done.", { sent: true }));
      }
    }
  }

  /**
   * @param {number} tabId
   * @param {PluginCall} request
   */
  async #requestedTab(tabId, { plugin, narrowed }) {
    const tab = await chrome.tabs.get(tabId).catch(() => null);
    if (!tab) throw refusal("not_found", `No tab with id ${tabId}. It may have been closed.`, { code: "no_tab" });
    if (!isFor(plugin, tab.url ?? "", narrowed)) {
      const place = URL.parse(tab.url ?? "")?.origin ?? "no page";
      throw refusal("validation", `Tab ${tabId} shows ${place}, which is not a page for ${plugin.name}.`, { code: "wrong_tab" });
    }
    return tab;
  }

  /**
   * The tabs for a call, best first: the active tab of the focused window, other active tabs, others in that window.
   * @param {PluginCall} request
   */
  async #rankTabs({ plugin, narrowed }) {
    const [tabs, window] = await Promise.all([
      chrome.tabs.query({}),
      chrome.windows.getLastFocused().catch(() => null), // the browser has no window
    ]);
    const rank = (/** @type {chrome.tabs.Tab} */ { active, windowId, discarded }) =>
      (discarded ? 4 : 0) + (active ? 0 : 2) + (windowId === window?.id ? 0 : 1);
    return tabs
      .filter((tab) => isFor(plugin, tab.url ?? "", narrowed))
      .sort((one, other) => rank(one) - rank(other) || (other.lastAccessed ?? 0) - (one.lastAccessed ?? 0));
  }

  /**
   * @param {number} tabId
   * @param {PluginCall} request
   * @param {Call} call
   * @returns {Promise<{ output: unknown } | string>} a string says why it was not begun
   */
  async #inTab(tabId, request, call) {
    const page = this.#wiring.page(tabId);
    const tab = await chrome.tabs.get(tabId).catch(() => null);
    // The last check; after it the browser refuses the call if the document has changed.
    if (!page || !tab || !isFor(request.plugin, tab.url ?? "", request.narrowed)) return "The tab navigated to another page.";
    if (this.#running.has(request.dispatchId)) throw refusal("validation", `The call ${request.dispatchId} is already running.`);
    const { promise, reject } = /** @type {PromiseWithResolvers<never>} */ (Promise.withResolvers());
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const end = Date.now() + MAX_TIMEOUT_MS;
    const onTimeout = () => {
      this.#stop(page, request.dispatchId);
      const message = `${request.tool} did not answer in time. It may still be running in tab ${tabId}.`;
      reject(refusal("timeout", message, { sent: true }));
    };
    const resetTimeout = () => {
      clearTimeout(timer);
      timer = setTimeout(onTimeout, Math.min(request.timeoutMs, Math.max(0, end - Date.now())));
    };
    resetTimeout();
    this.#running.set(request.dispatchId, { page, resetTimeout, fail: reject });
    call.onCancel = () => {
      this.#stop(page, request.dispatchId);
      reject(refusal("unavailable", "cancelled", { sent: true }));
    };
    try {
      return readAnswer(await Promise.race([this.#run(page, request), promise]), request);
    } finally {
      clearTimeout(timer);
      this.#running.delete(request.dispatchId);
    }
  }

  /**
   * @param {Page} page
   * @param {PluginCall} request
   * @returns {Promise<unknown>}
   */
  async #run(page, { plugin, tool, input, dispatchId }) {
    const target = { tabId: page.tabId, documentIds: [page.documentId] };
    /** @type {Parameters<typeof run>} */
    const args = [plugin.name, tool, input, dispatchId, page.channel, MAX_RESULT];
    try {
      const [answer] = await chrome.scripting.executeScript({
        target,
        func: run,
        args,
        world: "MAIN",
        injectImmediately: true,
      });
      return answer?.result;
    } catch (error) {
      if (/No document with id|No tab with id|Cannot access/.test(textOf(error))) return { kind: "absent" };
      throw refusal("unavailable", `The page was closed or navigated during the call: ${textOf(error)}`, { sent: true });
    }
  }

  /**
   * Abort the signal of a call in its page.
   * @param {Page} page
   * @param {string} dispatchId
   */
  #stop({ tabId, documentId, channel }, dispatchId) {
    const func = (/** @type {string} */ name) => void document.dispatchEvent(new CustomEvent(name));
    const target = { tabId, documentIds: [documentId] };
    /** @type {[string]} */
    const args = [`${channel}:${dispatchId}`];
    chrome.scripting.executeScript({ target, func, args, injectImmediately: true }).catch(() => null); // the page was closed
  }
}

/**
 * @param {Params} headers
 * @returns {Record<string, string>}
 */
function texts(headers) {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

/**
 * The output from a page's answer, or an error; a string says why the tool was not begun.
 * @param {unknown} answer
 * @param {PluginCall} request
 * @returns {{ output: unknown } | string}
 */
function readAnswer(answer, { plugin, tool }) {
  const sent = true;
  if (!isObject(answer)) throw refusal("unavailable", "The page gave no answer: it may have been closed.", { sent });
  const { kind, text, message } = answer;
  if (kind === "absent") return `The adapter of ${plugin.name} is no longer in the page.`;
  if (kind === "no-tool") throw refusal("not_found", `The adapter of ${plugin.name} has no tool ${tool}.`, { code: "no_tool" });
  if (kind === "huge") {
    throw refusal("internal", `The result is larger than ${MAX_RESULT} characters. Ask for less of it.`, { sent, code: "too_large" });
  }
  if (kind === "output" && typeof text === "string") {
    try {
      return { output: pageChecks.plain(JSON.parse(text), MAX_RESULT) };
    } catch (error) {
      throw refusal("internal", `The result cannot be used: ${textOf(error)}.`, { sent });
    }
  }
  if (kind !== "error") throw refusal("internal", "The page sent an invalid answer.", { sent });
  const { code, category, retryable, retryAfterMs: pause } = answer;
  const known = CATEGORIES.includes(String(category)) ? String(category) : "internal";
  const waits = typeof pause === "number" && pause >= 0 && pause <= MAX_RETRY_MS;
  throw refusal(known, String(message).slice(0, MAX_MESSAGE) || `${tool} failed without a message.`, {
    sent,
    retryable: retryable === true,
    ...(typeof code === "string" ? { code: code.slice(0, 100) } : {}),
    ...(waits ? { retryAfterMs: pause } : {}),
  });
}
