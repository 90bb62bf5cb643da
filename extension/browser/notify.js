/**
 * Desktop notifications. A click on one opens its URL, if it has one, in an active tab.
 */

import * as read from "../link/params.js";
import { FAILED, INVALID_PARAMS, RpcError, commandMap, textOf } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Params} Params */

const PREFIX = "tabhub:";
/** The URLs of notifications, stored so that they outlive the worker. */
const STORAGE_KEY = "noticeUrls";
const MAX_STORED = 50;
const LONGEST_ICON = 200_000;
const ICON = /^data:image\/(png|jpeg|webp);base64,[A-Za-z0-9+/=]+$/;

/** @param {Params} params */
async function showNotification(params) {
  const title = read.requiredString(params, "title");
  const message = read.optionalText(params, "message", 2_000) ?? "";
  const iconUrl = read.optionalText(params, "iconUrl", LONGEST_ICON) ?? chrome.runtime.getURL("icons/connected-128.png");
  const url = read.optionalString(params, "url");
  if (read.optionalString(params, "iconUrl") !== undefined && !ICON.test(iconUrl)) {
    throw new RpcError(INVALID_PARAMS, "iconUrl must be a data: address of a png, jpeg or webp picture in base64");
  }
  if (url !== undefined && !isWeb(url)) throw new RpcError(INVALID_PARAMS, "url must be a full http or https address");
  const id = PREFIX + crypto.randomUUID();
  // Stored before the person can click.
  if (url !== undefined) await remember(id, url);
  const more = read.withoutUndefined({
    contextMessage: read.optionalText(params, "contextMessage", 200),
    requireInteraction: read.optionalBoolean(params, "requireInteraction"),
  });
  try {
    await chrome.notifications.create(id, { type: "basic", title: title.slice(0, 200), message, iconUrl, ...more });
  } catch (error) {
    throw new RpcError(FAILED, textOf(error));
  }
  const allowed = (await chrome.notifications.getPermissionLevel()) === "granted";
  return { notificationId: id, allowed };
}

/** @param {string} url */
function isWeb(url) {
  return ["http:", "https:"].includes(URL.parse(url)?.protocol ?? "");
}

/** @returns {Promise<Record<string, string>>} */
async function stored() {
  const { [STORAGE_KEY]: known } = await chrome.storage.session.get(STORAGE_KEY);
  return /** @type {Record<string, string>} */ (known ?? {});
}

/**
 * @param {string} id
 * @param {string} url
 */
async function remember(id, url) {
  const newest = Object.entries(await stored()).slice(1 - MAX_STORED);
  await chrome.storage.session.set({ [STORAGE_KEY]: Object.fromEntries([...newest, [id, url]]) });
}

/** @param {string} id */
async function clicked(id) {
  const url = (await stored())[id];
  await chrome.notifications.clear(id);
  if (url === undefined) return;
  const windows = await chrome.windows.getAll({ windowTypes: ["normal"] });
  if (windows.length === 0) return void (await chrome.windows.create({ url, focused: true }));
  const tab = await chrome.tabs.create({ url, active: true });
  await chrome.windows.update(tab.windowId, { focused: true });
}

/**
 * Listen for clicks; call this while the worker starts, so that a click can wake it.
 * @param {(message: string) => void} note
 */
export function watchNotifications(note) {
  chrome.notifications.onClicked.addListener((id) => {
    if (id.startsWith(PREFIX)) clicked(id).catch((error) => note(`A click led nowhere: ${textOf(error)}`));
  });
}

export const notifyCommands = commandMap({ showNotification });
