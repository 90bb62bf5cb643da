/**
 * Adding external servers by pasting what their documentation gives for other programs. What is wrong is said at the
 * field, with the place; what was pasted may hold secrets, and is not repeated.
 */

import { h } from "../dom.js";
import { counted } from "../format.js";
import { jsonFault } from "../json_errors.js";
import { button, disclosure, section } from "../components.js";
import { errorText } from "../worker_client.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").ServerFacts} ServerFacts */

const EXAMPLE = `{
  "mcpServers": {
    "weather": {
      "url": "https://weather.example/mcp",
      "headers": { "Authorization": "Bearer \${WEATHER_KEY}" }
    },
    "files": { "command": "npx", "args": ["-y", "some-server"] }
  }
}`;
const WRAPPERS = ["mcpServers", "servers"];

/** @param {App} app */
export function adder(app) {
  const text = String(app.ui["serverJson"] ?? "");
  const found = text.trim() === "" ? null : read(text);
  const refused = String(app.ui["serverRefused"] ?? "");
  const wrong = (found && "wrong" in found ? found.wrong : "") || refused;
  const adding = app.ui["serverAdding"] === true;
  return section(
    "Add servers",
    null,
    h("label", { for: "server-json" }, "Settings, as JSON"),
    h("textarea", {
      id: "server-json",
      rows: 6,
      spellcheck: "false",
      autocomplete: "off",
      placeholder: '{ "mcpServers": { "name": { "url": "https://…/mcp" } } }',
      "aria-describedby": wrong ? "server-wrong" : "server-about",
      "aria-invalid": wrong ? "true" : undefined,
      value: text,
      oninput: (/** @type {Event} */ event) => {
        app.ui["serverJson"] = /** @type {HTMLTextAreaElement} */ (event.target).value;
        app.ui["serverRefused"] = "";
        app.changed();
      },
    }),
    wrong ? h("p", { class: "problem", id: "server-wrong", role: "status" }, wrong) : null,
    wrong ? null : h("p", { class: "quiet", id: "server-about" }, about(found)),
    h(
      "div",
      { class: "form-foot" },
      button(adding ? "Looking for tools…" : "Add", {
        kind: "primary",
        disabled: found === null || "wrong" in found || adding,
        onclick: () => void add(app),
      }),
    ),
    disclosure(
      "example",
      "What it looks like",
      h("pre", { tabindex: "0", role: "group", "aria-label": "Example" }, EXAMPLE),
      { class: "example" },
    ),
  );
}

/** @param {App} app */
async function add(app) {
  app.ui["serverAdding"] = true;
  app.changed();
  try {
    const { servers } = await app.ask("upstream.add", { json: String(app.ui["serverJson"] ?? "") });
    app.ui["serverJson"] = app.ui["serverRefused"] = "";
    const opened = /** @type {Record<string, boolean>} */ (app.ui["opened"] ??= {});
    for (const { name } of servers) opened[`server ${name}`] = true;
    app.say(servers.map(came).join(" "));
  } catch (error) {
    app.ui["serverRefused"] = errorText(error);
  } finally {
    app.ui["serverAdding"] = false;
    app.changed();
  }
}

/** How one that was added is. @param {ServerFacts} server */
function came({ name, state, enabled, tools }) {
  if (!enabled) return `${name} was added, switched off.`;
  if (state === "ready") return `${name} has ${counted(tools.length, "tool")}.`;
  return `${name} was added, but did not answer yet.`;
}

/**
 * The names in a text, or what is wrong with it.
 * @param {string} text
 * @returns {{ names: string[] } | { wrong: string }}
 */
function read(text) {
  const fault = jsonFault(text);
  if (fault) return { wrong: `Not JSON yet. Line ${fault.line}, column ${fault.column}: ${fault.words}` };
  const value = JSON.parse(text);
  if (!isObject(value)) return { wrong: "This is JSON, but not an object in braces." };
  const outer = isObject(value["mcp"]) ? value["mcp"] : value;
  const wrapper = WRAPPERS.find((each) => isObject(outer[each]));
  return { names: Object.keys(wrapper ? outer[wrapper] : outer) };
}

/** @param {{ names: string[] } | { wrong: string } | null} found */
function about(found) {
  if (!found || "wrong" in found) return "Paste what a server's documentation gives for Claude, Cursor or VS Code.";
  return found.names.length === 1
    ? `Adds ${found.names[0]}.`
    : `Adds ${counted(found.names.length, "server")}: ${found.names.join(", ")}.`;
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, any>}
 */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
