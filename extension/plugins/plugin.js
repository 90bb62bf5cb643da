/**
 * What the browser knows of a plugin: read from what the hub sends, field by field, and which addresses it is for.
 */

import * as read from "../link/params.js";
import { INVALID_PARAMS, RpcError } from "../link/rpc.js";
import { fitsAny } from "./patterns.js";

/** @typedef {import("../link/rpc.js").Params} Params */

/**
 * @typedef {object} Plugin
 * @property {string} name
 * @property {string} hash the stamp its adapter carries
 * @property {string | null} file the adapter in the extension's own folder
 * @property {string | null} preScript what runs before the page's own scripts, in the extension's own folder
 * @property {string | null} source the adapter itself, where the hub cannot write such a file
 * @property {string[]} patterns every address it is for, those of its instances too
 * @property {string[]} exclude
 */

const NAME = /^[a-z0-9][a-z0-9-]{0,99}$/;
const HASH = /^[0-9a-f]{12,128}$/;
const FILE = /^adapters\/[a-z0-9][a-z0-9-]{0,150}\.js$/;
const PRE_FILE = /^adapters\/[a-z0-9][a-z0-9-]{0,150}-prescript-[0-9a-f]{12}\.js$/;
const MOST_PATTERNS = 500;
const LONGEST_SOURCE = 8 * 1024 * 1024;

/**
 * A plugin, or an error that names the field that is wrong.
 * @param {Params} given
 * @returns {Plugin}
 */
export function readPlugin(given) {
  const name = word(given, "name", NAME);
  const source = read.optionalText(given, "adapterSource", LONGEST_SOURCE) ?? null;
  const instances = Array.isArray(given["instances"]) ? given["instances"].slice(0, MOST_PATTERNS) : [];
  const own = read.requiredStrings(given, "urlPatterns", MOST_PATTERNS);
  const more = instances.flatMap((instance) => read.requiredStrings(instance, "urlPatterns", MOST_PATTERNS));
  return {
    name,
    hash: word(given, "adapterHash", HASH),
    file: source === null ? word(given, "adapterFile", FILE) : null,
    preScript: given["preScriptFile"] === undefined ? null : word(given, "preScriptFile", PRE_FILE),
    source,
    patterns: [...new Set([...own, ...more])],
    exclude: given["excludePatterns"] ? read.requiredStrings(given, "excludePatterns", MOST_PATTERNS) : [],
  };
}

/**
 * Whether a plugin is for an address.
 * @param {Plugin} plugin
 * @param {string} url
 * @param {readonly string[]} [narrowed] to these of its patterns, for one of its instances
 */
export function isFor({ patterns, exclude }, url, narrowed) {
  return fitsAny(patterns, url) && (!narrowed || fitsAny(narrowed, url)) && !fitsAny(exclude, url);
}

/**
 * @param {Params} given
 * @param {string} field
 * @param {RegExp} form
 */
function word(given, field, form) {
  const value = read.requiredString(given, field);
  if (!form.test(value)) throw new RpcError(INVALID_PARAMS, `${field} is not one: ${value.slice(0, 100)}`);
  return value;
}
