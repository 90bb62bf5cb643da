/**
 * The worker's side of page tools: frames with tools, their tool lists, and running calls.
 *
 * A frame's identity (tab, document, origin) comes from the browser's information about the port's sender, never from the
 * frame. Messages of a frame are validated again here, since its page may control the process.
 */

import "../page/bounds.js";
import * as read from "../link/params.js";
import { FAILED, RpcError, TAB_NOT_FOUND, textOf } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {Record<string, unknown>} Params */
/** @typedef {import("../link/recipients.js").Hub} Hub */
/** @typedef {import("../link/messages.js").ToolOutcome} ToolOutcome */

/**
 * @typedef {object} Frame
 * @property {chrome.runtime.Port} port
 * @property {{ tabId: number, frameId: number, documentId: string }} where
 * @property {string} origin
 * @property {string} url
 * @property {PageTool[]} tools
 * @property {number} declared how many tools its page has
 * @property {number} refused how many of them are not in the list
 * @property {unknown} capabilities
 * @property {boolean} registered whether it has reported tools
 * @property {boolean} reported whether the current hub knows it
 * @property {boolean} queued whether a report is waiting, which sends what holds by then
 * @property {boolean} renew whether the next report is a registration
 * @property {Promise<unknown>} reporting reports about a frame are sent in order
 * @property {Map<string, RunningCall>} calls
 */
/** @typedef {{ id: string | number, toolName: string, asking: boolean, resolve: (answer: ToolOutcome) => void, reject: (error: Error) => void }} RunningCall */

const MAX_FRAMES = 1000;
const SECOND = 1000;

export class PageTools {
  /** @type {Map<string, Frame>} */
  #frames = new Map();
  /** @type {Hub | null} */
  #hub = null;
  /** When each tab has used up its reports; up to a second of them may come together. @type {Map<number, number>} */
  #paces = new Map();
  #scripts;
  #note;

  /**
   * @param {import("./page_scripts.js").PageScripts} scripts
   * @param {(message: string) => void} note
   */
  constructor(scripts, note) {
    this.#scripts = scripts;
    this.#note = note;
  }

  /** Listen for frames; call this while the worker starts. */
  start() {
    chrome.runtime.onConnect.addListener((port) => {
      if (port.name !== "page-tools") return;
      const frame = this.#scripts.ready.then(() => this.#connected(port));
      // Listen at once: a port without a listener loses its messages.
      port.onMessage.addListener((message) => void frame.then((known) => known && this.#receive(known, message)));
      port.onDisconnect.addListener(() => void frame.then((known) => known && this.#disconnected(known)));
    });
    const urlChanged = (/** @type {{ tabId: number, frameId: number, url: string }} */ { tabId, frameId, url }) => {
      const frame = this.#frames.get(`${tabId} ${frameId}`);
      if (!frame || frame.url === url) return;
      frame.url = url;
      this.#report(frame, "browser/registerTools");
    };
    chrome.webNavigation.onHistoryStateUpdated.addListener(urlChanged);
    chrome.webNavigation.onReferenceFragmentUpdated.addListener(urlChanged);
  }

  /**
   * Report to a hub from now on, beginning with all frames; null when it is disconnected.
   * @param {Hub | null} hub
   */
  reportTo(hub) {
    this.#hub = hub;
    for (const frame of this.#frames.values()) {
      frame.reported = false;
      if (hub && frame.registered) this.#report(frame, "browser/registerTools");
    }
  }

  /**
   * Apply new settings: frames that are no longer allowed are disconnected.
   * @param {import("./page_scripts.js").PageSettings} settings
   */
  async change(settings) {
    await this.#scripts.change(settings);
    for (const frame of [...this.#frames.values()]) {
      if (this.#scripts.allows(frame.origin)) continue;
      send(frame.port, { type: "refused" });
      frame.port.disconnect();
      this.#disconnected(frame);
    }
  }

  /**
   * Run a tool of a frame.
   * @param {Params} params
   * @param {Call} call
   * @returns {Promise<ToolOutcome>}
   */
  async execute(params, call) {
    const tabId = read.tabIdOf(params);
    const frameId = read.optionalInteger(params, "frameId") ?? 0;
    const documentId = read.optionalString(params, "documentId");
    const toolName = read.requiredString(params, "toolName");
    const args = read.optionalObject(params, "args") ?? {};
    const frame = this.#frames.get(`${tabId} ${frameId}`);
    if (!frame || (documentId !== undefined && documentId !== frame.where.documentId)) {
      throw new RpcError(TAB_NOT_FOUND, "The page with the tool was closed or has navigated.", { sent: false });
    }
    const requestId = crypto.randomUUID();
    /** @type {PromiseWithResolvers<ToolOutcome>} */
    const { promise, resolve, reject } = Promise.withResolvers();
    frame.calls.set(requestId, { id: call.id, toolName, asking: false, resolve, reject });
    call.onCancel = () => {
      frame.calls.delete(requestId);
      if (this.#isConnected(frame)) send(frame.port, { type: "cancel-tool", requestId });
    };
    const { extensions, _meta } = params;
    const meta = pageChecks.isObject(_meta) ? { _meta } : {};
    send(frame.port, { type: "execute-tool", requestId, toolName, args, extensions, ...meta });
    return promise;
  }

  /** @param {Frame} frame */
  #isConnected(frame) {
    return this.#frames.get(keyOf(frame)) === frame;
  }

  /**
   * @param {chrome.runtime.Port} port
   * @returns {Frame | null}
   */
  #connected(port) {
    const { tab, frameId, documentId, origin, url } = port.sender ?? {};
    const known = tab?.id !== undefined && frameId !== undefined && documentId !== undefined && origin !== undefined;
    if (!known || !this.#scripts.allows(origin) || this.#isFull(/** @type {number} */ (tab?.id), frameId)) {
      send(port, { type: "refused" });
      port.disconnect();
      return null;
    }
    /** @type {Frame} */
    const frame = {
      port,
      where: { tabId: /** @type {number} */ (tab.id), frameId, documentId },
      origin,
      url: url ?? "",
      tools: [],
      declared: 0,
      refused: 0,
      capabilities: {},
      registered: false,
      reported: false,
      queued: false,
      renew: false,
      reporting: Promise.resolve(),
      calls: new Map(),
    };
    const before = this.#frames.get(keyOf(frame));
    if (before) this.#disconnected(before);
    this.#frames.set(keyOf(frame), frame);
    return frame;
  }

  /**
   * Whether a tab has too many documents for one more; its own page is always accepted.
   * @param {number} tabId
   * @param {number} frameId
   */
  #isFull(tabId, frameId) {
    if (frameId === 0) return false;
    const count = this.#documentsOf(tabId, frameId);
    const { maxDocuments } = this.#scripts.settings;
    if (count === maxDocuments) this.#note(`Tab ${tabId} has ${count} documents with tools; those of more are not used.`);
    return count >= maxDocuments || this.#frames.size >= MAX_FRAMES;
  }

  /**
   * @param {number} tabId
   * @param {number} [except] a frame
   */
  #documentsOf(tabId, except) {
    return [...this.#frames.values()].filter(({ where }) => where.tabId === tabId && where.frameId !== except).length;
  }

  /**
   * @param {Frame} frame
   * @param {unknown} message
   */
  #receive(frame, message) {
    try {
      if (this.#isConnected(frame)) this.#handle(frame, message);
    } catch (error) {
      this.#note(`A message of ${frame.origin} was dropped: ${textOf(error)}`);
    }
  }

  /** @param {Frame} frame */
  #disconnected(frame) {
    if (!this.#isConnected(frame)) return;
    this.#frames.delete(keyOf(frame));
    if (this.#documentsOf(frame.where.tabId) === 0) this.#paces.delete(frame.where.tabId);
    for (const { reject } of frame.calls.values()) {
      reject(new RpcError(TAB_NOT_FOUND, "The page was closed or navigated during the call.", { sent: true }));
    }
    const hub = this.#hub;
    void frame.reporting.then(() => {
      if (frame.reported && hub === this.#hub) hub?.notify("browser/disconnected", frame.where);
    });
  }

  /**
   * @param {Frame} frame
   * @param {unknown} message
   */
  #handle(frame, message) {
    const given = pageChecks.plain(message, 2 * pageChecks.MAX_MESSAGE);
    if (!pageChecks.isObject(given)) throw new Error("it is not an object");
    const { type, requestId } = given;
    const call = frame.calls.get(String(requestId));
    if (type === "register-tools" || type === "tools-updated") this.#toolsReported(frame, type, given);
    else if (type === "tool-result") {
      frame.calls.delete(String(requestId));
      const { success, payload } = given;
      const valid = success === true ? pageChecks.isObject(payload) : typeof payload === "string";
      if (valid) call?.resolve({ success: success === true, payload });
      else call?.reject(new RpcError(FAILED, "The page sent an invalid answer."));
    } else if (type === "tool-progress") {
      const { progress, total, message: text } = given;
      if (!call || typeof progress !== "number") return;
      const more = { ...(typeof total === "number" ? { total } : {}), ...(typeof text === "string" ? { message: text } : {}) };
      this.#hub?.notify("tool.progress", { dispatchId: call.id, progress, ...more });
    } else if (type === "confirm-action") void this.#confirm(frame, call, given);
    else if (type === "wake-me") {
      const wait = Math.min(Number(given["after"]) || 0, 1000);
      setTimeout(() => this.#isConnected(frame) && send(frame.port, { type: "wake", wakeId: Number(given["wakeId"]) }), wait);
    } else throw new Error(`unknown type: ${String(type).slice(0, 50)}`);
  }

  /**
   * @param {Frame} frame
   * @param {"register-tools" | "tools-updated"} type
   * @param {Params} given
   */
  #toolsReported(frame, type, given) {
    const { maxTools, maxBytes } = this.#scripts.settings;
    const { tools, refused } = pageChecks.tools(given["tools"], maxTools, maxBytes);
    if (refused > frame.refused) this.#note(`${refused} tools of ${frame.origin} were refused: they are invalid, or too many.`);
    const declared = Number(given["declared"]);
    frame.refused = refused;
    frame.declared = Number.isSafeInteger(declared) && declared > 0 ? declared : 0;
    frame.tools = tools;
    frame.capabilities = given["capabilities"];
    frame.registered = true;
    this.#report(frame, type === "register-tools" ? "browser/registerTools" : "browser/updateTools");
  }

  /**
   * @param {Frame} frame
   * @param {"browser/registerTools" | "browser/updateTools"} method
   */
  #report(frame, method) {
    if (!this.#hub || !frame.registered) return;
    if (method === "browser/registerTools") frame.renew = true;
    if (frame.queued) return;
    frame.queued = true;
    frame.reporting = frame.reporting.then(async () => {
      await this.#turn(frame.where.tabId);
      frame.queued = false;
      const hub = this.#hub;
      if (!hub || !this.#isConnected(frame)) return;
      const { tools, where, declared, renew } = frame;
      frame.renew = false;
      // An empty list registers nothing.
      if (tools.length === 0 || (!renew && frame.reported)) {
        hub.notify("browser/updateTools", { ...where, tools, declared });
        return;
      }
      const tab = await chrome.tabs.get(where.tabId).catch(() => null);
      if (hub !== this.#hub || !this.#isConnected(frame)) return;
      frame.reported = true;
      const browser = pageChecks.isObject(frame.capabilities) ? frame.capabilities : {};
      const { origin, url } = frame;
      const tabUrl = tab?.url ?? (where.frameId === 0 ? url : "");
      const page = { origin, url, tabUrl, title: tab?.title ?? "" };
      hub.notify("browser/registerTools", { ...where, ...page, tools: frame.tools, declared, capabilities: browser });
    });
  }

  /**
   * Wait until a tab may report again.
   * @param {number} tabId
   */
  async #turn(tabId) {
    const now = Date.now();
    const { maxUpdates } = this.#scripts.settings;
    if (maxUpdates === 0) return;
    const used = Math.max(this.#paces.get(tabId) ?? 0, now) + SECOND / maxUpdates;
    this.#paces.set(tabId, used);
    if (used - now > SECOND) await new Promise((resolve) => setTimeout(resolve, used - now - SECOND));
  }

  /**
   * @param {Frame} frame
   * @param {RunningCall | undefined} call only a running call may ask
   * @param {Params} given
   */
  async #confirm(frame, call, given) {
    const { confirmId, message, details } = given;
    let answer = { confirmed: false, reason: "The hub is not connected." };
    try {
      if (!call) throw new Error("no call is running there");
      if (call.asking) throw new Error("a confirmation is already pending");
      if (typeof confirmId !== "string" || typeof message !== "string") throw new Error("the confirmation is invalid");
      const { toolName, id } = call;
      const shown = details === null || details === undefined ? {} : { details };
      const question = { ...frame.where, toolName, callId: String(id), message, ...shown };
      call.asking = true;
      const given = await this.#hub?.request("browser/elicitConfirmation", question).finally(() => (call.asking = false));
      if (pageChecks.isObject(given)) answer = { confirmed: given["confirmed"] === true, reason: String(given["reason"] ?? "") };
    } catch (error) {
      answer.reason = textOf(error);
      this.#note(`A confirmation of a page was refused: ${textOf(error)}`);
    }
    if (this.#isConnected(frame)) send(frame.port, { type: "confirm-result", confirmId: String(confirmId), ...answer });
  }
}

/**
 * @param {chrome.runtime.Port} port
 * @param {import("../link/messages.js").ToFrame} message
 */
function send(port, message) {
  try {
    port.postMessage(message);
  } catch {
    // The frame was closed: onDisconnect follows, where pending calls fail.
  }
}

/** @param {Frame} frame */
function keyOf({ where }) {
  return `${where.tabId} ${where.frameId}`;
}
