/**
 * What is worth remembering, kept in a list of the last 200: warnings and errors, which are also shown on the console
 * and told to the hub, and what else helps to understand them.
 */

/** @typedef {"info" | "warning" | "error"} Level */
/** @typedef {{ level: Level, source: string, message: string, time: number }} Entry */

const KEPT = 200;
const KEPT_UNTOLD = 50;
const LONGEST = 2000;

/** @type {Entry[]} */
let recent = [];
/** @type {Entry[]} */
let untold = [];
/** @type {((entry: Entry) => void) | null} */
let tell = null;
/** @type {string | null} */
let lastError = null;

/**
 * Remember something.
 * @param {Level} level
 * @param {string} source
 * @param {string} message
 */
export function log(level, source, message) {
  const entry = { level, source, message: message.slice(0, LONGEST), time: Date.now() };
  recent = [...recent.slice(1 - KEPT), entry];
  if (level === "info") return;
  if (level === "error") lastError = entry.message;
  (level === "error" ? console.error : console.warn)(`${source}: ${entry.message}`);
  if (tell) tell(entry);
  else untold = [...untold.slice(1 - KEPT_UNTOLD), entry];
}

/** What was remembered since the worker started, the oldest first. */
export function recentLog() {
  return recent;
}

/** The last error there was, or null. */
export function lastErrorText() {
  return lastError;
}

/**
 * Tell the hub from now on, beginning with what it has missed; null when there is no hub.
 * @param {((entry: Entry) => void) | null} teller
 */
export function tellLogTo(teller) {
  tell = teller;
  if (!tell) return;
  const missed = untold;
  untold = [];
  missed.forEach(tell);
}
