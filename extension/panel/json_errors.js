/**
 * Where a text stops being JSON, in words a person can use. The browser's own words repeat pieces of the text, which may
 * hold a secret, and do not always say where.
 */

/** @typedef {{ line: number, column: number, words: string }} Fault */

const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const DEEPEST = 200;

class Stop extends Error {
  /**
   * @param {number} at
   * @param {string} words
   */
  constructor(at, words) {
    super(words);
    this.at = at;
  }
}

/**
 * The first thing wrong with a text, or null if it is JSON.
 * @param {string} text
 * @returns {Fault | null}
 */
export function jsonFault(text) {
  try {
    const end = space(text, value(text, space(text, 0), 0));
    if (end < text.length) throw new Stop(end, "Nothing may follow here: the value has ended already.");
    return null;
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    const before = text.slice(0, error.at).split("\n");
    return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, words: error.message };
  }
}

/**
 * @param {RegExp} pattern
 * @param {string} text
 * @param {number} at
 */
function match(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

/**
 * @param {string} text
 * @param {number} at
 */
function space(text, at) {
  return match(SPACE, text, at);
}

/**
 * @param {string} text
 * @param {number} at
 * @param {number} depth
 * @returns {number} where it ends
 */
function value(text, at, depth) {
  if (depth > DEEPEST) throw new Stop(at, "It is nested too deeply.");
  const first = text[at];
  if (first === undefined) throw new Stop(at, "The text ends here, and a value is missing.");
  if (first === "{") return group(text, at, depth, "}");
  if (first === "[") return group(text, at, depth, "]");
  if (first === '"') return string(text, at);
  for (const pattern of [WORD, NUMBER]) {
    const end = match(pattern, text, at);
    if (end >= 0) return end;
  }
  if (first === "/") throw new Stop(at, "Comments are not part of JSON: take it out.");
  if (first === "'" || first === "“") throw new Stop(at, 'Texts stand in straight double quotes: ".');
  throw new Stop(at, "This is no value. Texts stand in double quotes.");
}

/**
 * @param {string} text
 * @param {number} at
 */
function string(text, at) {
  const end = match(STRING, text, at);
  if (end < 0) throw new Stop(at, "This text does not end, or holds something that must be escaped.");
  return end;
}

/**
 * An object or a list.
 * @param {string} text
 * @param {number} start
 * @param {number} depth
 * @param {"}" | "]"} close
 * @returns {number}
 */
function group(text, start, depth, close) {
  let at = space(text, start + 1);
  if (text[at] === close) return at + 1;
  for (;;) {
    if (close === "}") at = name(text, at);
    at = space(text, value(text, at, depth + 1));
    if (text[at] === close) return at + 1;
    if (text[at] === undefined) throw new Stop(at, `The text ends here, and a ${close} is missing.`);
    if (text[at] !== ",") throw new Stop(at, `A comma or a ${close} is missing before this.`);
    const comma = at;
    at = space(text, at + 1);
    if (text[at] === close) throw new Stop(comma, `This comma is one too many: a ${close} follows.`);
  }
}

/**
 * A name and its colon.
 * @param {string} text
 * @param {number} at
 */
function name(text, at) {
  if (text[at] === undefined) throw new Stop(at, "The text ends here, and a } is missing.");
  if (text[at] === "/") throw new Stop(at, "Comments are not part of JSON: take it out.");
  if (text[at] !== '"') throw new Stop(at, "A name in double quotes belongs here.");
  const end = space(text, string(text, at));
  if (text[end] !== ":") throw new Stop(end, "A colon is missing after the name.");
  return space(text, end + 1);
}
