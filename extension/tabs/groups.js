/**
 * Commands on tab groups: list, create, add tabs, remove tabs, change.
 */

import * as read from "../link/params.js";
import { commandMap } from "../link/rpc.js";
import { failure } from "./errors.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {{ groupId: number, title: string, color: string, collapsed: boolean, windowId: number, tabIds: number[] }} GroupInfo */

const MAX_TABS = 500;
const MAX_TITLE = 200;
/** @type {readonly [`${chrome.tabGroups.Color}`, ...`${chrome.tabGroups.Color}`[]]} */
const COLORS = ["grey", "blue", "red", "yellow", "green", "pink", "purple", "cyan", "orange"];

/**
 * A group in the form of the hub's protocol.
 * @param {chrome.tabGroups.TabGroup} group
 * @param {chrome.tabs.Tab[]} tabs
 * @returns {GroupInfo}
 */
function groupInfo({ id, title, color, collapsed, windowId }, tabs) {
  const own = tabs.filter((tab) => tab.groupId === id).flatMap((tab) => (tab.id === undefined ? [] : [tab.id]));
  return { groupId: id, title: (title ?? "").slice(0, MAX_TITLE), color, collapsed, windowId, tabIds: own };
}

async function getGroups() {
  const [groups, tabs] = await Promise.all([chrome.tabGroups.query({}), chrome.tabs.query({})]);
  return { groups: groups.map((group) => groupInfo(group, tabs)) };
}

/** @param {number} groupId */
async function describe(groupId) {
  const [group, tabs] = await Promise.all([chrome.tabGroups.get(groupId), chrome.tabs.query({ groupId })]);
  return groupInfo(group, tabs);
}

/**
 * @param {number} groupId
 * @param {Params} params
 */
async function change(groupId, params) {
  const changes = read.withoutUndefined({
    title: read.optionalText(params, "title", MAX_TITLE),
    color: read.optionalOneOf(params, "color", COLORS),
    collapsed: read.optionalBoolean(params, "collapsed"),
  });
  if (Object.keys(changes).length > 0) await chrome.tabGroups.update(groupId, changes);
}

/** @param {Params} params */
async function createGroup(params) {
  const tabIds = read.requiredTabs(params, MAX_TABS);
  // Validated first, so that invalid parameters create no group.
  const windowId = (await chrome.tabs.get(tabIds[0]).catch((error) => raise(error, tabIds[0]))).windowId;
  read.optionalOneOf(params, "color", COLORS);
  read.optionalText(params, "title", MAX_TITLE);
  const groupId = await chrome.tabs.group({ tabIds, createProperties: { windowId } }).catch((e) => raise(e, tabIds[0]));
  await change(groupId, params);
  return describe(groupId);
}

/** @param {Params} params */
async function addToGroup(params) {
  const [groupId, tabIds] = [read.requiredInteger(params, "groupId"), read.requiredTabs(params, MAX_TABS)];
  await chrome.tabs.group({ groupId, tabIds }).catch((error) => raise(error, tabIds[0]));
  return describe(groupId);
}

/** @param {Params} params */
async function removeFromGroup(params) {
  const tabIds = read.requiredTabs(params, MAX_TABS);
  await chrome.tabs.ungroup(tabIds).catch((error) => raise(error, tabIds[0]));
  return {};
}

/** @param {Params} params */
async function updateGroup(params) {
  const groupId = read.requiredInteger(params, "groupId");
  await change(groupId, params);
  return describe(groupId);
}

/**
 * @param {unknown} error
 * @param {number} tabId
 * @returns {never}
 */
function raise(error, tabId) {
  const named = /No tab with (?:given )?id:? (\d+)/.exec(String(error));
  throw failure(error, named ? Number(named[1]) : tabId);
}

export const groupCommands = commandMap({ getGroups, createGroup, addToGroup, removeFromGroup, updateGroup });
