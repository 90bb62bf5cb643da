/**
 * How long to wait before connecting to a relay again.
 *
 * Owns the arithmetic only. When a node of a relay ends, all of its clients lose their connections at the same moment:
 * each waits for a random time between zero and the end of a window (full jitter), so that they do not come back together.
 */

const WINDOW = 5_000;
const LONGEST = 30_000;
const SETTINGS_CHANGED = 1000;
/** After these codes a quick reconnect would be refused again: wait at least this long, and then at random. */
const AT_LEAST = new Map([
  [4000, 30_000],
  [4001, 30_000],
  [1013, 5_000],
]);

/**
 * @param {number} code the close code of the last connection
 * @param {number} failures connections that failed in a row before
 * @param {() => number} random between 0 and 1
 */
export function reconnectDelay(code, failures, random = Math.random) {
  if (code === SETTINGS_CHANGED) return 0;
  const window = Math.min(WINDOW * 2 ** Math.min(failures, 10), LONGEST);
  return (AT_LEAST.get(code) ?? 0) + Math.round(random() * window);
}

/** @param {number} code */
export const refusesQuickReconnects = (code) => AT_LEAST.has(code);
