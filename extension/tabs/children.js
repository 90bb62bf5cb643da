/**
 * The child sessions of a tab that is debugged: frames in other processes, and workers.
 *
 * Owns what a new child is told before it runs, and that each of them runs: none is ever left waiting for us, whatever
 * becomes of the hub. It knows nothing of what the commands mean.
 */

/** @typedef {Record<string, unknown>} CdpObject */
/** @typedef {{ method: string, params: CdpObject }} Command */

/** Kinds that are told something first; a worker that is shared is not the tab's. */
const TOLD = ["iframe", "worker"];

export class Children {
  #tabId;
  #waits = false;
  /** @type {Map<string, CdpObject>} the Target.attachedToTarget of each */
  #known = new Map();
  /** @type {Map<string, readonly Command[]>} what a new one is told first, by who wants it */
  #first = new Map();

  /** @param {number} tabId */
  constructor(tabId) {
    this.#tabId = tabId;
  }

  /** How a session attaches to its own children: each to its own, so frames within frames are asked in turn. */
  autoAttach() {
    this.#waits = [...this.#first.values()].some((commands) => commands.length > 0);
    return { autoAttach: true, waitForDebuggerOnStart: this.#waits, flatten: true };
  }

  /** The events that announced those that are there. */
  announced() {
    return this.#known.values();
  }

  /**
   * Choose what new ones are told before they run; they wait for it only while there is something to tell.
   * @param {string} owner who wants it
   * @param {readonly Command[]} commands
   */
  tell(owner, commands) {
    this.#first.set(owner, commands);
  }

  /**
   * Someone is gone.
   * @param {string} owner
   */
  forget(owner) {
    this.#first.delete(owner);
  }

  /** Let what was chosen take effect, in a tab that is attached. */
  refresh() {
    const before = this.#waits;
    const how = this.autoAttach();
    if (this.#waits !== before) this.all("Target.setAutoAttach", how);
  }

  /**
   * A new one is there.
   * @param {CdpObject} params of its Target.attachedToTarget
   */
  taken(params) {
    const sessionId = String(params["sessionId"]);
    const session = { tabId: this.#tabId, sessionId };
    const waits = params["waitingForDebugger"] === true;
    // Whoever is told of it later is told of one that runs.
    this.#known.set(sessionId, { ...params, waitingForDebugger: false });
    send(session, "Target.setAutoAttach", this.autoAttach());
    if (!waits) return;
    const { type } = /** @type {{ type?: unknown }} */ (params["targetInfo"] ?? {});
    const commands = TOLD.includes(String(type)) ? [...this.#first.values()].flat() : [];
    for (const { method, params: given } of commands) send(session, method, given);
    letRun(session);
  }

  /**
   * One is gone.
   * @param {CdpObject} params of its Target.detachedFromTarget
   */
  left(params) {
    this.#known.delete(String(params["sessionId"]));
  }

  /**
   * Send the tab and all its children a command, without waiting for it.
   * @param {string} method
   * @param {CdpObject} params
   */
  all(method, params) {
    const tabId = this.#tabId;
    send({ tabId }, method, params);
    for (const sessionId of this.#known.keys()) send({ tabId, sessionId }, method, params);
  }
}

/**
 * Let a child run that waits for a debugger.
 * @param {chrome.debugger.DebuggerSession} session
 */
export function letRun(session) {
  send(session, "Runtime.runIfWaitingForDebugger", {});
}

/**
 * @param {chrome.debugger.DebuggerSession} session
 * @param {string} method
 * @param {CdpObject} params
 */
function send(session, method, params) {
  chrome.debugger.sendCommand(session, method, params).catch(() => {
    // A child that is gone again, or knows no such thing: a worker has no Page, and no children of some kinds.
  });
}
