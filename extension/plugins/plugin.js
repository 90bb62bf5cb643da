/**
 * A plugin in the browser: validated field by field from the hub's message, and the URLs it is for.
 */

import * as read from "../link/params.js";
import { INVALID_PARAMS, RpcError } from "../link/rpc.js";
import { matchesAny } from "./patterns.js";

/** @typedef {import("../link/rpc.js").Params} Params */

/**
 * @typedef {object} Plugin
 * @property {string} name
 * @property {string} hash the hash in its adapter
 * @property {string | null} file the adapter's path in the extension's folder
 * @property {string | null} preScript the path of the script that runs before the page's scripts, in the extension's folder
 * @property {string | null} source the adapter itself, if the hub cannot write a file
 * @property {string[]} patterns of the URLs it is for, including its instances
 * @property {string[]} exclude
 */

const NAME = /^[a-z0-9][a-z0-9-]{0,99}$/;
const HASH = /^[0-9a-f]{12,128}$/;
const FILE = /^adapters\/[a-z0-9][a-z0-9-]{0,150}\.js$/;
const PRE_FILE = /^adapters\/[a-z0-9][a-z0-9-]{0,150}-prescript-[0-9a-f]{12}\.js$/;
const MAX_PATTERNS = 500;
const MAX_SOURCE = 8 * 1024 * 1024;

/**
 * A plugin, or an error that names the invalid field.
 * @param {Params} given
 * @returns {Plugin}
 */
export function readPlugin(given) {
  const name = validated(given, "name", NAME);
  const source = read.optionalText(given, "adapterSource", MAX_SOURCE) ?? null;
  const instances = Array.isArray(given["instances"]) ? given["instances"].slice(0, MAX_PATTERNS) : [];
  const own = read.requiredStrings(given, "urlPatterns", MAX_PATTERNS);
  const more = instances.flatMap((instance) => read.requiredStrings(instance, "urlPatterns", MAX_PATTERNS));
  return {
    name,
    hash: validated(given, "adapterHash", HASH),
    file: source === null ? validated(given, "adapterFile", FILE) : null,
    preScript: given["preScriptFile"] === undefined ? null : validated(given, "preScriptFile", PRE_FILE),
    source,
    patterns: [...new Set([...own, ...more])],
    exclude: given["excludePatterns"] ? read.requiredStrings(given, "excludePatterns", MAX_PATTERNS) : [],
  };
}

/**
 * Whether a plugin is for a URL.
 * @param {Plugin} plugin
 * @param {string} url
 * @param {readonly string[]} [narrowed] restricts it to these patterns of one of its instances
 */
export function isFor({ patterns, exclude }, url, narrowed) {
  return matchesAny(patterns, url) && (!narrowed || matchesAny(narrowed, url)) && !matchesAny(exclude, url);
}

/**
 * @param {Params} given
 * @param {string} field
 * @param {RegExp} form
 */
function validated(given, field, form) {
  const value = read.requiredString(given, field);
  if (!form.test(value)) throw new RpcError(INVALID_PARAMS, `${field} is invalid: ${value.slice(0, 100)}`);
  return value;
}
