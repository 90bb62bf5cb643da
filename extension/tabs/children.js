/**
 * The child sessions of a debugged tab: frames in other processes, and workers.
 *
 * Owns the commands for a new child before it runs, and that every child is resumed, whatever happens to the hub. It knows
 * nothing of what the commands mean.
 */

/** @typedef {Record<string, unknown>} CdpObject */
/** @typedef {{ method: string, params: CdpObject }} Command */

/** Types of children that get commands; a shared worker does not belong to the tab. */
const TYPES = ["iframe", "worker"];

export class Children {
  #tabId;
  #waits = false;
  /** @type {Map<string, CdpObject>} the Target.attachedToTarget of each */
  #known = new Map();
  /** @type {Map<string, readonly Command[]>} commands for a new child, by owner */
  #first = new Map();

  /** @param {number} tabId */
  constructor(tabId) {
    this.#tabId = tabId;
  }

  /** The auto-attach parameters of every session, since frames in frames attach to their own children. */
  autoAttach() {
    this.#waits = [...this.#first.values()].some((commands) => commands.length > 0);
    return { autoAttach: true, waitForDebuggerOnStart: this.#waits, flatten: true };
  }

  /** The events that announced existing children. */
  announced() {
    return this.#known.values();
  }

  /**
   * Set the commands for new children before they run; they wait only while there are any.
   * @param {string} owner
   * @param {readonly Command[]} commands
   */
  setFirst(owner, commands) {
    this.#first.set(owner, commands);
  }

  /** @param {string} owner that has disconnected */
  forget(owner) {
    this.#first.delete(owner);
  }

  /** Apply changed commands to an attached tab. */
  refresh() {
    const before = this.#waits;
    const params = this.autoAttach();
    if (this.#waits !== before) this.all("Target.setAutoAttach", params);
  }

  /** @param {CdpObject} params of Target.attachedToTarget */
  attached(params) {
    const sessionId = String(params["sessionId"]);
    const session = { tabId: this.#tabId, sessionId };
    const waits = params["waitingForDebugger"] === true;
    // Announced to later subscribers as running.
    this.#known.set(sessionId, { ...params, waitingForDebugger: false });
    send(session, "Target.setAutoAttach", this.autoAttach());
    if (!waits) return;
    const { type } = /** @type {{ type?: unknown }} */ (params["targetInfo"] ?? {});
    const commands = TYPES.includes(String(type)) ? [...this.#first.values()].flat() : [];
    for (const { method, params: given } of commands) send(session, method, given);
    resume(session);
  }

  /** @param {CdpObject} params of Target.detachedFromTarget */
  detached(params) {
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
 * Resume a child that waits for a debugger.
 * @param {chrome.debugger.DebuggerSession} session
 */
export function resume(session) {
  send(session, "Runtime.runIfWaitingForDebugger", {});
}

/**
 * @param {chrome.debugger.DebuggerSession} session
 * @param {string} method
 * @param {CdpObject} params
 */
function send(session, method, params) {
  chrome.debugger.sendCommand(session, method, params).catch(() => {
    // The child has ended, or does not have this domain: a worker has no Page.
  });
}
