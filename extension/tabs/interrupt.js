/**
 * Stopping a script of the hub that runs too long in a page.
 *
 * The browser refuses `Runtime.terminateExecution` to extensions. It allows pausing a script and terminating it on resume,
 * if the Debugger domain was enabled before the script began. That takes 5 ms, and more on a page with many scripts, so
 * it is done only for calls that request it; others end at their timeout.
 */

import { textOf } from "../link/rpc.js";

/** @typedef {chrome.debugger.DebuggerSession} Session */

const PROBE_MS = 100;

export class Interrupts {
  /** Sessions in which the Debugger domain was enabled here. @type {Map<string, { calls: number, stopping: boolean }>} */
  #armed = new Map();
  #note;

  /** @param {(message: string) => void} note */
  constructor(note) {
    this.#note = note;
  }

  /**
   * Make the next script of a session interruptible. Returns a function that undoes it.
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
   * Stop the running script of a session, only if the page does not answer: while a script waits for a promise, stopping
   * would hit the next script of the page itself.
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
      this.#note(`A cancelled script runs until its timeout: ${textOf(error)}`);
    }
  }

  /**
   * A script was paused: by `stop`, or by a `debugger` statement of the page, which must not block it.
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
      // The tab was closed.
    });
  }
}

/** @param {Session} session */
function keyOf({ tabId, sessionId }) {
  return `${tabId} ${sessionId ?? ""}`;
}

/**
 * Whether the paused script is one of the hub: scripts of the page have a URL.
 * @param {Record<string, unknown>} params
 */
function isOurs({ callFrames }) {
  const bottom = Array.isArray(callFrames) ? callFrames.at(-1) : undefined;
  return !/^(https?|file|data|blob):/.test(String(bottom?.url));
}
