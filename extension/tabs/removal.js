/**
 * Waiting until the browser reports that a tab or window was closed.
 */

const CLOSE_MS = 2_000;

/**
 * Whether a tab or window is closed in time: a page may ask for confirmation first.
 * @param {typeof chrome.tabs.onRemoved | typeof chrome.windows.onRemoved} onRemoved
 * @param {number} id
 * @returns {Promise<boolean>}
 */
export function waitForRemoval(onRemoved, id) {
  return new Promise((resolve) => {
    const listener = (/** @type {number} */ removed) => {
      if (removed === id) finish(true);
    };
    const finish = (/** @type {boolean} */ closed) => {
      clearTimeout(timer);
      onRemoved.removeListener(listener);
      resolve(closed);
    };
    const timer = setTimeout(() => finish(false), CLOSE_MS);
    onRemoved.addListener(listener);
  });
}
