/**
 * The worker's side of page tools: the frames that offer any, what they offer, and the calls that run in them.
 *
 * Who a frame is, its tab, its document and its origin, is what the browser says of the port's sender, never what the
 * frame says. What a frame sends is checked here again: a frame's process may be in the hands of its page.
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
 * @property {unknown} capabilities
 * @property {boolean} registered whether it ever told its tools
 * @property {boolean} told whether the present hub knows it
 * @property {Promise<unknown>} telling what is told of a frame is told in order
 * @property {Map<string, Flight>} flights
 */
/** @typedef {{ id: string | number, toolName: string, asking: boolean, resolve: (answer: ToolOutcome) => void, reject: (error: Error) => void }} Flight */

const MAX_FRAMES = 1000;

export class PageTools {
  /** @type {Map<string, Frame>} */
  #frames = new Map();
  /** @type {Hub | null} */
  #hub = null;
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
      // At once, though what comes has to wait: a port without a listener loses its messages.
      port.onMessage.addListener((message) => void frame.then((known) => known && this.#received(known, message)));
      port.onDisconnect.addListener(() => void frame.then((known) => known && this.#gone(known)));
    });
    const moved = (/** @type {{ tabId: number, frameId: number, url: string }} */ { tabId, frameId, url }) => {
      const frame = this.#frames.get(`${tabId} ${frameId}`);
      if (!frame || frame.url === url) return;
      frame.url = url;
      this.#tell(frame, "browser/registerTools");
    };
    chrome.webNavigation.onHistoryStateUpdated.addListener(moved);
    chrome.webNavigation.onReferenceFragmentUpdated.addListener(moved);
  }

  /**
   * Tell a hub from now on, beginning with every frame there is; null when there is none.
   * @param {Hub | null} hub
   */
  tellTo(hub) {
    this.#hub = hub;
    for (const frame of this.#frames.values()) {
      frame.told = false;
      if (hub && frame.registered) this.#tell(frame, "browser/registerTools");
    }
  }

  /**
   * New settings: frames that may no longer take part are let go.
   * @param {import("./page_scripts.js").PageSettings} settings
   */
  async change(settings) {
    await this.#scripts.change(settings);
    for (const frame of [...this.#frames.values()]) {
      if (this.#scripts.allows(frame.origin)) continue;
      send(frame.port, { type: "refused" });
      frame.port.disconnect();
      this.#gone(frame);
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
      throw new RpcError(TAB_NOT_FOUND, "The page that offered the tool is gone.", { sent: false });
    }
    const requestId = crypto.randomUUID();
    /** @type {PromiseWithResolvers<ToolOutcome>} */
    const { promise, resolve, reject } = Promise.withResolvers();
    frame.flights.set(requestId, { id: call.id, toolName, asking: false, resolve, reject });
    call.onCancel = () => {
      frame.flights.delete(requestId);
      if (this.#isHere(frame)) send(frame.port, { type: "cancel-tool", requestId });
    };
    const { extensions, _meta } = params;
    send(frame.port, { type: "execute-tool", requestId, toolName, args, extensions, _meta });
    return promise;
  }

  /** @param {Frame} frame */
  #isHere(frame) {
    return this.#frames.get(keyOf(frame)) === frame;
  }

  /**
   * @param {chrome.runtime.Port} port
   * @returns {Frame | null}
   */
  #connected(port) {
    const { tab, frameId, documentId, origin, url } = port.sender ?? {};
    const known = tab?.id !== undefined && frameId !== undefined && documentId !== undefined && origin !== undefined;
    if (!known || !this.#scripts.allows(origin) || this.#frames.size >= MAX_FRAMES) {
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
      capabilities: {},
      registered: false,
      told: false,
      telling: Promise.resolve(),
      flights: new Map(),
    };
    const before = this.#frames.get(keyOf(frame));
    if (before) this.#gone(before);
    this.#frames.set(keyOf(frame), frame);
    return frame;
  }

  /**
   * @param {Frame} frame
   * @param {unknown} message
   */
  #received(frame, message) {
    try {
      if (this.#isHere(frame)) this.#take(frame, message);
    } catch (error) {
      this.#note(`A message of ${frame.origin} was dropped: ${textOf(error)}`);
    }
  }

  /** @param {Frame} frame */
  #gone(frame) {
    if (!this.#isHere(frame)) return;
    this.#frames.delete(keyOf(frame));
    for (const { reject } of frame.flights.values()) {
      reject(new RpcError(TAB_NOT_FOUND, "The page went away during the call.", { sent: true }));
    }
    const hub = this.#hub;
    void frame.telling.then(() => {
      if (frame.told && hub === this.#hub) hub?.notify("browser/disconnected", frame.where);
    });
  }

  /**
   * @param {Frame} frame
   * @param {unknown} message
   */
  #take(frame, message) {
    const given = pageChecks.plain(message, 2 * pageChecks.MAX_MESSAGE);
    if (!pageChecks.isObject(given)) throw new Error("it is not an object");
    const { type, requestId } = given;
    const flight = frame.flights.get(String(requestId));
    if (type === "register-tools" || type === "tools-updated") this.#listed(frame, type, given);
    else if (type === "tool-result") {
      frame.flights.delete(String(requestId));
      const { success, payload } = given;
      const valid = success === true ? pageChecks.isObject(payload) : typeof payload === "string";
      if (valid) flight?.resolve({ success: success === true, payload });
      else flight?.reject(new RpcError(FAILED, "The page's answer was not one."));
    } else if (type === "tool-progress") {
      const { progress, total, message: words } = given;
      if (!flight || typeof progress !== "number") return;
      const more = { ...(typeof total === "number" ? { total } : {}), ...(typeof words === "string" ? { message: words } : {}) };
      this.#hub?.notify("tool.progress", { dispatchId: flight.id, progress, ...more });
    } else if (type === "confirm-action") void this.#confirm(frame, flight, given);
    else if (type === "wake-me") {
      const wait = Math.min(Number(given["after"]) || 0, 1000);
      setTimeout(() => this.#isHere(frame) && send(frame.port, { type: "wake", wakeId: given["wakeId"] }), wait);
    } else throw new Error(`its type is not known: ${String(type).slice(0, 50)}`);
  }

  /**
   * @param {Frame} frame
   * @param {"register-tools" | "tools-updated"} type
   * @param {Params} given
   */
  #listed(frame, type, given) {
    const { tools, refused } = pageChecks.tools(given["tools"]);
    if (refused > 0) this.#note(`${refused} tools of ${frame.origin} were not taken: they are not valid, or too many.`);
    frame.tools = tools;
    frame.capabilities = given["capabilities"];
    frame.registered = true;
    this.#tell(frame, type === "register-tools" ? "browser/registerTools" : "browser/updateTools");
  }

  /**
   * @param {Frame} frame
   * @param {"browser/registerTools" | "browser/updateTools"} method
   */
  #tell(frame, method) {
    const hub = this.#hub;
    if (!hub || !frame.registered) return;
    frame.telling = frame.telling.then(async () => {
      if (hub !== this.#hub || !this.#isHere(frame)) return;
      const { tools, where } = frame;
      // An empty list registers nothing.
      if (tools.length === 0 || (method === "browser/updateTools" && frame.told)) {
        hub.notify("browser/updateTools", { ...where, tools });
        return;
      }
      const tab = await chrome.tabs.get(where.tabId).catch(() => null);
      if (hub !== this.#hub || !this.#isHere(frame)) return;
      frame.told = true;
      const browser = pageChecks.isObject(frame.capabilities) ? frame.capabilities : {};
      const { origin, url } = frame;
      const tabUrl = tab?.url ?? (where.frameId === 0 ? url : "");
      const page = { origin, url, tabUrl, title: tab?.title ?? "" };
      hub.notify("browser/registerTools", { ...where, ...page, tools: frame.tools, capabilities: browser });
    });
  }

  /**
   * @param {Frame} frame
   * @param {Flight | undefined} flight only a tool that was called may ask
   * @param {Params} given
   */
  async #confirm(frame, flight, given) {
    const { confirmId, message, details } = given;
    let answer = { confirmed: false, reason: "There is no hub to ask." };
    try {
      if (!flight) throw new Error("no call of ours runs there");
      if (flight.asking) throw new Error("it has asked one already");
      if (typeof confirmId !== "string" || typeof message !== "string") throw new Error("the question is not valid");
      const { toolName, id } = flight;
      const shown = details === null || details === undefined ? {} : { details };
      const question = { ...frame.where, toolName, callId: String(id), message, ...shown };
      flight.asking = true;
      const given = await this.#hub?.request("browser/elicitConfirmation", question).finally(() => (flight.asking = false));
      if (pageChecks.isObject(given)) answer = { confirmed: given["confirmed"] === true, reason: String(given["reason"] ?? "") };
    } catch (error) {
      answer.reason = textOf(error);
      this.#note(`A page's question was not put to anyone: ${textOf(error)}`);
    }
    if (this.#isHere(frame)) send(frame.port, { type: "confirm-result", confirmId, ...answer });
  }
}

/**
 * @param {chrome.runtime.Port} port
 * @param {Params} message
 */
function send(port, message) {
  try {
    port.postMessage(message);
  } catch {
    // The frame has just gone: that is told by the port itself, and what waits for an answer fails there.
  }
}

/** @param {Frame} frame */
function keyOf({ where }) {
  return `${where.tabId} ${where.frameId}`;
}
