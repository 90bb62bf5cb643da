/**
 * Commands on bookmarks: search, add, list.
 */

import * as read from "../link/params.js";
import { FAILED, RpcError, commandMap, textOf } from "../link/rpc.js";
import { allowedUrl } from "../tabs/navigation.js";
import { cut, moment, short } from "./lists.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {chrome.bookmarks.BookmarkTreeNode} Node */
/** @typedef {{ id: string, title: string, url?: string, parentId?: string, dateAdded?: string, children?: Described[], more?: number }} Described */

const MOST_FOUND = 200;
const MOST_LISTED = 2_000;
const DEEPEST = 20;

/**
 * @param {Node} node
 * @returns {Described}
 */
function describe({ id, title, url, parentId, dateAdded }) {
  return {
    id,
    title: short(title),
    ...(url === undefined ? {} : { url: short(url) }),
    ...(parentId === undefined ? {} : { parentId }),
    ...moment("dateAdded", dateAdded),
  };
}

/** @param {Params} params */
async function searchBookmarks(params) {
  const query = read.optionalText(params, "query", 1_000) ?? "";
  return cut("bookmarks", (await chrome.bookmarks.search(query)).map(describe), MOST_FOUND);
}

/** @param {Params} params */
async function createBookmark(params) {
  const url = await allowedUrl(read.requiredString(params, "url"));
  const title = read.optionalText(params, "title", 1_000) ?? "";
  const parentId = read.optionalString(params, "parentId");
  try {
    return describe(await chrome.bookmarks.create({ url, title, ...read.withoutUndefined({ parentId }) }));
  } catch (error) {
    throw new RpcError(FAILED, textOf(error));
  }
}

/** @param {Params} params */
async function getBookmarkTree(params) {
  const parentId = read.optionalString(params, "parentId");
  const deepest = Math.min(read.optionalInteger(params, "maxDepth", 1) ?? DEEPEST, DEEPEST);
  let roots;
  try {
    roots = parentId === undefined ? await chrome.bookmarks.getTree() : await chrome.bookmarks.getSubTree(parentId);
  } catch (error) {
    throw new RpcError(FAILED, textOf(error));
  }
  let room = MOST_LISTED;
  /**
   * @param {Node} node
   * @param {number} depth
   * @returns {Described}
   */
  function walk(node, depth) {
    room -= 1;
    if (!node.children) return describe(node);
    /** @type {Described[]} */
    const children = [];
    // Children that are not listed, because of depth or size, are counted.
    for (const child of depth < deepest ? node.children : []) if (room > 0) children.push(walk(child, depth + 1));
    const more = node.children.length - children.length;
    return { ...describe(node), children, ...(more > 0 ? { more } : {}) };
  }
  return { roots: roots.map((root) => walk(root, 0)) };
}

export const bookmarkCommands = commandMap({ searchBookmarks, createBookmark, getBookmarkTree });
