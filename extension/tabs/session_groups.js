/**
 * Tab groups of agents: new tabs of an agent are added to its group, which is found by a key.
 *
 * A group that the person has dissolved is created again; one that they renamed, recoloured or collapsed stays as it is.
 * A tab that cannot be grouped is opened anyway.
 */

import * as read from "../link/params.js";
import { INVALID_PARAMS, RpcError, textOf } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {{ key: string, title: string, color: `${chrome.tabGroups.Color}` }} GroupRequest */

const STORAGE_KEY = "ownGroups";
const MAX_KEYS = 200;
const MAX_LENGTH = 200;
/** @type {readonly `${chrome.tabGroups.Color}`[]} */
const COLORS = ["blue", "red", "yellow", "green", "pink", "purple", "cyan", "orange"];

/** Tabs are grouped one after the other: two at once would create two groups. */
let queue = Promise.resolve();

/**
 * The group requested for a new tab.
 * @param {Params} params
 * @returns {GroupRequest | undefined}
 */
export function requestedGroup(params) {
  const group = read.optionalObject(params, "group");
  if (!group) return undefined;
  const [key, title] = [read.optionalText(group, "key", MAX_LENGTH), read.optionalText(group, "title", MAX_LENGTH)];
  if (!key) throw new RpcError(INVALID_PARAMS, "group must have a key");
  const color = COLORS.find((each) => each === group["color"]) ?? colorOf(key);
  return { key, title: title ?? "", color };
}

/**
 * The group of a key, if it exists.
 * @param {string} key
 */
export async function sessionGroup(key) {
  try {
    const groupId = (await stored())[await digest(key)];
    return groupId === undefined ? null : await chrome.tabGroups.get(groupId);
  } catch {
    return null; // the person dissolved it
  }
}

/**
 * Add a tab to the group of a key. It never fails; errors are logged.
 * @param {GroupRequest} request
 * @param {chrome.tabs.Tab} tab
 * @param {(message: string) => void} note
 * @returns {Promise<void>}
 */
export function putIntoGroup(request, tab, note) {
  queue = queue
    .then(() => put(request, tab))
    .catch((error) => note(`A new tab could not be added to its group: ${textOf(error)}`));
  return queue;
}

/**
 * @param {GroupRequest} request
 * @param {chrome.tabs.Tab} tab
 */
async function put({ key, title, color }, tab) {
  if (tab.id === undefined) return;
  const group = await sessionGroup(key);
  if (group) {
    // Not a group of another window: the tab would move there.
    if (group.windowId === tab.windowId) await chrome.tabs.group({ groupId: group.id, tabIds: [tab.id] });
    return;
  }
  const groupId = await chrome.tabs.group({ tabIds: [tab.id], createProperties: { windowId: tab.windowId } });
  await remember(key, groupId);
  await chrome.tabGroups.update(groupId, { title, color });
}

/** @returns {Promise<Record<string, number>>} */
async function stored() {
  // Not in session storage, which is cleared when the extension is reloaded.
  const { [STORAGE_KEY]: known } = await chrome.storage.local.get(STORAGE_KEY);
  return /** @type {Record<string, number>} */ (known ?? {});
}

/**
 * @param {string} key
 * @param {number} groupId
 */
async function remember(key, groupId) {
  const id = await digest(key);
  const { [id]: _, ...others } = await stored();
  const kept = Object.entries(others).slice(1 - MAX_KEYS);
  await chrome.storage.local.set({ [STORAGE_KEY]: Object.fromEntries([...kept, [id, groupId]]) });
}

/**
 * The stored form of a key, which is the secret id of a session.
 * @param {string} key
 */
async function digest(key) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
  return Array.from(bytes.subarray(0, 12), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The colour of a key, for a hub that names none.
 * @param {string} key
 */
function colorOf(key) {
  let sum = 0;
  for (const letter of key) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return COLORS[sum % COLORS.length] ?? "blue";
}
