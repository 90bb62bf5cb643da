/**
 * The commands on tab groups: list, make, add to, take out of, change.
 */

import * as read from "../link/params.js";
import { commandMap } from "../link/rpc.js";
import { failure } from "./errors.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {{ groupId: number, title: string, color: string, collapsed: boolean, windowId: number, tabIds: number[] }} GroupInfo */

const MOST_TABS = 500;
const LONGEST_TITLE = 200;
/** @type {readonly [`${chrome.tabGroups.Color}`, ...`${chrome.tabGroups.Color}`[]]} */
const COLORS = ["grey", "blue", "red", "yellow", "green", "pink", "purple", "cyan", "orange"];

/**
 * A group as the hub knows it.
 * @param {chrome.tabGroups.TabGroup} group
 * @param {chrome.tabs.Tab[]} tabs
 * @returns {GroupInfo}
 */
function groupInfo({ id, title, color, collapsed, windowId }, tabs) {
  const own = tabs.filter((tab) => tab.groupId === id).flatMap((tab) => (tab.id === undefined ? [] : [tab.id]));
  return { groupId: id, title: (title ?? "").slice(0, LONGEST_TITLE), color, collapsed, windowId, tabIds: own };
}

async function getGroups() {
  const [groups, tabs] = await Promise.all([chrome.tabGroups.query({}), chrome.tabs.query({})]);
  return { groups: groups.map((group) => groupInfo(group, tabs)) };
}

/** @param {number} groupId */
async function described(groupId) {
  const [group, tabs] = await Promise.all([chrome.tabGroups.get(groupId), chrome.tabs.query({ groupId })]);
  return groupInfo(group, tabs);
}

/**
 * @param {number} groupId
 * @param {Params} params
 */
async function change(groupId, params) {
  const wish = read.given({
    title: read.optionalText(params, "title", LONGEST_TITLE),
    color: read.optionalWord(params, "color", COLORS),
    collapsed: read.optionalBoolean(params, "collapsed"),
  });
  if (Object.keys(wish).length > 0) await chrome.tabGroups.update(groupId, wish);
}

/** @param {Params} params */
async function createGroup(params) {
  const tabIds = read.requiredTabs(params, MOST_TABS);
  // Read before anything is done, so that a wrong wish makes no group.
  const windowId = (await chrome.tabs.get(tabIds[0]).catch((error) => raise(error, tabIds[0]))).windowId;
  read.optionalWord(params, "color", COLORS);
  read.optionalText(params, "title", LONGEST_TITLE);
  const groupId = await chrome.tabs.group({ tabIds, createProperties: { windowId } }).catch((e) => raise(e, tabIds[0]));
  await change(groupId, params);
  return described(groupId);
}

/** @param {Params} params */
async function addToGroup(params) {
  const [groupId, tabIds] = [read.requiredInteger(params, "groupId"), read.requiredTabs(params, MOST_TABS)];
  await chrome.tabs.group({ groupId, tabIds }).catch((error) => raise(error, tabIds[0]));
  return described(groupId);
}

/** @param {Params} params */
async function removeFromGroup(params) {
  const tabIds = read.requiredTabs(params, MOST_TABS);
  await chrome.tabs.ungroup(tabIds).catch((error) => raise(error, tabIds[0]));
  return {};
}

/** @param {Params} params */
async function updateGroup(params) {
  const groupId = read.requiredInteger(params, "groupId");
  await change(groupId, params);
  return described(groupId);
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
