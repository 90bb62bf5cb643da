/**
 * The debugger of a tab: attached when first used, shared by all commands, let go when idle.
 *
 * Owns which tabs we are attached to, their child sessions (frames in other processes, workers), the commands in
 * flight and which events the hub wants. A debugged tab shows a bar to the person: it must not stay for nothing.
 */

import { FAILED, RpcError, textOf } from "../link/rpc.js";
import { Children, letRun } from "./children.js";
import { cdpText, failure, noTab, ownPage } from "./errors.js";
import { keepFocus } from "./focus.js";
import { followed, saysGo } from "./chained_commands.js";
import { Interrupts } from "./interrupt.js";
import { couldShowOwn, isOwn, keepOut } from "./extension_pages.js";
import { bound, stillAt } from "./site_guard.js";

/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {Record<string, unknown>} CdpObject */
/** @typedef {{ reject: (error: Error) => void }} Flight */
/** @typedef {{ method: string, params: CdpObject }} Command */

/**
 * @typedef {object} How
 * @property {string | undefined} [sessionId]
 * @property {boolean | undefined} [interruptible]
 * @property {readonly Command[]} [ahead] sent first, in order, without waiting for them
 * @property {readonly Command[]} [follow] sent when the script that is the command says so: its value has `go: true`
 */

/**
 * @typedef {object} Attachment
 * @property {Promise<void> | null} attaching
 * @property {boolean} crashed
 * @property {number} dialogs how many have opened so far
 * @property {Set<(words: string) => void>} opened who is told of the next
 * @property {number} used when a command last ended or began
 * @property {Set<Flight>} flights
 * @property {Children} children
 * @property {Map<string, readonly string[]>} wanted by who wants them: names, or "Domain." prefixes
 * @property {readonly string[]} events all of these; while there are any, the tab is in use
 * @property {ReturnType<typeof setTimeout> | undefined} timer
 */

/**
 * @typedef {object} Outlet
 * @property {(event: { tabId: number, sessionId?: string, method: string, params: CdpObject }, wantedBy: string[]) => void} event
 * @property {(tabId: number, reason: string) => void} detached
 * @property {(attached: number[]) => void} changed
 * @property {(message: string) => void} note
 */

const PROTOCOL = "1.3";
const DETACHED = "The debugger was detached from the tab";
const CRASHED = "The tab crashed. Reload it.";
const CRASHED_UNDER = "The tab crashed under the command. Reload it.";
/** Commands that run a script of the hub's, which cancelling must end. */
const SCRIPTS = ["Runtime.evaluate", "Runtime.callFunctionOn"];
/** A script that blocks its page for that long is ended, unless the hub gives another limit. */
const SCRIPT_MS = 30_000;
const PAUSED = "Fetch.requestPaused";
/** Characters of a dialog that are told. */
const MOST_WORDS = 1_000;
/** What still works on a page that crashed. */
const AFTER_CRASH = ["Page.reload", "Page.navigate"];

export class Debugger {
  idleMs = 60_000;
  /** @type {Map<number, Attachment>} */
  #held = new Map();
  /** @type {Promise<unknown>} */
  #tidied = Promise.resolve();
  #outlet;
  #interrupts;

  /** @param {Outlet} outlet */
  constructor(outlet) {
    this.#outlet = outlet;
    this.#interrupts = new Interrupts(outlet.note);
  }

  /** Listen to the browser, and let go of what a worker before this one held; call this while the worker starts. */
  start() {
    chrome.debugger.onEvent.addListener((source, method, params) => this.#event(source, method, params));
    chrome.debugger.onDetach.addListener((source, reason) => {
      if (source.tabId !== undefined) this.#lost(source.tabId, reason);
    });
    // Before its page is there: what waits for an element would find ours.
    chrome.tabs.onUpdated.addListener((tabId, { url }) => isOwn(url) && this.#leave(tabId));
    this.#tidied = this.#tidy().catch((error) => this.#outlet.note(`Debuggers could not be listed: ${textOf(error)}`));
  }

  /** The tabs we are attached to. */
  attached() {
    return [...this.#held].filter(([, held]) => !held.attaching).map(([tabId]) => tabId);
  }

  /**
   * Run one command of the Chrome DevTools Protocol.
   * @param {number} tabId
   * @param {string} method
   * @param {CdpObject} params
   * @param {Call} call
   * @param {How} [how]
   * @returns {Promise<CdpObject>}
   */
  async command(tabId, method, params, call, { sessionId, interruptible, ahead = [], follow = [] } = {}) {
    keepOut(tabId, [...ahead, { method, params }, ...follow], sessionId !== undefined);
    const held = this.#held.get(tabId) ?? this.#attach(tabId);
    if (held.attaching) await held.attaching;
    if (held.crashed && !AFTER_CRASH.includes(method)) throw new RpcError(FAILED, CRASHED);
    const { site } = call;
    if (site !== undefined) {
      const url = await stillAt(tabId, site);
      ahead = ahead.map((each) => bound(each, site, url));
      ({ params } = bound({ method, params }, site, url));
    }
    // Cancelled while it was attached: nothing has run, and nothing shall.
    if (call.cancelled) return {};
    held.used = Date.now();
    const session = sessionId === undefined ? { tabId } : { tabId, sessionId };
    const { promise, resolve, reject } = /** @type {PromiseWithResolvers<CdpObject>} */ (Promise.withResolvers());
    const flight = { reject };
    held.flights.add(flight);
    const script = SCRIPTS.includes(method);
    // A hub that listens to the Debugger domain uses it itself, and is not to be disturbed.
    const armed = script && interruptible && !wants(held.events, "Debugger.paused");
    const disarm = armed ? this.#interrupts.arm(session) : null;
    if (script) call.onCancel = () => void this.#interrupts.stop(session);
    const given = method === "Runtime.evaluate" ? { timeout: SCRIPT_MS, ...params } : params;
    // What keeps one of these from its end keeps the command they lead to from it as well, and is told there.
    keepFocus(tabId, [...ahead, { method, params }]);
    for (const each of ahead) chrome.debugger.sendCommand(session, each.method, each.params).catch(() => {});
    const { dialogs } = held;
    chrome.debugger.sendCommand(session, method, given).then(
      (result) => {
        const found = /** @type {CdpObject} */ (result ?? {});
        // Behind a dialog the hub has given up on it: what comes so late would surprise the page and the person.
        const goes = follow.length > 0 && saysGo(found) && held.dialogs === dialogs && !call.cancelled;
        const where = goes && site !== undefined ? stillAt(tabId, site) : Promise.resolve();
        resolve(goes ? where.then(() => followed(session, found, follow)) : found);
      },
      (error) => void refusal(tabId, cdpText(error)).then(reject),
    );
    try {
      return await promise;
    } finally {
      disarm?.();
      held.flights.delete(flight);
      held.used = Date.now();
    }
  }

  /**
   * Do something in a tab whose Page domain is enabled. A dialog that opens first keeps it from its end; then its words
   * are the answer.
   * @param {number} tabId
   * @param {() => Promise<CdpObject>} work
   * @returns {Promise<CdpObject>}
   */
  async orDialog(tabId, work) {
    const opened = this.#held.get(tabId)?.opened;
    const { promise, resolve } = /** @type {PromiseWithResolvers<CdpObject>} */ (Promise.withResolvers());
    const tell = (/** @type {string} */ words) => resolve({ dialog: words });
    opened?.add(tell);
    try {
      return await Promise.race([work(), promise]);
    } finally {
      opened?.delete(tell);
    }
  }

  /**
   * Choose the events of a tab that are passed on; an empty list ends it.
   * @param {number} tabId
   * @param {readonly string[]} events
   * @param {string} owner who wants them
   * @param {readonly Command[]} [first] what frames in other processes, and workers, are told before they run
   */
  async subscribe(tabId, events, owner, first = []) {
    const known = this.#held.get(tabId);
    if (!known && events.length === 0) return;
    const held = known ?? this.#attach(tabId);
    const before = held.wanted.get(owner) ?? [];
    held.wanted.set(owner, events);
    held.events = [...held.wanted.values()].flat();
    held.children.tell(owner, first);
    held.used = Date.now();
    if (held.attaching) return held.attaching.then(() => held.children.refresh());
    held.children.refresh();
    // Children that are there already were announced before anyone listened.
    const announced = "Target.attachedToTarget";
    if (wants(before, announced) || !wants(events, announced)) return;
    for (const params of held.children.announced()) this.#outlet.event({ tabId, method: announced, params }, [owner]);
  }

  /**
   * Someone is gone, and wants no events any more.
   * @param {(owner: string) => boolean} gone
   */
  unsubscribe(gone) {
    for (const held of this.#held.values()) {
      const decided = wants(held.events, PAUSED);
      for (const owner of [...held.wanted.keys()].filter(gone)) {
        held.wanted.delete(owner);
        held.children.forget(owner);
      }
      held.events = [...held.wanted.values()].flat();
      if (held.attaching) continue;
      held.children.refresh();
      // Requests that were stopped would wait for somebody who is gone, and the page with them.
      if (decided && !wants(held.events, PAUSED)) held.children.all("Fetch.disable", {});
    }
  }

  /** @param {number} tabId */
  #attach(tabId) {
    /** @type {Attachment} */
    const held = {
      attaching: null,
      crashed: false,
      dialogs: 0,
      opened: new Set(),
      used: Date.now(),
      flights: new Set(),
      children: new Children(tabId),
      wanted: new Map(),
      events: [],
      timer: undefined,
    };
    this.#held.set(tabId, held);
    held.attaching = this.#attachTo(tabId, held.children).then(
      () => {
        held.attaching = null;
        if (this.#held.get(tabId) !== held) throw noTab(tabId, "It was closed while the debugger attached.");
        held.used = Date.now();
        this.#rest(tabId, held, this.idleMs);
        this.#outlet.changed(this.attached());
      },
      (error) => {
        if (this.#held.get(tabId) === held) this.#held.delete(tabId);
        throw failure(error, tabId);
      },
    );
    return held;
  }

  /**
   * @param {number} tabId
   * @param {Children} children
   */
  async #attachTo(tabId, children) {
    await this.#tidied;
    const tab = await chrome.tabs.get(tabId);
    if (isOwn(tab.url) || isOwn(tab.pendingUrl)) throw ownPage(tabId);
    if (tab.discarded) throw new RpcError(FAILED, `Tab ${tabId} is unloaded to save memory. Reload it first.`);
    await chrome.debugger.attach({ tabId }, PROTOCOL);
    if (await couldShowOwn(tabId)) {
      await chrome.debugger.detach({ tabId });
      throw ownPage(tabId, "could go back to");
    }
    await chrome.debugger.sendCommand({ tabId }, "Inspector.enable");
    await chrome.debugger.sendCommand({ tabId }, "Target.setAutoAttach", children.autoAttach());
  }

  /** A debugger outlives the worker that attached it; its child sessions are unknown to us, so it starts anew. */
  async #tidy() {
    const targets = await chrome.debugger.getTargets();
    const left = targets.flatMap(({ attached, tabId }) => (attached && tabId !== undefined ? [tabId] : []));
    // Refused where the debugger is not ours: DevTools may have the tab open.
    await Promise.allSettled(left.map((tabId) => chrome.debugger.detach({ tabId })));
  }

  /**
   * @param {number} tabId
   * @param {Attachment} held
   * @param {number} ms
   */
  #rest(tabId, held, ms) {
    held.timer = setTimeout(() => {
      const left = held.used + this.idleMs - Date.now();
      if (left > 0) return this.#rest(tabId, held, left);
      if (held.flights.size > 0 || held.events.length > 0) return this.#rest(tabId, held, this.idleMs);
      this.#lost(tabId, "idle");
      chrome.debugger.detach({ tabId }).catch((error) => {
        this.#outlet.note(`Letting go of tab ${tabId}: ${textOf(error)}`);
      });
    }, ms);
  }

  /**
   * Let go of a tab that has gone to a page of ours.
   * @param {number} tabId
   */
  #leave(tabId) {
    const held = this.#held.get(tabId);
    if (!held) return;
    const attached = held.attaching ?? Promise.resolve();
    this.#lost(tabId, "own page");
    // It may have been let go of already: attaching failed, or the browser did so itself.
    void attached.catch(() => {}).then(() => chrome.debugger.detach({ tabId }).catch(() => {}));
  }

  /**
   * @param {number} tabId
   * @param {string} reason
   */
  #lost(tabId, reason) {
    const held = this.#held.get(tabId);
    if (!held) return;
    this.#held.delete(tabId);
    clearTimeout(held.timer);
    void refusal(tabId, `detached: ${reason}`).then((error) => {
      for (const flight of held.flights) flight.reject(error);
    });
    this.#outlet.detached(tabId, reason);
    this.#outlet.changed(this.attached());
  }

  /**
   * @param {chrome.debugger.DebuggerSession} source
   * @param {string} method
   * @param {object | undefined} given
   */
  #event({ tabId, sessionId }, method, given) {
    if (tabId === undefined) return;
    const held = this.#held.get(tabId);
    const params = /** @type {CdpObject} */ (given ?? {});
    if (!held) {
      // Of a debugger we are letting go of.
      if (method === "Target.attachedToTarget") letRun({ tabId, sessionId: String(params["sessionId"]) });
      return;
    }
    if (method === "Target.attachedToTarget") {
      held.children.taken(params);
    } else if (method === "Target.detachedFromTarget") {
      held.children.left(params);
    } else if (sessionId === undefined && method === "Inspector.targetCrashed") {
      held.crashed = true;
      for (const flight of held.flights) flight.reject(new RpcError(FAILED, CRASHED_UNDER));
    } else if (sessionId === undefined && method === "Inspector.targetReloadedAfterCrash") {
      held.crashed = false;
    } else if (method === "Page.javascriptDialogOpening") {
      held.dialogs += 1;
      for (const tell of held.opened) tell(String(params["message"]).slice(0, MOST_WORDS));
    } else if (method === PAUSED && isOwn(/** @type {CdpObject} */ (params["request"])["url"])) {
      return this.#leave(tabId); // whoever answers it would write our page
    } else if (method === "Debugger.paused") {
      this.#interrupts.paused(sessionId === undefined ? { tabId } : { tabId, sessionId }, params);
    }
    const wantedBy = [...held.wanted].filter(([, events]) => wants(events, method)).map(([owner]) => owner);
    if (wantedBy.length === 0) return;
    const event = sessionId === undefined ? { tabId, method, params } : { tabId, sessionId, method, params };
    this.#outlet.event(event, wantedBy);
  }
}

/**
 * Why a command failed. A debugger is detached when its tab closes, but also when the tab goes where we may not look.
 * @param {number} tabId
 * @param {string} text
 */
async function refusal(tabId, text) {
  if (!/detached|not attached/i.test(text)) return new RpcError(FAILED, text);
  const tab = await chrome.tabs.get(tabId).catch(() => null);
  if (!tab) return noTab(tabId, "It was closed.");
  if (isOwn(tab.url)) return ownPage(tabId);
  return new RpcError(FAILED, `${DETACHED}. The tab may have gone to a page that cannot be debugged. (${text})`);
}

/**
 * @param {readonly string[]} events
 * @param {string} method
 */
function wants(events, method) {
  return events.some((wanted) => wanted === method || (wanted.endsWith(".") && method.startsWith(wanted)));
}
