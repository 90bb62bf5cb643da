/**
 * The parameters of a request, read one by one: each has a type, and an error names the field.
 *
 * Only own properties count, so a name every object inherits is just a missing parameter.
 */

import { INVALID_PARAMS, RpcError, isObject } from "./rpc.js";

/** @typedef {Record<string, unknown>} Params */

const MAX_INT = 2 ** 31 - 1;

/**
 * @param {Params} params
 * @param {string} name
 */
function own(params, name) {
  return Object.hasOwn(params, name) ? (params[name] ?? undefined) : undefined;
}

/**
 * @param {string} name
 * @param {string} wanted
 * @returns {never}
 */
function wrong(name, wanted) {
  throw new RpcError(INVALID_PARAMS, `${name} must be ${wanted}`);
}

/**
 * A whole number of at least `least`, or undefined when it is missing.
 * @param {Params} params
 * @param {string} name
 * @param {number} [least]
 */
export function optionalInteger(params, name, least = 0) {
  const value = own(params, name);
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > MAX_INT) {
    return wrong(name, `a whole number from ${least} to ${MAX_INT}`);
  }
  return value;
}

/**
 * @param {Params} params
 * @param {string} name
 */
export function requiredInteger(params, name) {
  return optionalInteger(params, name) ?? wrong(name, "given as a whole number");
}

/**
 * The tab a command is for.
 * @param {Params} params
 */
export function tabIdOf(params) {
  return optionalInteger(params, "tabId") ?? wrong("tabId", "given: the number of a tab");
}

/**
 * @param {Params} params
 * @param {string} name
 */
export function optionalBoolean(params, name) {
  const value = own(params, name);
  if (value !== undefined && typeof value !== "boolean") return wrong(name, "true or false");
  return value;
}

/**
 * A text, or undefined when it is missing.
 * @param {Params} params
 * @param {string} name
 */
export function optionalString(params, name) {
  const value = own(params, name);
  if (value === undefined) return undefined;
  return typeof value === "string" && value !== "" ? value : wrong(name, "a text that is not empty");
}

/**
 * @param {Params} params
 * @param {string} name
 */
export function requiredString(params, name) {
  return optionalString(params, name) ?? wrong(name, "given as a text");
}

/**
 * @param {Params} params
 * @param {string} name
 */
export function optionalObject(params, name) {
  const value = own(params, name);
  if (value !== undefined && !isObject(value)) return wrong(name, "an object");
  return value;
}

/**
 * A text of at most `most` characters, which may be empty; undefined when it is missing.
 * @param {Params} params
 * @param {string} name
 * @param {number} most
 */
export function optionalText(params, name, most) {
  const value = own(params, name);
  if (value === undefined) return undefined;
  return typeof value === "string" && value.length <= most ? value : wrong(name, `a text of at most ${most} characters`);
}

/**
 * A number that is not negative, such as a moment in time; undefined when it is missing.
 * @param {Params} params
 * @param {string} name
 */
export function optionalMoment(params, name) {
  const value = own(params, name);
  if (value === undefined) return undefined;
  return typeof value === "number" && value >= 0 && value < 2 ** 53 ? value : wrong(name, "a number from 0 on");
}

/**
 * From one to `most` tabs.
 * @param {Params} params
 * @param {number} most
 * @returns {[number, ...number[]]}
 */
export function requiredTabs(params, most) {
  const value = own(params, "tabIds");
  const fits = Array.isArray(value) && value.length > 0 && value.length <= most;
  if (!fits || value.some((item) => !Number.isInteger(item) || item < 0 || item > MAX_INT)) {
    return wrong("tabIds", `a list of 1 to ${most} tab numbers`);
  }
  return /** @type {[number, ...number[]]} */ (value);
}

/**
 * A list of at most `most` texts.
 * @param {Params} params
 * @param {string} name
 * @param {number} most
 * @returns {string[]}
 */
export function requiredStrings(params, name, most) {
  const value = own(params, name);
  if (!Array.isArray(value) || value.length > most || value.some((item) => typeof item !== "string" || item === "")) {
    return wrong(name, `a list of at most ${most} texts`);
  }
  return value;
}

/**
 * A list of at most `most` objects; an empty one when it is missing.
 * @param {Params} params
 * @param {string} name
 * @param {number} most
 * @returns {Params[]}
 */
export function optionalObjects(params, name, most) {
  const value = own(params, name) ?? [];
  const fits = Array.isArray(value) && value.length <= most && value.every(isObject);
  return fits ? value : wrong(name, `a list of at most ${most} objects`);
}

/**
 * One of the given words, or the first of them when it is missing.
 * @template {string} Word
 * @param {Params} params
 * @param {string} name
 * @param {readonly [Word, ...Word[]]} words
 * @returns {Word}
 */
export function oneOf(params, name, words) {
  const value = own(params, name);
  if (value === undefined) return words[0];
  return words.find((word) => word === value) ?? wrong(name, `one of ${words.join(", ")}`);
}

/**
 * One of the given words, or undefined when it is missing.
 * @template {string} Word
 * @param {Params} params
 * @param {string} name
 * @param {readonly [Word, ...Word[]]} words
 * @returns {Word | undefined}
 */
export function optionalWord(params, name, words) {
  return own(params, name) === undefined ? undefined : oneOf(params, name, words);
}

/**
 * An object without the members that are undefined: the browser takes those for wrong values.
 * @template {object} Given
 * @param {Given} given
 * @returns {{ [Name in keyof Given]?: Exclude<Given[Name], undefined> }}
 */
export function given(given) {
  const kept = Object.entries(given).filter(([, value]) => value !== undefined);
  return /** @type {any} */ (Object.fromEntries(kept));
}
