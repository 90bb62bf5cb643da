/**
 * The debugger of a tab: attached on first use, shared by all commands, detached when idle.
 *
 * Owns the attached tabs, their child sessions (frames in other processes, workers), the running commands and the event
 * subscriptions. The browser shows a bar while a debugger is attached, so it is detached as soon as possible.
 */

import { FAILED, RpcError, textOf } from "../link/rpc.js";
import { Children, resume } from "./children.js";
import { DocumentStatus } from "./document_status.js";
import { cdpText, failure, noTab, ownPage } from "./errors.js";
import { keepFocus } from "./focus.js";
import { runChained, wantsToProceed } from "./chained_commands.js";
import { Interrupts } from "./interrupt.js";
import { couldShowOwn, isOwn, refuseOwnPages } from "./extension_pages.js";
import { isOn, navigated, restrictToSite } from "./site_guard.js";
import { isStopped, refuseStopped, stoppedError } from "./stopped.js";

/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {Record<string, unknown>} CdpObject */
/** @typedef {{ reject: (error: Error) => void, owner: string | undefined, ahead: CdpObject[] }} Running */
/** @typedef {{ method: string, params: CdpObject }} Command */

/**
 * @typedef {object} CommandOptions
 * @property {string | undefined} [sessionId]
 * @property {boolean | undefined} [interruptible]
 * @property {readonly Command[]} [ahead] sent first, in order; the results of scripts among them are in the command's
 * @property {readonly Command[]} [follow] sent if the command, or one ahead, is a script and its result has `go: true`
 * @property {string} [owner] who sent the command
 */

/**
 * @typedef {object} Attachment
 * @property {Promise<void> | null} attaching
 * @property {boolean} crashed
 * @property {string} url that the tab shows, kept by events: commands must not wait for another query
 * @property {number} dialogs how many dialogs have opened
 * @property {Set<(text: string) => void>} dialogListeners called with the text of a dialog
 * @property {number} used when a command last began or ended
 * @property {Set<Running>} running
 * @property {Children} children
 * @property {Map<string, readonly string[]>} subscriptions by owner: event names, or "Domain." prefixes
 * @property {readonly string[]} events all subscribed events; with any, the tab is in use
 * @property {DocumentStatus} document the HTTP status of its page
 * @property {ReturnType<typeof setTimeout> | undefined} timer
 */

/**
 * @typedef {object} Listener
 * @property {(event: { tabId: number, sessionId?: string, method: string, params: CdpObject }, owners: string[]) => void} event
 * @property {(tabId: number, reason: string) => void} detached
 * @property {(tabId: number) => void} stopped the person pressed the browser's Cancel button
 * @property {(attached: number[]) => void} changed
 * @property {(message: string) => void} note
 */

const PROTOCOL = "1.3";
const DETACHED = "The debugger was detached from the tab";
const CRASHED = "The tab crashed. Reload it.";
const CRASHED_DURING = "The tab crashed during the command. Reload it.";
/** Commands that run a script, which is stopped on cancellation. */
const SCRIPTS = ["Runtime.evaluate", "Runtime.callFunctionOn"];
/** The default timeout of a script. */
const SCRIPT_MS = 30_000;
const PAUSED = "Fetch.requestPaused";
/** An event of ours: the results of scripts ahead of a command that a dialog holds up. */
const AHEAD = "Tabhub.ahead";
/** Maximum length of a dialog's text. */
const MAX_DIALOG_TEXT = 1_000;
/** Commands that work after a crash. */
const AFTER_CRASH = ["Page.reload", "Page.navigate"];

export class Debugger {
  idleMs = 60_000;
  /** @type {Map<number, Attachment>} */
  #attachments = new Map();
  /** @type {Promise<unknown>} */
  #cleanedUp = Promise.resolve();
  #listener;
  #interrupts;

  /** @param {Listener} listener */
  constructor(listener) {
    this.#listener = listener;
    this.#interrupts = new Interrupts(listener.note);
  }

  /** Listen for events, and detach debuggers of a previous worker; call this while the worker starts. */
  start() {
    chrome.debugger.onEvent.addListener((source, method, params) => this.#event(source, method, params));
    chrome.debugger.onDetach.addListener((source, reason) => {
      if (source.tabId === undefined) return;
      if (reason === "canceled_by_user") void this.#listener.stopped(source.tabId);
      this.#detached(source.tabId, reason);
    });
    // Before the extension's page has loaded: a command that waits for an element would find it there.
    chrome.tabs.onUpdated.addListener((tabId, { url }, tab) => {
      if (isOwn(url)) this.#detachFromOwnPage(tabId);
      const attachment = this.#attachments.get(tabId);
      if (attachment) attachment.url = urlOf(tab);
    });
    this.#cleanedUp = this.#cleanUp().catch((error) => this.#listener.note(`Debuggers could not be listed: ${textOf(error)}`));
  }

  /** The attached tabs. */
  attached() {
    return [...this.#attachments].filter(([, attachment]) => !attachment.attaching).map(([tabId]) => tabId);
  }

  /**
   * Run one command of the Chrome DevTools Protocol.
   * @param {number} tabId
   * @param {string} method
   * @param {CdpObject} params
   * @param {Call} call
   * @param {CommandOptions} [options]
   * @returns {Promise<CdpObject>}
   */
  async command(tabId, method, params, call, { sessionId, interruptible, ahead = [], follow = [], owner } = {}) {
    refuseOwnPages(tabId, [...ahead, { method, params }, ...follow], sessionId !== undefined);
    const attachment = this.#attachments.get(tabId) ?? this.#attach(tabId);
    if (attachment.attaching) await attachment.attaching;
    if (attachment.crashed && !AFTER_CRASH.includes(method)) throw new RpcError(FAILED, CRASHED);
    const { site } = call;
    if (site !== undefined) {
      const url = await requireSite(tabId, attachment, site);
      ahead = ahead.map((each) => restrictToSite(each, site, url));
      ({ params } = restrictToSite({ method, params }, site, url));
    }
    // Cancelled while the debugger attached: nothing has run.
    if (call.cancelled) return {};
    attachment.used = Date.now();
    const session = sessionId === undefined ? { tabId } : { tabId, sessionId };
    const { promise, resolve, reject } = /** @type {PromiseWithResolvers<CdpObject>} */ (Promise.withResolvers());
    /** @type {Running} */
    const running = { reject, owner, ahead: [] };
    attachment.running.add(running);
    const script = SCRIPTS.includes(method);
    // A hub that subscribes to the Debugger domain uses it itself.
    const armed = script && interruptible && !wants(attachment.events, "Debugger.paused");
    const disarm = armed ? this.#interrupts.arm(session) : null;
    if (script) call.onCancel = () => void this.#interrupts.stop(session);
    const given = method === "Runtime.evaluate" ? { timeout: SCRIPT_MS, ...params } : params;
    keepFocus(tabId, [...ahead, { method, params }]);
    const scripts = sendAhead(session, ahead, running.ahead);
    const { dialogs } = attachment;
    chrome.debugger.sendCommand(session, method, given).then(
      async (result) => {
        await scripts;
        const found = /** @type {CdpObject} */ (result ?? {});
        if (running.ahead.length > 0) found["ahead"] = running.ahead;
        const go = [found, ...running.ahead].some(wantsToProceed);
        // After a dialog the hub no longer expects the commands that would follow.
        const proceed = follow.length > 0 && go && attachment.dialogs === dialogs && !call.cancelled;
        const onSite = proceed && site !== undefined ? requireSite(tabId, attachment, site) : Promise.resolve();
        resolve(proceed ? runChained(session, found, follow, onSite) : found);
      },
      (error) => void refusal(tabId, cdpText(error)).then(reject),
    );
    try {
      return await promise;
    } finally {
      disarm?.();
      attachment.running.delete(running);
      attachment.used = Date.now();
    }
  }

  /**
   * The HTTP status of the page in a tab, if its response was seen; null if it was not, undefined if nobody looks.
   * @param {number} tabId
   * @param {string} [url] of the page, if it is known
   */
  documentStatus(tabId, url) {
    const attachment = this.#attachments.get(tabId);
    if (!attachment || !DocumentStatus.EVENTS.every((method) => wants(attachment.events, method))) return undefined;
    return attachment.document.of(url ?? "");
  }

  /**
   * Do something in a tab whose Page domain is enabled. If a dialog opens first, which would block it, the result is the
   * dialog's text.
   * @param {number} tabId
   * @param {() => Promise<CdpObject>} work
   * @returns {Promise<CdpObject>}
   */
  async orDialog(tabId, work) {
    const listeners = this.#attachments.get(tabId)?.dialogListeners;
    const { promise, resolve } = /** @type {PromiseWithResolvers<CdpObject>} */ (Promise.withResolvers());
    const onDialog = (/** @type {string} */ text) => resolve({ dialog: text });
    listeners?.add(onDialog);
    try {
      return await Promise.race([work(), promise]);
    } finally {
      listeners?.delete(onDialog);
    }
  }

  /**
   * Subscribe to events of a tab; an empty list ends the subscription.
   * @param {number} tabId
   * @param {readonly string[]} events
   * @param {string} owner the subscriber
   * @param {readonly Command[]} [first] commands for new frames in other processes, and workers, before they run
   */
  async subscribe(tabId, events, owner, first = []) {
    const known = this.#attachments.get(tabId);
    if (!known && events.length === 0) return;
    const attachment = known ?? this.#attach(tabId);
    const before = attachment.subscriptions.get(owner) ?? [];
    attachment.subscriptions.set(owner, events);
    attachment.events = [...attachment.subscriptions.values()].flat();
    attachment.children.setFirst(owner, first);
    attachment.used = Date.now();
    if (attachment.attaching) return attachment.attaching.then(() => attachment.children.refresh());
    attachment.children.refresh();
    // Existing children were announced before the subscription.
    const announced = "Target.attachedToTarget";
    if (wants(before, announced) || !wants(events, announced)) return;
    for (const params of attachment.children.announced()) this.#listener.event({ tabId, method: announced, params }, [owner]);
  }

  /**
   * End the subscriptions of owners that have disconnected.
   * @param {(owner: string) => boolean} isDisconnected
   */
  unsubscribe(isDisconnected) {
    for (const attachment of this.#attachments.values()) {
      const intercepted = wants(attachment.events, PAUSED);
      for (const owner of [...attachment.subscriptions.keys()].filter(isDisconnected)) {
        attachment.subscriptions.delete(owner);
        attachment.children.forget(owner);
      }
      attachment.events = [...attachment.subscriptions.values()].flat();
      if (attachment.attaching) continue;
      attachment.children.refresh();
      // Otherwise intercepted requests would wait for an owner that has disconnected.
      if (intercepted && !wants(attachment.events, PAUSED)) attachment.children.all("Fetch.disable", {});
    }
  }

  /** @param {number} tabId */
  #attach(tabId) {
    /** @type {Attachment} */
    const attachment = {
      attaching: null,
      crashed: false,
      url: "",
      dialogs: 0,
      dialogListeners: new Set(),
      used: Date.now(),
      running: new Set(),
      children: new Children(tabId),
      subscriptions: new Map(),
      events: [],
      document: new DocumentStatus(),
      timer: undefined,
    };
    this.#attachments.set(tabId, attachment);
    attachment.attaching = this.#attachTo(tabId, attachment).then(
      () => {
        attachment.attaching = null;
        if (this.#attachments.get(tabId) !== attachment) throw noTab(tabId, "It was closed while the debugger attached.");
        attachment.used = Date.now();
        this.#detachWhenIdle(tabId, attachment, this.idleMs);
        this.#listener.changed(this.attached());
      },
      (error) => {
        if (this.#attachments.get(tabId) === attachment) this.#attachments.delete(tabId);
        throw failure(error, tabId);
      },
    );
    return attachment;
  }

  /**
   * @param {number} tabId
   * @param {Attachment} attachment
   */
  async #attachTo(tabId, attachment) {
    await this.#cleanedUp;
    const tab = await chrome.tabs.get(tabId);
    attachment.url = urlOf(tab);
    refuseStopped(tabId);
    if (isOwn(tab.url) || isOwn(tab.pendingUrl)) throw ownPage(tabId);
    if (tab.discarded) throw new RpcError(FAILED, `Tab ${tabId} is unloaded to save memory. Reload it first.`);
    await chrome.debugger.attach({ tabId }, PROTOCOL);
    if (await couldShowOwn(tabId)) {
      await chrome.debugger.detach({ tabId });
      throw ownPage(tabId, "could go back to");
    }
    await chrome.debugger.sendCommand({ tabId }, "Inspector.enable");
    await chrome.debugger.sendCommand({ tabId }, "Target.setAutoAttach", attachment.children.autoAttach());
  }

  /** A debugger outlives the worker that attached it. Its child sessions are unknown, so it is detached. */
  async #cleanUp() {
    const targets = await chrome.debugger.getTargets();
    const left = targets.flatMap(({ attached, tabId }) => (attached && tabId !== undefined ? [tabId] : []));
    // Refused for debuggers of others, such as DevTools.
    await Promise.allSettled(left.map((tabId) => chrome.debugger.detach({ tabId })));
  }

  /**
   * @param {number} tabId
   * @param {Attachment} attachment
   * @param {number} ms
   */
  #detachWhenIdle(tabId, attachment, ms) {
    attachment.timer = setTimeout(() => {
      const left = attachment.used + this.idleMs - Date.now();
      if (left > 0) return this.#detachWhenIdle(tabId, attachment, left);
      if (attachment.running.size > 0 || attachment.events.length > 0) return this.#detachWhenIdle(tabId, attachment, this.idleMs);
      this.#detached(tabId, "idle");
      chrome.debugger.detach({ tabId }).catch((error) => {
        this.#listener.note(`The debugger could not be detached from tab ${tabId}: ${textOf(error)}`);
      });
    }, ms);
  }

  /**
   * The person stops the agents in a tab by our own button, as by the browser's Cancel.
   * @param {number} tabId
   */
  stop(tabId) {
    void chrome.debugger.detach({ tabId }).catch(() => {}); // it may not be attached
    this.#detached(tabId, "canceled_by_user");
  }

  /**
   * Detach from a tab that has navigated to a page of the extension.
   * @param {number} tabId
   */
  #detachFromOwnPage(tabId) {
    const attachment = this.#attachments.get(tabId);
    if (!attachment) return;
    const attached = attachment.attaching ?? Promise.resolve();
    this.#detached(tabId, "own page");
    // It may already be detached: attaching failed, or the browser detached it.
    void attached.catch(() => {}).then(() => chrome.debugger.detach({ tabId }).catch(() => {}));
  }

  /**
   * @param {number} tabId
   * @param {string} reason
   */
  #detached(tabId, reason) {
    const attachment = this.#attachments.get(tabId);
    if (!attachment) return;
    this.#attachments.delete(tabId);
    clearTimeout(attachment.timer);
    void refusal(tabId, `detached: ${reason}`).then((error) => {
      for (const running of attachment.running) running.reject(error);
    });
    this.#listener.detached(tabId, reason);
    this.#listener.changed(this.attached());
  }

  /**
   * @param {chrome.debugger.DebuggerSession} source
   * @param {string} method
   * @param {object | undefined} given
   */
  #event({ tabId, sessionId }, method, given) {
    if (tabId === undefined) return;
    const attachment = this.#attachments.get(tabId);
    const params = /** @type {CdpObject} */ (given ?? {});
    if (!attachment) {
      // An event of a debugger that is being detached.
      if (method === "Target.attachedToTarget") resume({ tabId, sessionId: String(params["sessionId"]) });
      return;
    }
    if (method === "Target.attachedToTarget") {
      attachment.children.attached(params);
    } else if (method === "Target.detachedFromTarget") {
      attachment.children.detached(params);
    } else if (sessionId === undefined && method === "Inspector.targetCrashed") {
      attachment.crashed = true;
      for (const running of attachment.running) running.reject(new RpcError(FAILED, CRASHED_DURING));
    } else if (sessionId === undefined && method === "Inspector.targetReloadedAfterCrash") {
      attachment.crashed = false;
    } else if (method === "Page.javascriptDialogOpening") {
      attachment.dialogs += 1;
      for (const { owner, ahead } of attachment.running) {
        if (owner !== undefined && ahead.length > 0) this.#listener.event({ tabId, method: AHEAD, params: { ahead } }, [owner]);
      }
      for (const listener of attachment.dialogListeners) listener(String(params["message"]).slice(0, MAX_DIALOG_TEXT));
    } else if (method === PAUSED && isOwn(/** @type {CdpObject} */ (params["request"])["url"])) {
      return this.#detachFromOwnPage(tabId); // a reply to the request would replace the extension's page
    } else if (method === "Debugger.paused") {
      this.#interrupts.paused(sessionId === undefined ? { tabId } : { tabId, sessionId }, params);
    }
    if (sessionId === undefined) attachment.document.event(method, params);
    const owners = [...attachment.subscriptions].filter(([, events]) => wants(events, method)).map(([owner]) => owner);
    if (owners.length === 0) return;
    const event = sessionId === undefined ? { tabId, method, params } : { tabId, sessionId, method, params };
    this.#listener.event(event, owners);
  }
}

/**
 * Send commands that go ahead of another one. Their errors are not reported: they also affect the command.
 * @param {chrome.debugger.DebuggerSession} session
 * @param {readonly Command[]} commands
 * @param {CdpObject[]} results gets those of the scripts; the promise is for them
 */
function sendAhead(session, commands, results) {
  const scripts = commands.map(({ method, params }) => {
    const sent = chrome.debugger.sendCommand(session, method, params).catch(() => ({}));
    return SCRIPTS.includes(method) ? sent.then((result) => void results.push(/** @type {CdpObject} */ (result ?? {}))) : null;
  });
  return Promise.all(scripts);
}

/**
 * The URL of a tab. One that was just opened has only a pending URL.
 * @param {chrome.tabs.Tab} tab
 */
function urlOf(tab) {
  return tab.url || tab.pendingUrl || "";
}

/**
 * Refuse a command if its tab shows another site. Returns the URL that it shows.
 * @param {number} tabId
 * @param {Attachment} attachment
 * @param {string} site
 */
async function requireSite(tabId, attachment, site) {
  if (!isOn(attachment.url, site)) {
    // The event of a navigation can arrive after the answer that the hub knows it from.
    const tab = await chrome.tabs.get(tabId).catch(() => null);
    if (tab) attachment.url = urlOf(tab);
    // The command itself refuses a closed tab.
    if (tab && !isOn(attachment.url, site)) throw navigated();
  }
  return attachment.url;
}

/**
 * Why a command failed. A debugger is detached when its tab closes, and when the tab navigates to a page that cannot be debugged.
 * @param {number} tabId
 * @param {string} text
 */
async function refusal(tabId, text) {
  if (isStopped(tabId)) return stoppedError(tabId);
  if (!/detached|not attached/i.test(text)) return new RpcError(FAILED, text);
  const tab = await chrome.tabs.get(tabId).catch(() => null);
  if (!tab) return noTab(tabId, "It was closed.");
  if (isOwn(tab.url)) return ownPage(tabId);
  return new RpcError(FAILED, `${DETACHED}. The tab may have navigated to a page that cannot be debugged. (${text})`);
}

/**
 * @param {readonly string[]} events
 * @param {string} method
 */
function wants(events, method) {
  return events.some((wanted) => wanted === method || (wanted.endsWith(".") && method.startsWith(wanted)));
}
