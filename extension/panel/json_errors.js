/**
 * Finds the first error in a JSON text. The browser's own messages quote parts of the text, which may contain a secret,
 * and do not always have a position.
 */

/** @typedef {{ line: number, column: number, message: string }} Fault */

const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const DEEPEST = 200;

class SyntaxFault extends Error {
  /**
   * @param {number} at
   * @param {string} message
   */
  constructor(at, message) {
    super(message);
    this.at = at;
  }
}

/**
 * The first error of a text, or null if it is valid JSON.
 * @param {string} text
 * @returns {Fault | null}
 */
export function jsonFault(text) {
  try {
    const end = space(text, value(text, space(text, 0), 0));
    if (end < text.length) throw new SyntaxFault(end, "Unexpected text after the end of the value.");
    return null;
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    const before = text.slice(0, error.at).split("\n");
    return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, message: error.message };
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
  if (depth > DEEPEST) throw new SyntaxFault(at, "Nested too deeply.");
  const first = text[at];
  if (first === undefined) throw new SyntaxFault(at, "Unexpected end: a value is missing.");
  if (first === "{") return group(text, at, depth, "}");
  if (first === "[") return group(text, at, depth, "]");
  if (first === '"') return string(text, at);
  for (const pattern of [WORD, NUMBER]) {
    const end = match(pattern, text, at);
    if (end >= 0) return end;
  }
  if (first === "/") throw new SyntaxFault(at, "JSON has no comments.");
  if (first === "'" || first === "“") throw new SyntaxFault(at, 'Strings need straight double quotes: ".');
  throw new SyntaxFault(at, "Not a value. Strings need double quotes.");
}

/**
 * @param {string} text
 * @param {number} at
 */
function string(text, at) {
  const end = match(STRING, text, at);
  if (end < 0) throw new SyntaxFault(at, "The string is not closed, or contains a character that must be escaped.");
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
    if (text[at] === undefined) throw new SyntaxFault(at, `Unexpected end: ${close} is missing.`);
    if (text[at] !== ",") throw new SyntaxFault(at, `Expected a comma or ${close} before this.`);
    const comma = at;
    at = space(text, at + 1);
    if (text[at] === close) throw new SyntaxFault(comma, `Trailing comma before ${close}.`);
  }
}

/**
 * A name and its colon.
 * @param {string} text
 * @param {number} at
 */
function name(text, at) {
  if (text[at] === undefined) throw new SyntaxFault(at, "Unexpected end: } is missing.");
  if (text[at] === "/") throw new SyntaxFault(at, "JSON has no comments.");
  if (text[at] !== '"') throw new SyntaxFault(at, "Expected a name in double quotes.");
  const end = space(text, string(text, at));
  if (text[end] !== ":") throw new SyntaxFault(end, "Expected a colon after the name.");
  return space(text, end + 1);
}
