/**
 * Commands on windows. A new window stays behind the others unless requested otherwise.
 */

import * as read from "../link/params.js";
import { FAILED, INVALID_PARAMS, RpcError, commandMap, textOf } from "../link/rpc.js";
import { allowedUrl } from "../tabs/navigation.js";
import { waitForRemoval } from "../tabs/removal.js";
import { reportTab } from "../tabs/state.js";

/** @typedef {import("../link/rpc.js").Params} Params */

/** How long the desktop may take to resize a window, and the polling interval. */
const STATE_MS = 1_000;
const POLL_MS = 25;
const FARTHEST = 100_000;
/** @type {readonly [`${chrome.windows.WindowState}`, ...`${chrome.windows.WindowState}`[]]} */
const STATES = ["normal", "minimized", "maximized", "fullscreen"];
const INCOGNITO =
  "This extension may not use incognito windows. The person can allow it with \"Allow in Incognito\" in its details.";

/**
 * A window in the form of the hub's protocol.
 * @param {chrome.windows.Window} window
 */
function windowInfo({ id, focused, state, type, incognito, left, top, width, height, tabs = [] }) {
  const tabIds = tabs.flatMap((tab) => (tab.id === undefined ? [] : [tab.id]));
  const front = tabs.find((tab) => tab.active)?.id;
  const place = read.withoutUndefined({ state, type, left, top, width, height, activeTabId: front });
  return { windowId: id ?? chrome.windows.WINDOW_ID_NONE, focused, incognito, ...place, tabIds };
}

async function getWindows() {
  const windows = await chrome.windows.getAll({ populate: true });
  return { windows: windows.map(windowInfo) };
}

/** @param {number} windowId */
async function existing(windowId) {
  try {
    return await chrome.windows.get(windowId, { populate: true });
  } catch (error) {
    throw new RpcError(FAILED, textOf(error));
  }
}

/**
 * A window once it has the requested state and a stable size: the desktop may apply them after the browser has answered.
 * @param {number} windowId
 * @param {string} [state]
 */
async function whenSettled(windowId, state) {
  const end = Date.now() + STATE_MS;
  let window = await existing(windowId);
  for (let still = false; state !== undefined && !still && Date.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const { left, top, width, height } = window;
    window = await existing(windowId);
    still = window.state === state && window.left === left && window.top === top;
    still &&= window.width === width && window.height === height;
  }
  return window;
}

/** @param {Params} params */
function placeOf(params) {
  return read.withoutUndefined({
    state: read.optionalOneOf(params, "state", STATES),
    left: read.optionalInteger(params, "left", -FARTHEST),
    top: read.optionalInteger(params, "top", -FARTHEST),
    width: read.optionalInteger(params, "width", 1),
    height: read.optionalInteger(params, "height", 1),
    focused: read.optionalBoolean(params, "focused"),
  });
}

/** @param {Params} params */
async function createWindow(params) {
  const url = await allowedUrl(read.optionalString(params, "url") ?? "about:blank");
  const incognito = read.optionalBoolean(params, "incognito") ?? false;
  if (incognito && !(await chrome.extension.isAllowedIncognitoAccess())) throw new RpcError(INVALID_PARAMS, INCOGNITO);
  const place = placeOf(params);
  // The browser does not maximize a window behind others.
  const inFront = place.state === "maximized" || place.state === "fullscreen";
  const created = await chrome.windows.create({ url, incognito, focused: inFront, ...place });
  if (created?.id === undefined) throw new RpcError(FAILED, "The browser opened no window.");
  const { width, height } = place;
  // A browser that was started with a window size applies it to this window, too.
  const other = (width ?? created.width) !== created.width || (height ?? created.height) !== created.height;
  if (other) await chrome.windows.update(created.id, read.withoutUndefined({ width, height }));
  if (!inFront && !place.focused) await sendBehind(created.id);
  const window = await whenSettled(created.id, place.state);
  const tab = window.tabs?.[0];
  if (!tab) throw new RpcError(FAILED, "The browser opened a window without a tab.");
  return { window: windowInfo(window), tab: reportTab(tab) };
}

/** @param {Params} params */
async function updateWindow(params) {
  const windowId = read.requiredInteger(params, "windowId");
  const place = placeOf(params);
  await existing(windowId);
  await chrome.windows.update(windowId, place);
  return windowInfo(await whenSettled(windowId, place.state));
}

/**
 * On Linux an unfocused new window is still placed in front of the others.
 * @param {number} windowId
 */
async function sendBehind(windowId) {
  const { os } = await chrome.runtime.getPlatformInfo();
  if (os === "linux") await chrome.windows.update(windowId, { focused: false });
}

/** @param {Params} params */
async function closeWindow(params) {
  const windowId = read.requiredInteger(params, "windowId");
  await existing(windowId);
  const closed = waitForRemoval(chrome.windows.onRemoved, windowId);
  // The browser answers only when every page has allowed closing.
  await Promise.race([chrome.windows.remove(windowId), closed]);
  if (!(await closed)) throw new RpcError(FAILED, `Window ${windowId} is still open: a page in it asks for confirmation.`);
  return { closed: true };
}

export const windowCommands = commandMap({ getWindows, createWindow, updateWindow, closeWindow });
