/**
 * The commands on windows. A new window stays behind the others unless it is asked for in front.
 */

import * as read from "../link/params.js";
import { FAILED, INVALID_PARAMS, RpcError, commandMap, textOf } from "../link/rpc.js";
import { allowedUrl } from "../tabs/navigation.js";
import { reportTab } from "../tabs/state.js";

/** @typedef {import("../link/rpc.js").Params} Params */

const CLOSE_MS = 2_000;
/** How long a desktop may take to make a window larger or smaller, and how often one looks. */
const STATE_MS = 1_000;
const LOOK_MS = 25;
const FARTHEST = 100_000;
/** @type {readonly [`${chrome.windows.WindowState}`, ...`${chrome.windows.WindowState}`[]]} */
const STATES = ["normal", "minimized", "maximized", "fullscreen"];
const INCOGNITO =
  "The person has not let this extension into incognito windows. They can, with \"Allow in Incognito\" in its details.";

/**
 * A window as the hub knows it.
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
 * A window once it is in the state that was asked for and keeps its size: the desktop may bring that about later than it
 * is answered.
 * @param {number} windowId
 * @param {string} [state]
 */
async function settled(windowId, state) {
  const end = Date.now() + STATE_MS;
  let window = await existing(windowId);
  for (let still = false; state !== undefined && !still && Date.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
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
  // A browser maximizes no window behind the others.
  const inFront = place.state === "maximized" || place.state === "fullscreen";
  const made = await chrome.windows.create({ url, incognito, focused: inFront, ...place });
  if (made?.id === undefined) throw new RpcError(FAILED, "The browser opened no window.");
  const { width, height } = place;
  // A browser that was started with a size for its windows gives it to this one, too.
  const other = (width ?? made.width) !== made.width || (height ?? made.height) !== made.height;
  if (other) await chrome.windows.update(made.id, read.withoutUndefined({ width, height }));
  if (!inFront && !place.focused) await stepBehind(made.id);
  const window = await settled(made.id, place.state);
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
  return windowInfo(await settled(windowId, place.state));
}

/**
 * On Linux a new window that does not get the focus is nevertheless put over the others.
 * @param {number} windowId
 */
async function stepBehind(windowId) {
  const { os } = await chrome.runtime.getPlatformInfo();
  if (os === "linux") await chrome.windows.update(windowId, { focused: false });
}

/** @param {Params} params */
async function closeWindow(params) {
  const windowId = read.requiredInteger(params, "windowId");
  await existing(windowId);
  const gone = removal(windowId);
  // The browser does not answer before every page in it has let it go.
  await Promise.race([chrome.windows.remove(windowId), gone]);
  if (!(await gone)) throw new RpcError(FAILED, `Window ${windowId} is still open: a page in it asks the person first.`);
  return { closed: true };
}

/**
 * Whether a window goes away soon.
 * @param {number} windowId
 * @returns {Promise<boolean>}
 */
function removal(windowId) {
  return new Promise((resolve) => {
    /** @param {number} removed */
    const listener = (removed) => {
      if (removed === windowId) finish(true);
    };
    /** @param {boolean} gone */
    const finish = (gone) => {
      clearTimeout(timer);
      chrome.windows.onRemoved.removeListener(listener);
      resolve(gone);
    };
    const timer = setTimeout(() => finish(false), CLOSE_MS);
    chrome.windows.onRemoved.addListener(listener);
  });
}

export const windowCommands = commandMap({ getWindows, createWindow, updateWindow, closeWindow });
