/**
 * Validation and size limits of everything a page sends: applied in the page's frame, and again in the worker, which does
 * not trust the frame.
 *
 * A plain script, so that it can be injected into frames; the worker imports it for the global it defines.
 */

/**
 * @typedef {object} PageTool
 * @property {string} name
 * @property {string} [title]
 * @property {string} [description]
 * @property {Record<string, unknown>} [inputSchema]
 * @property {Record<string, unknown>} [outputSchema]
 * @property {Record<string, unknown>} [annotations]
 * @property {"webmcp" | "mcpb" | "form"} via
 * @property {"prompt" | "resource" | "template"} [kind] what else of a server it is; its name begins with this
 */

var pageChecks = (() => {
  const MAX_MESSAGE = 1024 * 1024;
  const MAX_TOOLS = 500;
  const MAX_NAME = 128;
  const MAX_DEPTH = 64;
  const VIA = ["webmcp", "mcpb", "form"];
  const KINDS = ["prompt", "resource", "template"];
  const TEXTS = ["title", "description"];
  const OBJECTS = ["inputSchema", "outputSchema", "annotations"];

  /**
   * @param {unknown} value
   * @returns {value is Record<string, unknown>}
   */
  function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
  }

  /** @param {unknown} value of JSON, so without cycles */
  function isTooDeep(value) {
    let level = [value];
    for (let depth = 0; level.length > 0; depth++) {
      if (depth > MAX_DEPTH) return true;
      level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
    }
    return false;
  }

  /**
   * A copy as plain JSON within the limits; throws an error that says what is wrong.
   * @param {unknown} value
   * @param {number} [most] characters
   * @returns {unknown}
   */
  function plain(value, most = MAX_MESSAGE) {
    let text;
    try {
      text = JSON.stringify(value);
    } catch {
      throw new Error("it cannot be written as JSON");
    }
    if (text === undefined) return null;
    if (text.length > most) throw new Error(`it is larger than ${most} characters`);
    const copy = JSON.parse(text);
    if (isTooDeep(copy)) throw new Error(`it is nested more than ${MAX_DEPTH} deep`);
    return copy;
  }

  /**
   * @param {unknown} name
   * @returns {name is string}
   */
  function isName(name) {
    if (typeof name !== "string" || name.length === 0 || name.length > MAX_NAME) return false;
    return name.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(name);
  }

  /**
   * One tool with its known fields, or null if it is invalid.
   * @param {unknown} given
   * @returns {PageTool | null}
   */
  function tool(given) {
    if (!isObject(given) || !isName(given["name"]) || !VIA.includes(String(given["via"]))) return null;
    /** @type {Record<string, unknown>} */
    const result = { name: given["name"] };
    for (const field of TEXTS) if (typeof given[field] === "string" && given[field] !== "") result[field] = given[field];
    for (const field of OBJECTS) {
      const value = given[field];
      if (value === undefined || value === null) continue;
      if (!isObject(value)) return null;
      result[field] = value;
    }
    result["via"] = given["via"];
    const kind = given["kind"];
    if (kind !== undefined && (given["via"] !== "mcpb" || !KINDS.includes(String(kind)))) return null;
    if (kind !== undefined) result["kind"] = kind;
    return /** @type {PageTool} */ (/** @type {unknown} */ (result));
  }

  /**
   * The valid tools of a list, the first of each name, up to the limits; and how many were refused.
   * @param {unknown} given
   * @param {number} [most] tools
   * @param {number} [bytes] characters of all of them
   * @returns {{ tools: PageTool[], refused: number }}
   */
  function tools(given, most = MAX_TOOLS, bytes = MAX_MESSAGE) {
    if (!Array.isArray(given)) return { tools: [], refused: 1 };
    /** @type {Map<string, PageTool>} */
    const accepted = new Map();
    let room = bytes;
    let refused = 0;
    for (const item of given) {
      try {
        const clean = accepted.size < most ? tool(plain(item, room)) : null;
        if (clean === null) refused++;
        else if (!accepted.has(clean.name)) {
          accepted.set(clean.name, clean);
          room -= JSON.stringify(clean).length;
        }
      } catch {
        refused++;
      }
    }
    return { tools: [...accepted.values()], refused };
  }

  /**
   * A tool's result as an MCP result: one stays as it is, anything else becomes text, and an object also becomes
   * structured content. Throws an error that says what is wrong.
   * @param {unknown} value
   * @returns {Record<string, unknown>}
   */
  function result(value) {
    const given = plain(value);
    if (given === null || given === "") return { content: [] };
    if (typeof given === "string") return { content: [{ type: "text", text: given }] };
    if (!isObject(given)) return { content: [{ type: "text", text: JSON.stringify(given) }] };
    if (Array.isArray(given["content"])) return given;
    return { content: [{ type: "text", text: JSON.stringify(given) }], structuredContent: given };
  }

  /**
   * The message of whatever was thrown, shortened.
   * @param {unknown} error
   */
  function textOf(error) {
    try {
      return String(error instanceof Error ? error.message : error).slice(0, 2000);
    } catch {
      return "unknown error";
    }
  }

  /** A random text; `crypto.randomUUID` exists only in secure contexts. */
  function randomId() {
    return [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16)).join("-");
  }

  return Object.freeze({ MAX_MESSAGE, isObject, randomId, isName, plain, tools, result, textOf });
})();
globalThis.pageChecks = pageChecks;
