/**
 * Commands on cookies and other data of a site. Values are secrets and are never logged.
 */

import * as read from "../link/params.js";
import { FAILED, INVALID_PARAMS, RpcError, commandMap, textOf } from "../link/rpc.js";
import { cut } from "./lists.js";

/** @typedef {import("../link/rpc.js").Params} Params */

const MOST = 500;
const LONGEST_VALUE = 4_096;
const KINDS = /** @type {const} */ (["cookies", "localStorage", "cache", "indexedDB", "serviceWorkers"]);

/**
 * An http or https URL.
 * @param {Params} params
 * @param {string} name
 */
function webAddress(params, name) {
  const parsed = URL.parse(read.requiredString(params, name));
  if (parsed && ["http:", "https:"].includes(parsed.protocol)) return parsed;
  throw new RpcError(INVALID_PARAMS, `${name} must be a complete http or https URL`);
}

/** @param {chrome.cookies.Cookie} cookie */
function describe({ name, value, domain, path, secure, httpOnly, sameSite, session, hostOnly, expirationDate, partitionKey }) {
  const rest = read.withoutUndefined({ expirationDate, partition: partitionKey?.topLevelSite });
  return { name, value, domain, path, secure, httpOnly, sameSite, session, hostOnly, ...rest };
}

/**
 * The cookies for a URL, including partitioned ones.
 * @param {Params} params
 */
function cookiesFor(params) {
  const { href } = webAddress(params, "url");
  const name = read.withoutUndefined({ name: read.optionalText(params, "name", LONGEST_VALUE) });
  return chrome.cookies.getAll({ url: href, partitionKey: {}, ...name });
}

/** @param {Params} params */
async function getCookies(params) {
  return cut("cookies", (await cookiesFor(params)).map(describe), MOST);
}

/** @param {Params} params */
async function setCookie(params) {
  const { href } = webAddress(params, "url");
  const name = read.requiredString(params, "name");
  const value = read.optionalText(params, "value", LONGEST_VALUE) ?? "";
  const more = read.withoutUndefined({
    domain: read.optionalString(params, "domain"),
    path: read.optionalString(params, "path"),
    secure: read.optionalBoolean(params, "secure"),
    httpOnly: read.optionalBoolean(params, "httpOnly"),
    expirationDate: read.optionalTime(params, "expirationDate"),
  });
  const cookie = await chrome.cookies.set({ url: href, name, value, ...more }).catch((error) => {
    throw new RpcError(FAILED, textOf(error));
  });
  if (!cookie) throw new RpcError(FAILED, "The browser rejected the cookie.");
  return describe(cookie);
}

/** @param {Params} params */
async function deleteCookies(params) {
  const { href } = webAddress(params, "url");
  const name = read.requiredString(params, "name");
  const found = await cookiesFor(params);
  const partitions = new Set(found.map(({ partitionKey }) => JSON.stringify(partitionKey ?? null)));
  for (const key of partitions) {
    const partitionKey = JSON.parse(key);
    await chrome.cookies.remove({ url: href, name, ...(partitionKey ? { partitionKey } : {}) });
  }
  const left = await cookiesFor(params);
  return { deleted: found.length - left.length };
}

/** @param {Params} params */
async function clearSiteData(params) {
  const { origin } = webAddress(params, "origin");
  const wanted = KINDS.filter((kind) => read.optionalBoolean(params, kind) ?? false);
  if (wanted.length === 0) throw new RpcError(INVALID_PARAMS, `One of ${KINDS.join(", ")} must be true.`);
  /** @type {chrome.browsingData.DataTypeSet} */
  const kinds = Object.fromEntries(wanted.map((kind) => [kind, true]));
  // Caches of the page's own scripts are included.
  if (kinds.cache) kinds.cacheStorage = true;
  await chrome.browsingData.remove({ origins: [origin] }, kinds);
  return { origin, cleared: wanted };
}

export const siteDataCommands = commandMap({ getCookies, setCookie, deleteCookies, clearSiteData });
