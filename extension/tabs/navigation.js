/**
 * Navigating a tab, and waiting until the page has loaded or has failed to load.
 *
 * Owns the waiting: one wait per tab, driven by the browser's navigation events. A wait begins before the navigation is
 * requested, so events of the previous page may still arrive; they are ignored until the navigation has begun.
 */

import { FAILED, INVALID_PARAMS, RpcError } from "../link/rpc.js";
import { failure, noTab } from "./errors.js";
import { reportTab } from "./state.js";

/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {"load" | "commit" | "none"} WaitUntil */
/** @typedef {{ tabId: number, url: string, title: string, status: string, ok: boolean, error?: string, httpStatus?: number }} NavigationResult */

/**
 * @typedef {object} Wait
 * @property {"before" | "started" | "committed" | "redirected"} stage redirected: the page itself has started another navigation
 * @property {boolean} aborted a load was aborted; the wait ends when the tab has stopped loading
 * @property {string | undefined} url the destination; unknown for a step in the history
 * @property {WaitUntil} until
 * @property {Promise<number> | undefined} status the HTTP status of the committed page
 * @property {() => Promise<number> | undefined} askStatus asks the page for it, unless it is known without that
 * @property {(tab?: chrome.tabs.Tab) => void} done with the tab as it is now, if that is known
 * @property {(error: Error) => void} fail
 */

/** @type {Map<number, Wait>} */
const waits = new Map();

/** A little less than the hub's deadline, so that the answer says what was waited for. */
const TIMEOUT_MS = 25_000;
/** A navigation that has not begun by then is blocked by the current page, which may ask for confirmation to leave. */
const BEGIN_MS = 5_000;
const SETTLE_MS = 1_000;
/** How long to wait for the HTTP status of a loaded page. */
const STATUS_MS = 500;
const BLOCKED = "The current page blocks the navigation: it asks for confirmation to leave, or is busy.";
const ABORTED = "net::ERR_ABORTED";
const REDIRECTED = ["server_redirect", "client_redirect"];
const SCHEMES = ["http:", "https:", "data:"];

/**
 * The normalised URL, or an error if a tab may not navigate to it.
 * @param {string} url
 */
export async function allowedUrl(url) {
  const parsed = URL.parse(url);
  if (!parsed) throw new RpcError(INVALID_PARAMS, "url must be a complete URL such as https://example.com/");
  const { protocol, href } = parsed;
  if (SCHEMES.includes(protocol) || href === "about:blank") return href;
  if (protocol !== "file:") throw new RpcError(INVALID_PARAMS, `url must not have the scheme ${protocol}`);
  if (await chrome.extension.isAllowedFileSchemeAccess()) return href;
  throw new RpcError(
    INVALID_PARAMS,
    "url must not have the scheme file: unless \"Allow access to file URLs\" is on in the extension's details.",
  );
}

/**
 * Start a navigation, and wait until it has finished.
 * @param {number} tabId
 * @param {object} options
 * @param {() => Promise<unknown>} options.move starts it
 * @param {string | undefined} options.url the destination, if it is known
 * @param {WaitUntil} options.until
 * @param {number | undefined} options.timeoutMs
 * @param {(url?: string) => number | null | undefined} [options.documentStatus] the status of the page with a URL if that is known; null if it is not yet, undefined if it never will be
 * @param {Call} call
 * @returns {Promise<NavigationResult>}
 */
export async function navigateAndWait(tabId, { move, url, until, timeoutMs = TIMEOUT_MS, documentStatus = () => undefined }, call) {
  if (until === "none") {
    await move().catch((error) => {
      throw failure(error, tabId);
    });
    const { pendingUrl } = await chrome.tabs.get(tabId);
    const current = await currentPage(tabId);
    return { ...current, url: pendingUrl ?? current.url };
  }
  waits.get(tabId)?.fail(new RpcError(FAILED, "Replaced by a newer navigation of the same tab."));
  const { promise, resolve, reject } = /** @type {PromiseWithResolvers<string | chrome.tabs.Tab | void>} */ (
    Promise.withResolvers()
  );
  /** @type {Wait} */
  const wait = {
    stage: "before",
    aborted: false,
    url,
    until,
    status: undefined,
    askStatus: () => (documentStatus() === undefined ? httpStatus(tabId) : undefined),
    done: resolve,
    fail: reject,
  };
  waits.set(tabId, wait);
  call.onCancel = () => resolve("cancelled");
  const timeout = setTimeout(() => {
    const reached = wait.stage === "committed" || wait.stage === "redirected";
    if (reached) resolve(`The page did not finish loading within ${timeoutMs} ms.`);
    else reject(new RpcError(FAILED, `The page did not answer within ${timeoutMs} ms (or the current page asks for confirmation to leave).`));
  }, timeoutMs);
  const beginTimeout = setTimeout(() => {
    if (wait.stage === "before") reject(new RpcError(FAILED, BLOCKED));
  }, BEGIN_MS);
  move().catch((error) => reject(failure(error, tabId)));
  try {
    const ended = await promise;
    if (typeof ended === "string") return await currentPage(tabId, ended);
    const page = ended ? describe(ended) : await currentPage(tabId);
    const status = until === "load" ? (documentStatus(page.url) ?? (await (wait.status ?? httpStatus(tabId)))) : 0;
    return status > 0 ? { ...page, httpStatus: status } : page;
  } finally {
    clearTimeout(timeout);
    clearTimeout(beginTimeout);
    if (waits.get(tabId) === wait) waits.delete(tabId);
  }
}

/**
 * @param {number} tabId
 * @param {string} [problem]
 * @returns {Promise<NavigationResult>}
 */
async function currentPage(tabId, problem) {
  const tab = await chrome.tabs.get(tabId).catch((error) => {
    throw failure(error, tabId);
  });
  return describe(tab, problem);
}

/**
 * @param {chrome.tabs.Tab} tab
 * @param {string} [problem]
 * @returns {NavigationResult}
 */
function describe(tab, problem) {
  const { tabId, url, title, status } = reportTab(tab);
  return {
    tabId,
    url,
    title,
    status,
    ok: problem === undefined,
    ...(problem === undefined ? {} : { error: problem }),
  };
}

/**
 * The HTTP status of a tab's page, read in an isolated world that the page cannot manipulate; 0 if unknown.
 * @param {number} tabId
 * @returns {Promise<number>}
 */
function httpStatus(tabId) {
  const func = () => performance.getEntriesByType("navigation").map((entry) => Reflect.get(entry, "responseStatus"))[0];
  const asked = chrome.scripting.executeScript({ target: { tabId }, func, injectImmediately: true }).then(
    ([answer]) => (typeof answer?.result === "number" ? answer.result : 0),
    () => 0, // a page of the browser, or one that was left
  );
  // A page that is blocked by a dialog or script answers later, or never.
  return Promise.race([asked, new Promise((resolve) => setTimeout(() => resolve(0), STATUS_MS))]);
}

/**
 * Only events of the page itself, not of its frames or of a prerendered page.
 * @param {{ tabId: number, frameId: number, documentLifecycle?: string }} details
 */
function waitFor(details) {
  return details.frameId === 0 && details.documentLifecycle !== "prerender" ? waits.get(details.tabId) : undefined;
}

/**
 * The navigation was committed; it is done when the tab is complete. A page from the back/forward cache is complete at
 * once and causes no more events.
 * @param {number} tabId
 * @param {Wait} wait
 */
function settle(tabId, wait) {
  chrome.tabs.get(tabId).then((tab) => {
    if (tab.status === "complete" && wait.stage === "committed") wait.done(tab);
  }, ignoreClosed);
}

/** The wait of a closed tab fails through onRemoved. */
function ignoreClosed() {
  return null;
}

/**
 * A load was aborted: of this navigation, or of the previous page, which this navigation replaces.
 * @param {number} tabId
 * @param {string} url
 * @param {Wait} wait
 */
async function aborted(tabId, url, wait) {
  // Noted before the tab is queried: it may stop loading, and report that, while the query is under way.
  wait.aborted = url === wait.url || wait.url === undefined;
  const tab = await chrome.tabs.get(tabId).catch(ignoreClosed);
  if (!tab) return;
  if (!tab.pendingUrl && tab.status === "complete") return ended(wait, tab);
  // Still loading: unless it is another page, tabs.onUpdated ends the wait when the tab has stopped.
  if (wait.aborted && wait.stage === "started" && tab.pendingUrl && tab.pendingUrl !== url) {
    wait.fail(new RpcError(FAILED, `${ABORTED}: the tab navigated to ${tab.pendingUrl.slice(0, 500)} instead.`));
  }
}

/**
 * The tab has stopped loading.
 * @param {Wait} wait
 * @param {chrome.tabs.Tab} tab
 */
function ended(wait, tab) {
  if (wait.stage === "committed") wait.done(tab);
  else wait.fail(new RpcError(FAILED, `${ABORTED}: the URL gave no page (a download, or an empty response).`));
}

/** Listen for events; call this while the worker starts. */
export function watchNavigation() {
  const { webNavigation, tabs } = chrome;
  webNavigation.onBeforeNavigate.addListener((details) => {
    const wait = waitFor(details);
    if (!wait) return;
    if (wait.stage === "committed") {
      wait.stage = "redirected";
      wait.status = undefined;
    } else if (wait.url === undefined || wait.url === details.url) wait.stage = "started";
  });
  webNavigation.onCommitted.addListener((details) => {
    const wait = waitFor(details);
    if (!wait || wait.stage === "before") return;
    const redirected = details.transitionQualifiers.some((qualifier) => REDIRECTED.includes(qualifier));
    if (wait.stage === "started" && wait.url !== undefined && wait.url !== details.url && !redirected) return;
    wait.stage = "committed";
    if (wait.until === "commit") return wait.done();
    // While the page loads, because it is known from here on.
    wait.status = wait.askStatus();
    settle(details.tabId, wait);
  });
  webNavigation.onCompleted.addListener((details) => {
    const wait = waitFor(details);
    if (wait?.stage === "committed") setTimeout(() => wait.stage === "committed" && wait.done(), SETTLE_MS);
  });
  tabs.onUpdated.addListener((tabId, change, tab) => {
    const wait = change.status === "complete" ? waits.get(tabId) : undefined;
    if (wait?.stage === "committed" || wait?.aborted) ended(wait, tab);
  });
  webNavigation.onErrorOccurred.addListener((details) => {
    const wait = waitFor(details);
    if (!wait || wait.stage === "before") return;
    if (details.error === ABORTED) void aborted(details.tabId, details.url, wait);
    else wait.fail(new RpcError(FAILED, `${details.error} at ${details.url.slice(0, 500)}`));
  });
  // The URL changed within the page: its fragment, or, after a step in the history, any part.
  webNavigation.onReferenceFragmentUpdated.addListener((details) => {
    const wait = waitFor(details);
    if (wait && (wait.url === undefined || wait.url === details.url)) sameDocument(details.tabId, wait);
  });
  webNavigation.onHistoryStateUpdated.addListener((details) => {
    const wait = waitFor(details);
    if (wait && wait.url === undefined) sameDocument(details.tabId, wait);
  });
  tabs.onRemoved.addListener((tabId) => waits.get(tabId)?.fail(noTab(tabId, "It was closed while loading.")));
}

/**
 * @param {number} tabId
 * @param {Wait} wait
 */
function sameDocument(tabId, wait) {
  wait.stage = "committed";
  settle(tabId, wait);
  setTimeout(() => wait.done(), SETTLE_MS);
}
