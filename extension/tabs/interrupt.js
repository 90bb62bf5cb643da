/**
 * Ending a script of the hub's that runs in a page and does not come to an end.
 *
 * The browser grants `Runtime.terminateExecution` to its own tools and not to extensions. What it grants is to pause a
 * script and to end it on resuming, if the Debugger domain was enabled before the script began. That is dear (5 ms, and
 * more on a page with many scripts), so only a call that asks for it is armed; others end by their time limit.
 */

import { textOf } from "../link/rpc.js";

/** @typedef {chrome.debugger.DebuggerSession} Session */

const PROBE_MS = 100;

export class Interrupts {
  /** Sessions whose Debugger domain we have enabled. @type {Map<string, { calls: number, stopping: boolean }>} */
  #armed = new Map();
  #note;

  /** @param {(message: string) => void} note */
  constructor(note) {
    this.#note = note;
  }

  /**
   * Make the next script of a session one that can be ended; gives back how to undo it.
   * @param {Session} session
   */
  arm(session) {
    const key = keyOf(session);
    const armed = this.#armed.get(key) ?? { calls: 0, stopping: false };
    this.#armed.set(key, armed);
    if (armed.calls++ === 0) this.#send(session, "Debugger.enable");
    return () => {
      if (--armed.calls > 0) return;
      this.#armed.delete(key);
      this.#send(session, "Debugger.disable");
    };
  }

  /**
   * End the script that runs in a session. While a script merely waits for a promise nothing runs, and ending "what
   * runs" would hit the next script of the page itself: so it is done only if the page does not answer.
   * @param {Session} session
   */
  async stop(session) {
    const armed = this.#armed.get(keyOf(session));
    try {
      const probe = chrome.debugger.sendCommand(session, "Runtime.evaluate", { expression: "0" });
      const busy = new Promise((resolve) => setTimeout(() => resolve("busy"), PROBE_MS));
      if ((await Promise.race([probe, busy])) !== "busy") return;
      if (armed) armed.stopping = true;
      await chrome.debugger.sendCommand(session, armed ? "Debugger.pause" : "Runtime.terminateExecution");
      await probe;
    } catch (error) {
      this.#note(`A cancelled script runs on until its time limit: ${textOf(error)}`);
    }
  }

  /**
   * A script was paused: by us, or by a `debugger` statement of the page, which must not stop it.
   * @param {Session} session
   * @param {Record<string, unknown>} params of Debugger.paused
   */
  paused(session, params) {
    const armed = this.#armed.get(keyOf(session));
    if (!armed) return;
    this.#send(session, "Debugger.resume", armed.stopping && isOurs(params) ? { terminateOnResume: true } : {});
  }

  /**
   * @param {Session} session
   * @param {string} method
   * @param {Record<string, unknown>} [params]
   */
  #send(session, method, params) {
    chrome.debugger.sendCommand(session, method, params).catch(() => {
      // The tab is gone, and the script with it.
    });
  }
}

/** @param {Session} session */
function keyOf({ tabId, sessionId }) {
  return `${tabId} ${sessionId ?? ""}`;
}

/**
 * Whether what was paused began as a script of ours: one of the page's has the page's address.
 * @param {Record<string, unknown>} params
 */
function isOurs({ callFrames }) {
  const bottom = Array.isArray(callFrames) ? callFrames.at(-1) : undefined;
  return !/^(https?|file|data|blob):/.test(String(bottom?.url));
}
