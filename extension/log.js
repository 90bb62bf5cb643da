/**
 * The extension's log: the last 200 entries. Warnings and errors are also printed to the console and sent to the hub.
 */

/** @typedef {"info" | "warning" | "error"} Level */
/** @typedef {{ level: Level, source: string, message: string, time: number }} Entry */

const MAX_ENTRIES = 200;
const MAX_UNSENT = 50;
const LONGEST = 2000;

/** @type {Entry[]} */
let recent = [];
/** @type {Entry[]} */
let unsent = [];
/** @type {((entry: Entry) => void) | null} */
let send = null;
/** @type {string | null} */
let lastError = null;

/**
 * Add an entry.
 * @param {Level} level
 * @param {string} source
 * @param {string} message
 */
export function log(level, source, message) {
  const entry = { level, source, message: message.slice(0, LONGEST), time: Date.now() };
  recent = [...recent.slice(1 - MAX_ENTRIES), entry];
  if (level === "info") return;
  if (level === "error") lastError = entry.message;
  (level === "error" ? console.error : console.warn)(`${source}: ${entry.message}`);
  if (send) send(entry);
  else unsent = [...unsent.slice(1 - MAX_UNSENT), entry];
}

/** The entries since the worker started, oldest first. */
export function recentLog() {
  return recent;
}

/** The last error, or null. */
export function lastErrorText() {
  return lastError;
}

/**
 * Send entries to the hub from now on, beginning with unsent ones; null when it is disconnected.
 * @param {((entry: Entry) => void) | null} sender
 */
export function sendLogTo(sender) {
  send = sender;
  if (!send) return;
  const missed = unsent;
  unsent = [];
  missed.forEach(send);
}
