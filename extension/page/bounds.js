/**
 * What a page may send and how much of it: every value from a page passes here before anything looks at it, in the page's
 * frame and again in the worker, which must not trust the frame.
 *
 * A plain script, so that it can be put into frames; the worker imports it for the global it defines.
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
 */

var pageChecks = (() => {
  const MAX_MESSAGE = 1024 * 1024;
  const MAX_TOOLS = 500;
  const MAX_NAME = 128;
  const MAX_DEPTH = 64;
  const VIA = ["webmcp", "mcpb", "form"];
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
   * A copy that is nothing but JSON and within bounds; throws with what is wrong.
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
   * One tool with the fields we know, or null.
   * @param {unknown} given
   * @returns {PageTool | null}
   */
  function tool(given) {
    if (!isObject(given) || !isName(given["name"]) || !VIA.includes(String(given["via"]))) return null;
    /** @type {Record<string, unknown>} */
    const made = { name: given["name"] };
    for (const field of TEXTS) if (typeof given[field] === "string" && given[field] !== "") made[field] = given[field];
    for (const field of OBJECTS) {
      const value = given[field];
      if (value === undefined || value === null) continue;
      if (!isObject(value)) return null;
      made[field] = value;
    }
    made["via"] = given["via"];
    return /** @type {PageTool} */ (/** @type {unknown} */ (made));
  }

  /**
   * The tools of a list that can be taken, the first of each name, as many as fit; and how many were left out.
   * @param {unknown} given
   * @returns {{ tools: PageTool[], refused: number }}
   */
  function tools(given) {
    if (!Array.isArray(given)) return { tools: [], refused: 1 };
    /** @type {Map<string, PageTool>} */
    const taken = new Map();
    let room = MAX_MESSAGE;
    let refused = 0;
    for (const item of given) {
      try {
        const clean = taken.size < MAX_TOOLS ? tool(plain(item, room)) : null;
        if (clean === null) refused++;
        else if (!taken.has(clean.name)) {
          taken.set(clean.name, clean);
          room -= JSON.stringify(clean).length;
        }
      } catch {
        refused++;
      }
    }
    return { tools: [...taken.values()], refused };
  }

  /**
   * What a tool gave, as an MCP result: one already stays as it is, anything else becomes text, and an object is also
   * given as structured content. Throws with what is wrong.
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
   * What an error says, whatever was thrown, and not more than a person would read.
   * @param {unknown} error
   */
  function textOf(error) {
    try {
      return String(error instanceof Error ? error.message : error).slice(0, 2000);
    } catch {
      return "an error without words";
    }
  }

  return Object.freeze({ MAX_MESSAGE, isObject, isName, plain, tools, result, textOf });
})();
globalThis.pageChecks = pageChecks;
