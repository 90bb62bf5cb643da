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
const MOST = 500;
const SOME = 50;
/** @type {readonly [`${chrome.downloads.State}`, ...`${chrome.downloads.State}`[]]} */
const STATES = ["in_progress", "interrupted", "complete"];
const HARMLESS = ["safe", "accepted"];

/** @param {chrome.downloads.DownloadItem} item */
function describe(item) {
  const { id, url, finalUrl, filename, state, bytesReceived, totalBytes, mime, danger } = item;
  return {
    downloadId: id,
    url: short(finalUrl || url),
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
  return describe(await whenEnded(await whenStarted(begun), call));
}

/**
 * The id of a download, which the browser assigns when the server begins to answer.
 * @param {Promise<number>} begun
 * @returns {Promise<number>}
 */
async function whenStarted(begun) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const silence = new Promise((_, reject) => {
    const late = `The server has not answered within ${ANSWER_MS / 1000} s. If it still does, the download begins.`;
    timer = setTimeout(() => reject(new Error(late)), ANSWER_MS);
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

export const downloadCommands = commandMap({ downloadFile, getDownloads, getDownload });
