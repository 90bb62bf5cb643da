/**
 * Desktop notifications of agents. A click on one opens its URL, if it has one, in an active tab.
 *
 * They cannot look like the extension's own: the title begins with the agent's name, the icon is that of agents, and
 * there are no buttons. A picture that an agent chooses is shown below the text.
 */

import * as read from "../link/params.js";
import { FAILED, INVALID_PARAMS, RpcError, commandMap, textOf } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Params} Params */

const PREFIX = "tabhub:";
/** The URLs of notifications, stored so that they outlive the worker. */
const STORAGE_KEY = "noticeUrls";
const MAX_STORED = 50;
const LONGEST_PICTURE = 200_000;
const PICTURE = /^data:image\/(png|jpeg|webp);base64,[A-Za-z0-9+/=]+$/;

/** @param {Params} params */
async function showNotification(params) {
  const agent = read.requiredString(params, "agent");
  const text = read.requiredString(params, "title");
  const message = read.optionalText(params, "message", 2_000) ?? "";
  const imageUrl = read.optionalText(params, "imageUrl", LONGEST_PICTURE);
  const url = read.optionalString(params, "url");
  if (imageUrl !== undefined && !PICTURE.test(imageUrl)) {
    throw new RpcError(INVALID_PARAMS, "imageUrl must be a data: address of a png, jpeg or webp picture in base64");
  }
  if (url !== undefined && !isWeb(url)) throw new RpcError(INVALID_PARAMS, "url must be a complete http or https URL");
  const id = PREFIX + crypto.randomUUID();
  // Stored before the person can click.
  if (url !== undefined) await remember(id, url);
  const title = `Message from ${agent.slice(0, 64)}: ${text}`.slice(0, 200);
  const iconUrl = chrome.runtime.getURL("icons/agent-128.png");
  const type = imageUrl === undefined ? "basic" : "image";
  const more = read.withoutUndefined({
    imageUrl,
    contextMessage: read.optionalText(params, "contextMessage", 200),
    requireInteraction: read.optionalBoolean(params, "requireInteraction"),
  });
  try {
    await chrome.notifications.create(id, { type, title, message, iconUrl, ...more });
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
    if (id.startsWith(PREFIX)) clicked(id).catch((error) => note(`The URL of a notification could not be opened: ${textOf(error)}`));
  });
}

export const notifyCommands = commandMap({ showNotification });
