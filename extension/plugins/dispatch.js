/**
 * Calls of plugins' tools: which tab, whether it may still be that tab, the run in its page, and one answer.
 *
 * A call goes to another tab only before it has begun. Every error says with `sent` whether the tool may have run. What
 * comes back from a page is data: read field by field, bounded, and never more than about that page.
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
 * @typedef {object} Flight
 * @property {Page} page
 * @property {() => void} alive its time begins anew
 * @property {(error: Error) => void} fail
 */
/** @typedef {{ plugin: Plugin, tool: string, input: Params, dispatchId: string, narrowed: string[] | undefined, timeoutMs: number }} Wish */

const CATEGORIES = ["auth", "rate_limit", "not_found", "validation", "internal", "timeout", "unavailable"];
const TIMEOUT_MS = 30_000;
const LONGEST_MS = 300_000;
const MOST_RESULT = 8 * 1024 * 1024;
const LONGEST_WORDS = 2000;
const LONGEST_RETRY_MS = 86_400_000;

/**
 * An error with what the hub needs to know of it.
 * @param {string} category
 * @param {string} message
 * @param {{ sent?: boolean, retryable?: boolean, code?: string, retryAfterMs?: number }} [more]
 */
function refusal(category, message, { sent = false, retryable = false, ...more } = {}) {
  return new RpcError(FAILED, message, { category, retryable, sent, ...more });
}

export class Dispatch {
  /** @type {Map<string, Flight>} */
  #flights = new Map();
  #wiring;

  /**
   * @param {object} wiring
   * @param {() => Promise<readonly Plugin[]>} wiring.plugins
   * @param {(tab: chrome.tabs.Tab, plugin: Plugin) => Promise<string>} wiring.ready gives why a tab cannot be used, or nothing
   * @param {(tabId: number) => Page | undefined} wiring.page
   * @param {(progress: import("../link/messages.js").ToolProgress) => void} wiring.progress
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
    if (!plugin) throw refusal("unavailable", `This browser does not know a plugin named ${name.slice(0, 100)}.`);
    /** @type {Wish} */
    const wish = {
      plugin,
      tool: read.requiredString(params, "tool"),
      input: read.optionalObject(params, "input") ?? {},
      dispatchId: read.requiredString(params, "dispatchId"),
      narrowed: params["urlPatterns"] === undefined ? undefined : read.requiredStrings(params, "urlPatterns", 500),
      timeoutMs: Math.min(read.optionalInteger(params, "timeoutMs", 1) ?? TIMEOUT_MS, LONGEST_MS),
    };
    const tabId = read.optionalInteger(params, "tabId");
    const tabs = tabId === undefined ? await this.#ranked(wish) : [await this.#named(tabId, wish)];
    if (tabs.length === 0) {
      const message = `No tab is open for ${name}. Open one at ${(wish.narrowed ?? plugin.patterns).slice(0, 3).join(" or ")}.`;
      throw refusal("unavailable", message, { code: "closed", retryable: true });
    }
    let problem = "";
    for (const tab of tabs) {
      const wrong = await this.#wiring.ready(tab, plugin);
      if (call.cancelled) throw refusal("unavailable", "cancelled");
      if (wrong === "") {
        const answer = await this.#inTab(/** @type {number} */ (tab.id), wish, call);
        if (typeof answer !== "string") return answer;
        problem ||= answer;
      } else problem ||= wrong;
    }
    throw refusal("unavailable", problem, { code: "not_ready", retryable: true });
  }

  /**
   * A page told of progress: only the page that runs the call is heard.
   * @param {{ tabId: number, documentId: string | undefined }} sender as the browser says
   * @param {unknown} detail
   */
  progress({ tabId, documentId }, detail) {
    let given;
    try {
      given = JSON.parse(String(detail));
    } catch {
      return; // a page that makes up events
    }
    if (!isObject(given)) return;
    const { dispatchId, progress, total, message } = given;
    const flight = this.#flights.get(String(dispatchId));
    if (flight?.page.tabId !== tabId || flight.page.documentId !== documentId || typeof progress !== "number") return;
    flight.alive();
    const words = typeof message === "string" ? { message: message.slice(0, LONGEST_WORDS) } : {};
    this.#wiring.progress({ dispatchId: String(dispatchId), progress, ...(typeof total === "number" ? { total } : {}), ...words });
  }

  /**
   * A tab has left its page, or is gone.
   * @param {number} tabId
   * @param {string} [documentId] the page it shows now
   */
  left(tabId, documentId) {
    for (const { page, fail } of this.#flights.values()) {
      if (page.tabId === tabId && page.documentId !== documentId) {
        fail(refusal("unavailable", "The page went away during the call. What was begun may have been done.", { sent: true }));
      }
    }
  }

  /**
   * @param {number} tabId
   * @param {Wish} wish
   */
  async #named(tabId, { plugin, narrowed }) {
    const tab = await chrome.tabs.get(tabId).catch(() => null);
    if (!tab) throw refusal("not_found", `No tab with id ${tabId}. It may have been closed.`, { code: "no_tab" });
    if (!isFor(plugin, tab.url ?? "", narrowed)) {
      const place = URL.parse(tab.url ?? "")?.origin ?? "no page";
      throw refusal("validation", `Tab ${tabId} shows ${place}, which is not a page for ${plugin.name}.`, { code: "wrong_tab" });
    }
    return tab;
  }

  /**
   * The tabs a call may go to, the best first: the one the person looks at, those in front, those in their window.
   * @param {Wish} wish
   */
  async #ranked({ plugin, narrowed }) {
    const [tabs, window] = await Promise.all([
      chrome.tabs.query({}),
      chrome.windows.getLastFocused().catch(() => null), // a browser without windows
    ]);
    const rank = (/** @type {chrome.tabs.Tab} */ { active, windowId, discarded }) =>
      (discarded ? 4 : 0) + (active ? 0 : 2) + (windowId === window?.id ? 0 : 1);
    return tabs
      .filter((tab) => isFor(plugin, tab.url ?? "", narrowed))
      .sort((one, other) => rank(one) - rank(other) || (other.lastAccessed ?? 0) - (one.lastAccessed ?? 0));
  }

  /**
   * @param {number} tabId
   * @param {Wish} wish
   * @param {Call} call
   * @returns {Promise<{ output: unknown } | string>} a text says why it was not begun
   */
  async #inTab(tabId, wish, call) {
    const page = this.#wiring.page(tabId);
    const tab = await chrome.tabs.get(tabId).catch(() => null);
    // The last look before it runs; the browser itself refuses if the document is another by then.
    if (!page || !tab || !isFor(wish.plugin, tab.url ?? "", wish.narrowed)) return "The tab went to another page.";
    if (this.#flights.has(wish.dispatchId)) throw refusal("validation", `The call ${wish.dispatchId} runs already.`);
    const { promise, reject } = /** @type {PromiseWithResolvers<never>} */ (Promise.withResolvers());
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const end = Date.now() + LONGEST_MS;
    const late = () => {
      this.#stop(page, wish.dispatchId);
      const message = `${wish.tool} did not answer in time. It may still be running in tab ${tabId}.`;
      reject(refusal("timeout", message, { sent: true }));
    };
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(late, Math.min(wish.timeoutMs, Math.max(0, end - Date.now())));
    };
    alive();
    this.#flights.set(wish.dispatchId, { page, alive, fail: reject });
    call.onCancel = () => {
      this.#stop(page, wish.dispatchId);
      reject(refusal("unavailable", "cancelled", { sent: true }));
    };
    try {
      return answerOf(await Promise.race([this.#run(page, wish), promise]), wish);
    } finally {
      clearTimeout(timer);
      this.#flights.delete(wish.dispatchId);
    }
  }

  /**
   * @param {Page} page
   * @param {Wish} wish
   * @returns {Promise<unknown>}
   */
  async #run(page, { plugin, tool, input, dispatchId }) {
    const target = { tabId: page.tabId, documentIds: [page.documentId] };
    /** @type {Parameters<typeof run>} */
    const args = [plugin.name, tool, input, dispatchId, page.channel, MOST_RESULT];
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
      throw refusal("unavailable", `The page went away during the call: ${textOf(error)}`, { sent: true });
    }
  }

  /**
   * Ask a page to stop a call: its tool hears of it by its signal.
   * @param {Page} page
   * @param {string} dispatchId
   */
  #stop({ tabId, documentId, channel }, dispatchId) {
    const func = (/** @type {string} */ name) => void document.dispatchEvent(new CustomEvent(name));
    const target = { tabId, documentIds: [documentId] };
    /** @type {[string]} */
    const args = [`${channel}:${dispatchId}`];
    chrome.scripting.executeScript({ target, func, args, injectImmediately: true }).catch(() => null); // it is gone
  }
}

/**
 * What a page answered, or an error; a text says why the tool was not begun.
 * @param {unknown} answer
 * @param {Wish} wish
 * @returns {{ output: unknown } | string}
 */
function answerOf(answer, { plugin, tool }) {
  const sent = true;
  if (!isObject(answer)) throw refusal("unavailable", "The page gave no answer: it may have gone away.", { sent });
  const { kind, text, message } = answer;
  if (kind === "absent") return `The adapter of ${plugin.name} is no longer in the page.`;
  if (kind === "no-tool") throw refusal("not_found", `The adapter of ${plugin.name} has no tool ${tool}.`, { code: "no_tool" });
  if (kind === "huge") {
    throw refusal("internal", `The result is larger than ${MOST_RESULT} characters. Ask for less of it.`, { sent, code: "too_large" });
  }
  if (kind === "output" && typeof text === "string") {
    try {
      return { output: pageChecks.plain(JSON.parse(text), MOST_RESULT) };
    } catch (error) {
      throw refusal("internal", `The result cannot be used: ${textOf(error)}.`, { sent });
    }
  }
  if (kind !== "error") throw refusal("internal", "The page's answer was not one.", { sent });
  const { code, category, retryable, retryAfterMs: pause } = answer;
  const known = CATEGORIES.includes(String(category)) ? String(category) : "internal";
  const waits = typeof pause === "number" && pause >= 0 && pause <= LONGEST_RETRY_MS;
  throw refusal(known, String(message).slice(0, LONGEST_WORDS) || `${tool} failed without a word.`, {
    sent,
    retryable: retryable === true,
    ...(typeof code === "string" ? { code: code.slice(0, 100) } : {}),
    ...(waits ? { retryAfterMs: pause } : {}),
  });
}
