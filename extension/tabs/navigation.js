/**
 * Moving a tab to another page and knowing when it is there, or why it never will be.
 *
 * Owns the waiting: one wait a tab, fed by the browser's navigation events. A wait begins before the browser is asked,
 * so events of the page before may still come: until the browser says that our navigation began, nothing counts.
 */

import { FAILED, INVALID_PARAMS, RpcError } from "../link/rpc.js";
import { failure, noTab } from "./errors.js";
import { reportTab } from "./state.js";

/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {"load" | "commit" | "none"} WaitUntil */
/** @typedef {{ tabId: number, url: string, title: string, status: string, ok: boolean, error?: string, httpStatus?: number }} Arrival */

/**
 * @typedef {object} Wait
 * @property {"before" | "started" | "committed" | "onward"} stage onward: our page sent the tab on to another
 * @property {boolean} aborted a load was aborted, and nothing is told until the tab has stopped
 * @property {string | undefined} url where the tab is sent; unknown for a step in its history
 * @property {WaitUntil} until
 * @property {() => void} done
 * @property {(error: Error) => void} fail
 */

/** @type {Map<number, Wait>} */
const waits = new Map();

/** A little less than the hub's own deadline, so that the answer says what was waited for. */
const PATIENCE_MS = 25_000;
/** A navigation that has not begun by then waits for the page before it, which may ask the person whether to leave. */
const BEGIN_MS = 5_000;
const SETTLE_MS = 1_000;
/** How long a page that has loaded may take to tell its HTTP status. */
const STATUS_MS = 500;
const HELD = "The page the tab shows does not let it go: it asks whether to leave it, or is busy.";
const ABORTED = "net::ERR_ABORTED";
const REDIRECTED = ["server_redirect", "client_redirect"];
const SCHEMES = ["http:", "https:", "data:"];

/**
 * The address as the browser will read it, or an error when a tab may not be sent there.
 * @param {string} url
 */
export async function allowedUrl(url) {
  const parsed = URL.parse(url);
  if (!parsed) throw new RpcError(INVALID_PARAMS, "url must be a full address such as https://example.com/");
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
 * Do what moves a tab, and wait until it has moved.
 * @param {number} tabId
 * @param {object} how
 * @param {() => Promise<unknown>} how.move
 * @param {string | undefined} how.url where it moves to, if that is known
 * @param {WaitUntil} how.until
 * @param {number | undefined} how.timeoutMs
 * @param {Call} call
 * @returns {Promise<Arrival>}
 */
export async function travel(tabId, { move, url, until, timeoutMs = PATIENCE_MS }, call) {
  if (until === "none") {
    await move();
    const { pendingUrl } = await chrome.tabs.get(tabId);
    const begun = await arrival(tabId);
    return { ...begun, url: pendingUrl ?? begun.url };
  }
  waits.get(tabId)?.fail(new RpcError(FAILED, "A newer navigation of the same tab took this one's place."));
  const { promise, resolve, reject } = /** @type {PromiseWithResolvers<string | void>} */ (Promise.withResolvers());
  /** @type {Wait} */
  const wait = { stage: "before", aborted: false, url, until, done: resolve, fail: reject };
  waits.set(tabId, wait);
  call.onCancel = () => resolve("cancelled");
  const impatience = setTimeout(() => {
    const reached = wait.stage === "committed" || wait.stage === "onward";
    if (reached) resolve(`The page was not loaded within ${timeoutMs} ms.`);
    else reject(new RpcError(FAILED, `The page did not answer within ${timeoutMs} ms (or asks before it is left).`));
  }, timeoutMs);
  const unbegun = setTimeout(() => {
    if (wait.stage === "before") reject(new RpcError(FAILED, HELD));
  }, BEGIN_MS);
  move().catch((error) => reject(failure(error, tabId)));
  try {
    const problem = await promise;
    const status = until === "load" && problem === undefined ? await httpStatus(tabId) : 0;
    const arrived = await arrival(tabId, problem ?? undefined);
    return status > 0 ? { ...arrived, httpStatus: status } : arrived;
  } finally {
    clearTimeout(impatience);
    clearTimeout(unbegun);
    if (waits.get(tabId) === wait) waits.delete(tabId);
  }
}

/**
 * @param {number} tabId
 * @param {string} [problem]
 * @returns {Promise<Arrival>}
 */
async function arrival(tabId, problem) {
  const tab = await chrome.tabs.get(tabId).catch((error) => {
    throw failure(error, tabId);
  });
  const { url, title, status } = reportTab(tab);
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
 * The HTTP status of the page a tab shows, asked where the page's own scripts cannot answer instead; 0 if unknown.
 * @param {number} tabId
 * @returns {Promise<number>}
 */
function httpStatus(tabId) {
  const func = () => performance.getEntriesByType("navigation").map((entry) => Reflect.get(entry, "responseStatus"))[0];
  const asked = chrome.scripting.executeScript({ target: { tabId }, func, injectImmediately: true }).then(
    ([answer]) => (typeof answer?.result === "number" ? answer.result : 0),
    () => 0, // a page of the browser's own, or one that was left again
  );
  // A page that is blocked by a dialog or a script of its own answers later, or never.
  return Promise.race([asked, new Promise((resolve) => setTimeout(() => resolve(0), STATUS_MS))]);
}

/**
 * Only the page itself counts, not its frames, nor one the browser merely prepares.
 * @param {{ tabId: number, frameId: number, documentLifecycle?: string }} details
 */
function waitFor(details) {
  return details.frameId === 0 && details.documentLifecycle !== "prerender" ? waits.get(details.tabId) : undefined;
}

/**
 * The tab is where it shall be; done when it is complete. A page taken from the back/forward cache is so already, and
 * nothing more is told of it; a page that goes on and on loading frames is not waited for much longer.
 * @param {number} tabId
 * @param {Wait} wait
 */
function settle(tabId, wait) {
  chrome.tabs.get(tabId).then((tab) => {
    if (tab.status === "complete" && wait.stage === "committed") wait.done();
  }, ignoreGone);
}

/** A tab that is gone fails its wait by its removal. */
function ignoreGone() {
  return null;
}

/**
 * A load was aborted: ours, unless it is the page before ours, which ours brings to its end.
 * @param {number} tabId
 * @param {string} url
 * @param {Wait} wait
 */
async function aborted(tabId, url, wait) {
  // Noted before the tab is queried: it may stop loading, and report that, while the query is under way.
  wait.aborted = url === wait.url || wait.url === undefined;
  const tab = await chrome.tabs.get(tabId).catch(ignoreGone);
  if (!tab) return;
  if (!tab.pendingUrl && tab.status === "complete") return ended(wait);
  // Still loading: unless it is another page, tabs.onUpdated ends the wait when the tab has stopped.
  if (wait.aborted && wait.stage === "started" && tab.pendingUrl && tab.pendingUrl !== url) {
    wait.fail(new RpcError(FAILED, `${ABORTED}: the tab went to ${tab.pendingUrl.slice(0, 500)} instead.`));
  }
}

/**
 * The tab has stopped loading.
 * @param {Wait} wait
 */
function ended(wait) {
  if (wait.stage === "committed") wait.done();
  else wait.fail(new RpcError(FAILED, `${ABORTED}: the address gave no page (a download, or an empty answer).`));
}

/** Listen to the browser; call this while the worker starts. */
export function watchNavigation() {
  const { webNavigation, tabs } = chrome;
  webNavigation.onBeforeNavigate.addListener((details) => {
    const wait = waitFor(details);
    if (!wait) return;
    if (wait.stage === "committed") wait.stage = "onward";
    else if (wait.url === undefined || wait.url === details.url) wait.stage = "started";
  });
  webNavigation.onCommitted.addListener((details) => {
    const wait = waitFor(details);
    if (!wait || wait.stage === "before") return;
    const redirected = details.transitionQualifiers.some((qualifier) => REDIRECTED.includes(qualifier));
    if (wait.stage === "started" && wait.url !== undefined && wait.url !== details.url && !redirected) return;
    wait.stage = "committed";
    if (wait.until === "commit") wait.done();
    else settle(details.tabId, wait);
  });
  webNavigation.onCompleted.addListener((details) => {
    const wait = waitFor(details);
    if (wait?.stage === "committed") setTimeout(() => wait.stage === "committed" && wait.done(), SETTLE_MS);
  });
  tabs.onUpdated.addListener((tabId, change) => {
    const wait = change.status === "complete" ? waits.get(tabId) : undefined;
    if (wait?.stage === "committed" || wait?.aborted) ended(wait);
  });
  webNavigation.onErrorOccurred.addListener((details) => {
    const wait = waitFor(details);
    if (!wait || wait.stage === "before") return;
    if (details.error === ABORTED) void aborted(details.tabId, details.url, wait);
    else wait.fail(new RpcError(FAILED, `${details.error} at ${details.url.slice(0, 500)}`));
  });
  // The address changed within the page: by its fragment, or, on a step in the history, in any way.
  webNavigation.onReferenceFragmentUpdated.addListener((details) => {
    const wait = waitFor(details);
    if (wait && (wait.url === undefined || wait.url === details.url)) within(details.tabId, wait);
  });
  webNavigation.onHistoryStateUpdated.addListener((details) => {
    const wait = waitFor(details);
    if (wait && wait.url === undefined) within(details.tabId, wait);
  });
  tabs.onRemoved.addListener((tabId) => waits.get(tabId)?.fail(noTab(tabId, "It was closed while it loaded.")));
}

/**
 * @param {number} tabId
 * @param {Wait} wait
 */
function within(tabId, wait) {
  wait.stage = "committed";
  settle(tabId, wait);
  setTimeout(() => wait.done(), SETTLE_MS);
}
