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
