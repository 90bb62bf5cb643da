/**
 * Reading the parameters of a request: each has a type, and an error names the field.
 *
 * Only own properties count: an inherited name is a missing parameter.
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
function invalid(name, wanted) {
  throw new RpcError(INVALID_PARAMS, `${name} must be ${wanted}`);
}

/**
 * A whole number of at least `least`, or undefined if it is missing.
 * @param {Params} params
 * @param {string} name
 * @param {number} [least]
 */
export function optionalInteger(params, name, least = 0) {
  const value = own(params, name);
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > MAX_INT) {
    return invalid(name, `a whole number from ${least} to ${MAX_INT}`);
  }
  return value;
}

/**
 * @param {Params} params
 * @param {string} name
 */
export function requiredInteger(params, name) {
  return optionalInteger(params, name) ?? invalid(name, "a whole number");
}

/**
 * The tab a command is for.
 * @param {Params} params
 */
export function tabIdOf(params) {
  return optionalInteger(params, "tabId") ?? invalid("tabId", "the number of a tab");
}

/**
 * @param {Params} params
 * @param {string} name
 */
export function optionalBoolean(params, name) {
  const value = own(params, name);
  if (value !== undefined && typeof value !== "boolean") return invalid(name, "true or false");
  return value;
}

/**
 * A non-empty string, or undefined if it is missing.
 * @param {Params} params
 * @param {string} name
 */
export function optionalString(params, name) {
  const value = own(params, name);
  if (value === undefined) return undefined;
  return typeof value === "string" && value !== "" ? value : invalid(name, "a non-empty string");
}

/**
 * @param {Params} params
 * @param {string} name
 */
export function requiredString(params, name) {
  return optionalString(params, name) ?? invalid(name, "a non-empty string");
}

/**
 * @param {Params} params
 * @param {string} name
 */
export function optionalObject(params, name) {
  const value = own(params, name);
  if (value !== undefined && !isObject(value)) return invalid(name, "an object");
  return value;
}

/**
 * A string of at most `most` characters, which may be empty; undefined if it is missing.
 * @param {Params} params
 * @param {string} name
 * @param {number} most
 */
export function optionalText(params, name, most) {
  const value = own(params, name);
  if (value === undefined) return undefined;
  return typeof value === "string" && value.length <= most ? value : invalid(name, `a string of at most ${most} characters`);
}

/**
 * A non-negative number, such as a time; undefined if it is missing.
 * @param {Params} params
 * @param {string} name
 */
export function optionalTime(params, name) {
  const value = own(params, name);
  if (value === undefined) return undefined;
  return typeof value === "number" && value >= 0 && value < 2 ** 53 ? value : invalid(name, "a number of at least 0");
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
    return invalid("tabIds", `a list of 1 to ${most} tab numbers`);
  }
  return /** @type {[number, ...number[]]} */ (value);
}

/**
 * A list of at most `most` non-empty strings.
 * @param {Params} params
 * @param {string} name
 * @param {number} most
 * @returns {string[]}
 */
export function requiredStrings(params, name, most) {
  const value = own(params, name);
  if (!Array.isArray(value) || value.length > most || value.some((item) => typeof item !== "string" || item === "")) {
    return invalid(name, `a list of at most ${most} non-empty strings`);
  }
  return value;
}

/**
 * A list of at most `most` objects; empty if it is missing.
 * @param {Params} params
 * @param {string} name
 * @param {number} most
 * @returns {Params[]}
 */
export function optionalObjects(params, name, most) {
  const value = own(params, name) ?? [];
  const fits = Array.isArray(value) && value.length <= most && value.every(isObject);
  return fits ? value : invalid(name, `a list of at most ${most} objects`);
}

/**
 * One of the given values, or the first if it is missing.
 * @template {string} Value
 * @param {Params} params
 * @param {string} name
 * @param {readonly [Value, ...Value[]]} values
 * @returns {Value}
 */
export function oneOf(params, name, values) {
  const value = own(params, name);
  if (value === undefined) return values[0];
  return values.find((each) => each === value) ?? invalid(name, `one of ${values.join(", ")}`);
}

/**
 * One of the given values, or undefined if it is missing.
 * @template {string} Value
 * @param {Params} params
 * @param {string} name
 * @param {readonly [Value, ...Value[]]} values
 * @returns {Value | undefined}
 */
export function optionalOneOf(params, name, values) {
  return own(params, name) === undefined ? undefined : oneOf(params, name, values);
}

/**
 * The object without undefined members, which the browser refuses.
 * @template {object} Given
 * @param {Given} given
 * @returns {{ [Name in keyof Given]?: Exclude<Given[Name], undefined> }}
 */
export function withoutUndefined(given) {
  const kept = Object.entries(given).filter(([, value]) => value !== undefined);
  return /** @type {any} */ (Object.fromEntries(kept));
}
