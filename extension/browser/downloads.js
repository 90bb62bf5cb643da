/**
 * Commands on downloads. Files are saved in the browser's download folder, without replacing others.
 */

import * as read from "../link/params.js";
import { FAILED, INVALID_PARAMS, RpcError, commandMap, textOf } from "../link/rpc.js";
import { allowedUrl } from "../tabs/navigation.js";
import { short } from "./lists.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {import("../link/rpc.js").Call} Call */

/** Timeout for the server's answer; the browser itself continues to wait. */
const ANSWER_MS = 8_000;
/** How long to wait for the end: enough for small files. */
const PATIENCE_MS = 3_000;
/** How long a download that has begun may take to be listed. */
const LISTED_MS = 2_000;
const MOST = 500;
const SOME = 50;
/** @type {readonly [`${chrome.downloads.State}`, ...`${chrome.downloads.State}`[]]} */
const STATES = ["in_progress", "interrupted", "complete"];
const HARMLESS = ["safe", "accepted"];

/** @param {chrome.downloads.DownloadItem} item */
function describe(item) {
  const { id, url, finalUrl, referrer, filename, state, bytesReceived, totalBytes, mime, danger } = item;
  return {
    downloadId: id,
    url: short(finalUrl || url),
    ...(finalUrl && finalUrl !== url ? { startUrl: short(url) } : {}),
    ...(referrer ? { referrer: short(referrer) } : {}),
    filename: short(filename),
    state,
    bytesReceived,
    totalBytes,
    ...(mime ? { mime: short(mime) } : {}),
    startTime: item.startTime,
    ...read.withoutUndefined({ endTime: item.endTime, error: item.error }),
    ...(HARMLESS.includes(danger) ? {} : { danger }),
    ...(item.paused ? { paused: true } : {}),
    ...(state === "complete" && !item.exists ? { deleted: true } : {}),
  };
}

/** @param {number} id */
async function existing(id) {
  const [item] = await chrome.downloads.search({ id });
  if (!item) throw new RpcError(FAILED, `There is no download ${id}.`);
  return item;
}

/**
 * @param {Params} params
 * @param {Call} call
 */
async function downloadFile(params, call) {
  const url = await allowedUrl(read.requiredString(params, "url"));
  if (url === "about:blank") throw new RpcError(INVALID_PARAMS, "url must be the URL of a file");
  const filename = read.optionalString(params, "filename");
  const saveAs = read.optionalBoolean(params, "saveAs") ?? false;
  const begun = chrome.downloads.download({ url, saveAs, conflictAction: "uniquify", ...read.withoutUndefined({ filename }) });
  const cancelLate = read.optionalBoolean(params, "cancelLate") ?? false;
  return describe(await whenEnded(await whenStarted(begun, cancelLate), call));
}

/**
 * The id of a download, which the browser assigns when the server begins to answer.
 * @param {Promise<number>} begun
 * @param {boolean} cancelLate
 * @returns {Promise<number>}
 */
async function whenStarted(begun, cancelLate) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const silence = new Promise((_, reject) => {
    const late = `The server has not answered within ${ANSWER_MS / 1000} s.`;
    const then = cancelLate ? "The download was given up." : "If it still does, the download begins.";
    timer = setTimeout(() => {
      if (cancelLate) void begun.then(discard).catch(() => {}); // it never began
      reject(new Error(`${late} ${then}`));
    }, ANSWER_MS);
  });
  try {
    return await Promise.race([begun, /** @type {Promise<never>} */ (silence)]);
  } catch (error) {
    throw new RpcError(FAILED, textOf(error));
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A download when it has ended, or its state after a timeout.
 * @param {number} id
 * @param {Call} call
 */
async function whenEnded(id, call) {
  const { promise, resolve } = /** @type {PromiseWithResolvers<void>} */ (Promise.withResolvers());
  const timer = setTimeout(resolve, PATIENCE_MS);
  /** @param {chrome.downloads.DownloadDelta} delta */
  const listener = (delta) => {
    if (delta.id === id && delta.state?.current && delta.state.current !== "in_progress") resolve();
  };
  chrome.downloads.onChanged.addListener(listener);
  call.onCancel = resolve;
  try {
    if ((await existing(id)).state === "in_progress") await promise;
    return await existing(id);
  } finally {
    clearTimeout(timer);
    chrome.downloads.onChanged.removeListener(listener);
  }
}

/** @param {Params} params */
async function getDownloads(params) {
  const query = (read.optionalText(params, "query", 1_000) ?? "").split(/\s+/).filter((word) => word !== "");
  const most = Math.min(read.optionalInteger(params, "limit", 1) ?? SOME, MOST);
  const wanted = read.withoutUndefined({ state: read.optionalOneOf(params, "state", STATES) });
  const found = await chrome.downloads.search({ query, ...wanted, orderBy: ["-startTime"], limit: most + 1 });
  return { downloads: found.slice(0, most).map(describe), ...(found.length > most ? { cut: true } : {}) };
}

/** @param {Params} params */
async function getDownload(params) {
  return describe(await existing(read.requiredInteger(params, "downloadId")));
}

/**
 * Stop a download, and delete what was written of it. The browser's list keeps an entry, for the person.
 * @param {Params} params
 */
async function discardDownload(params) {
  const id = read.optionalInteger(params, "downloadId") ?? (await newestOf(read.requiredString(params, "url")));
  return { discarded: id !== undefined && (await discard(id)) };
}

/**
 * Whether no file is left.
 * @param {number} id
 */
async function discard(id) {
  if ((await existing(id)).state === "in_progress") await chrome.downloads.cancel(id);
  const { state, exists } = await existing(id);
  if (state === "complete" && exists) await chrome.downloads.removeFile(id);
  const left = await existing(id);
  return left.state === "interrupted" || !left.exists;
}

/**
 * The id of the newest download of a URL, which may be about to be listed.
 * @param {string} url
 * @returns {Promise<number | undefined>}
 */
async function newestOf(url) {
  const isWanted = (/** @type {chrome.downloads.DownloadItem} */ { url: first, finalUrl }) => [first, finalUrl].includes(url);
  const { promise, resolve } = /** @type {PromiseWithResolvers<number | undefined>} */ (Promise.withResolvers());
  const timer = setTimeout(resolve, LISTED_MS);
  const listener = (/** @type {chrome.downloads.DownloadItem} */ item) => isWanted(item) && resolve(item.id);
  chrome.downloads.onCreated.addListener(listener);
  try {
    const newest = await chrome.downloads.search({ orderBy: ["-startTime"], limit: SOME });
    return newest.find(isWanted)?.id ?? (await promise);
  } finally {
    clearTimeout(timer);
    chrome.downloads.onCreated.removeListener(listener);
  }
}

/** From the hub on this machine only. */
export const discardCommands = commandMap({ discardDownload });

export const downloadCommands = commandMap({ downloadFile, getDownloads, getDownload });
