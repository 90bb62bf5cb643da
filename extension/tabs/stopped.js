/**
 * Tabs that the person took from the agents with the browser's own Cancel button, until they return them.
 *
 * Owns which tabs these are. They are kept on disk, so that neither a restart of the worker nor a reload of the extension
 * returns a tab; a closed tab is forgotten. Every command on such a tab is refused.
 */

import { RpcError, STOPPED, textOf } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Handler} Handler */

const STORAGE_KEY = "stoppedTabs";
/** Commands that are not refused: `resumeTab` is the person's own. */
const ALLOWED = new Set(["resumeTab"]);

/** @type {Set<number>} */
const stopped = new Set();
/** Settled once the tabs of an earlier worker are known. @type {Promise<void>} */
let known = Promise.resolve();
let isKnown = false;
/** @type {(message: string) => void} */
let note = () => {};

/**
 * Restore the tabs and listen for events; call this while the worker starts.
 * @param {(message: string) => void} log
 */
export function watchStopped(log) {
  note = log;
  known = restore()
    .catch((error) => note(`The tabs in which agents are stopped could not be read: ${textOf(error)}`))
    .then(() => {
      isKnown = true;
    });
  chrome.tabs.onRemoved.addListener((tabId) => void change(() => stopped.delete(tabId)));
  chrome.tabs.onReplaced.addListener((tabId, removedTabId) => void change(() => stopped.delete(removedTabId) && stopped.add(tabId)));
}

async function restore() {
  const { [STORAGE_KEY]: stored } = await chrome.storage.local.get(STORAGE_KEY);
  if (!Array.isArray(stored)) return;
  const open = new Set((await chrome.tabs.query({})).map(({ id }) => id));
  for (const tabId of stored) if (open.has(tabId)) stopped.add(tabId);
}

/** Wait until the tabs of an earlier worker are known. */
export function stoppedKnown() {
  return known;
}

/** @param {number | undefined} tabId */
export function isStopped(tabId) {
  return tabId !== undefined && stopped.has(tabId);
}

/**
 * The person stopped the agents in a tab.
 * @param {number} tabId
 */
export function stopIn(tabId) {
  return change(() => stopped.add(tabId));
}

/**
 * The person returned a tab.
 * @param {number} tabId
 */
export function resumeIn(tabId) {
  return change(() => stopped.delete(tabId));
}

/** @param {() => unknown} apply takes effect at once, if the tabs of an earlier worker are known */
async function change(apply) {
  if (!isKnown) await known;
  const before = [...stopped].join();
  apply();
  if ([...stopped].join() === before) return;
  await chrome.storage.local
    .set({ [STORAGE_KEY]: [...stopped] })
    .catch((error) => note(`The tabs in which agents are stopped could not be saved: ${textOf(error)}`));
}

/** @param {number} tabId */
export function stoppedError(tabId) {
  return new RpcError(STOPPED, "The person stopped you in this tab.", { tabId });
}

/** @param {unknown} tabId */
export function refuseStopped(tabId) {
  if (typeof tabId === "number" && stopped.has(tabId)) throw stoppedError(tabId);
}

/**
 * The same commands, refused for tabs in which agents are stopped.
 * @param {ReadonlyMap<string, Handler>} methods
 * @returns {Map<string, Handler>}
 */
export function withoutStopped(methods) {
  return new Map(
    [...methods].map(([name, run]) => {
      if (ALLOWED.has(name)) return [name, run];
      /** @type {Handler} */
      const guarded = (params, call) => {
        const named = [params["tabId"], ...(Array.isArray(params["tabIds"]) ? params["tabIds"] : [])];
        const check = () => named.forEach(refuseStopped);
        if (!isKnown && named.some((tabId) => tabId !== undefined)) return known.then(check).then(() => run(params, call));
        check();
        return run(params, call);
      };
      return [name, guarded];
    }),
  );
}
