/**
 * Staying alive: a ping every 20 s keeps the service worker and finds a dead connection; an alarm revives the worker.
 *
 * The browser ends a worker after 30 s of silence, and fires no alarm sooner than after 30 s.
 */

const PING_MS = 20_000;
const ALARM = "tabhub.revive";

/** The pulse of one connection. */
export class Pulse {
  #heard = true;
  #timer;

  /**
   * @param {object} wiring
   * @param {() => void} wiring.ping sends a ping
   * @param {() => void} wiring.dead is told when nothing at all came between two pings
   * @param {number} [wiring.every]
   */
  constructor({ ping, dead, every = PING_MS }) {
    this.#timer = setInterval(() => {
      if (!this.#heard) return dead();
      this.#heard = false;
      ping();
    }, every);
  }

  /** Any message proves the other side is there. */
  heard() {
    this.#heard = true;
  }

  stop() {
    clearInterval(this.#timer);
  }
}

/**
 * Have the worker woken again and again while the browser runs; call this while the worker starts.
 * @param {() => void} wake
 */
export function reviveBy(wake) {
  chrome.alarms.onAlarm.addListener((alarm) => {
    if (alarm.name === ALARM) wake();
  });
  // Creating it anew would put the next alarm off each time the worker starts.
  void chrome.alarms.get(ALARM).then((known) => {
    if (!known) void chrome.alarms.create(ALARM, { periodInMinutes: 0.5 });
  });
  // Without these the worker would not start together with the browser.
  chrome.runtime.onStartup.addListener(wake);
  chrome.runtime.onInstalled.addListener(wake);
}
