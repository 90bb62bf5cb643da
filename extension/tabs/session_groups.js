/**
 * The groups that new tabs are put into by a key, one a session of the hub: which group stands for which key.
 *
 * A group is found again by the id it was given. One that the person has dissolved is made anew; one that they renamed,
 * coloured or collapsed stays as they want it. A tab that cannot be grouped is opened all the same.
 */

import * as read from "../link/params.js";
import { INVALID_PARAMS, RpcError, textOf } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {{ key: string, title: string }} GroupWish */

const STORED = "ownGroups";
const MOST_KEYS = 200;
const LONGEST = 200;
/** @type {readonly `${chrome.tabGroups.Color}`[]} */
const COLORS = ["blue", "red", "yellow", "green", "pink", "purple", "cyan", "orange"];

/** What is being put into a group: one after the other, or two tabs at once would make two groups. */
let turn = Promise.resolve();

/**
 * Which group a new tab is wanted in.
 * @param {Params} params
 * @returns {GroupWish | undefined}
 */
export function groupWish(params) {
  const wish = read.optionalObject(params, "group");
  if (!wish) return undefined;
  const [key, title] = [read.optionalText(wish, "key", LONGEST), read.optionalText(wish, "title", LONGEST)];
  if (!key) throw new RpcError(INVALID_PARAMS, "group must have a key");
  return { key, title: title ?? "" };
}

/**
 * The group of a key, if it is still there.
 * @param {string} key
 */
export async function ownGroup(key) {
  try {
    const groupId = (await stored())[await digest(key)];
    return groupId === undefined ? null : await chrome.tabGroups.get(groupId);
  } catch {
    return null; // the person dissolved it
  }
}

/**
 * Put a tab into the group of a key. It never fails: what went wrong is noted.
 * @param {GroupWish} wish
 * @param {chrome.tabs.Tab} tab
 * @param {(message: string) => void} note
 * @returns {Promise<void>}
 */
export function putIntoGroup(wish, tab, note) {
  turn = turn
    .then(() => put(wish, tab))
    .catch((error) => note(`A new tab was not put into its group: ${textOf(error)}`));
  return turn;
}

/**
 * @param {GroupWish} wish
 * @param {chrome.tabs.Tab} tab
 */
async function put({ key, title }, tab) {
  if (tab.id === undefined) return;
  const group = await ownGroup(key);
  if (group) {
    // Into a group of another window the tab would move there: it was asked for where it is.
    if (group.windowId === tab.windowId) await chrome.tabs.group({ groupId: group.id, tabIds: [tab.id] });
    return;
  }
  const groupId = await chrome.tabs.group({ tabIds: [tab.id], createProperties: { windowId: tab.windowId } });
  await remember(key, groupId);
  await chrome.tabGroups.update(groupId, { title, color: colorOf(key) });
}

/** @returns {Promise<Record<string, number>>} */
async function stored() {
  // Not in the storage of the browser's session, which is emptied when the extension is loaded anew.
  const { [STORED]: known } = await chrome.storage.local.get(STORED);
  return /** @type {Record<string, number>} */ (known ?? {});
}

/**
 * @param {string} key
 * @param {number} groupId
 */
async function remember(key, groupId) {
  const mark = await digest(key);
  const { [mark]: _, ...others } = await stored();
  const kept = Object.entries(others).slice(1 - MOST_KEYS);
  await chrome.storage.local.set({ [STORED]: Object.fromEntries([...kept, [mark, groupId]]) });
}

/**
 * What is kept of a key on the disk: it is a session's id, which is nobody else's business.
 * @param {string} key
 */
async function digest(key) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
  return Array.from(bytes.subarray(0, 12), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The same colour for the same key.
 * @param {string} key
 */
function colorOf(key) {
  let sum = 0;
  for (const letter of key) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return COLORS[sum % COLORS.length] ?? "blue";
}
