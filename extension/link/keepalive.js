/**
 * Keeping the service worker alive: a ping every 20 s, which also detects a dead connection; an alarm restarts the worker.
 *
 * The browser stops a worker after 30 s of inactivity. The shortest interval of an alarm is 30 s.
 */

const PING_MS = 20_000;
const ALARM = "tabhub.revive";

/** Detects a dead connection. */
export class Heartbeat {
  #received = true;
  #timer;

  /**
   * @param {object} wiring
   * @param {() => void} wiring.ping sends a ping
   * @param {() => void} wiring.dead called when no message arrived between two pings
   * @param {number} [wiring.every]
   */
  constructor({ ping, dead, every = PING_MS }) {
    this.#timer = setInterval(() => {
      if (!this.#received) return dead();
      this.#received = false;
      ping();
    }, every);
  }

  /** Call for every message: each proves that the connection is alive. */
  received() {
    this.#received = true;
  }

  stop() {
    clearInterval(this.#timer);
  }
}

/**
 * Restart the worker regularly while the browser runs; call this while the worker starts.
 * @param {() => void} wake
 */
export function keepRestarting(wake) {
  chrome.alarms.onAlarm.addListener((alarm) => {
    if (alarm.name === ALARM) wake();
  });
  // Creating it again would delay the next alarm each time the worker starts.
  void chrome.alarms.get(ALARM).then((known) => {
    if (!known) void chrome.alarms.create(ALARM, { periodInMinutes: 0.5 });
  });
  // Without these the worker would not start together with the browser.
  chrome.runtime.onStartup.addListener(wake);
  chrome.runtime.onInstalled.addListener(wake);
}
