/**
 * Adding external servers by pasting the configuration from their documentation. Errors are shown with their position;
 * the pasted text may contain secrets and is not repeated.
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
  const problem = (found && "problem" in found ? found.problem : "") || refused;
  const adding = app.ui["serverAdding"] === true;
  return section(
    "Add servers",
    null,
    h("label", { for: "server-json" }, "Configuration (JSON)"),
    h("textarea", {
      id: "server-json",
      rows: 6,
      spellcheck: "false",
      autocomplete: "off",
      placeholder: '{ "mcpServers": { "name": { "url": "https://…/mcp" } } }',
      "aria-describedby": problem ? "server-wrong" : "server-about",
      "aria-invalid": problem ? "true" : undefined,
      value: text,
      oninput: (/** @type {Event} */ event) => {
        app.ui["serverJson"] = /** @type {HTMLTextAreaElement} */ (event.target).value;
        app.ui["serverRefused"] = "";
        app.changed();
      },
    }),
    problem ? h("p", { class: "problem", id: "server-wrong", role: "status" }, problem) : null,
    problem ? null : h("p", { class: "quiet", id: "server-about" }, about(found)),
    h(
      "div",
      { class: "form-foot" },
      button(adding ? "Connecting…" : "Add", {
        kind: "primary",
        disabled: found === null || "problem" in found || adding,
        onclick: () => void add(app),
      }),
    ),
    disclosure(
      "example",
      "Example",
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
    app.say(servers.map(addedText).join(" "));
  } catch (error) {
    app.ui["serverRefused"] = errorText(error);
  } finally {
    app.ui["serverAdding"] = false;
    app.changed();
  }
}

/** The result for one server. @param {ServerFacts} server */
function addedText({ name, state, enabled, tools }) {
  if (!enabled) return `${name} was added, disabled.`;
  if (state === "ready") return `${name} has ${counted(tools.length, "tool")}.`;
  return `${name} was added, but has not answered yet.`;
}

/**
 * The server names in a text, or its error.
 * @param {string} text
 * @returns {{ names: string[] } | { problem: string }}
 */
function read(text) {
  const fault = jsonFault(text);
  if (fault) return { problem: `Invalid JSON at line ${fault.line}, column ${fault.column}: ${fault.message}` };
  const value = JSON.parse(text);
  if (!isObject(value)) return { problem: "The configuration must be a JSON object." };
  const outer = isObject(value["mcp"]) ? value["mcp"] : value;
  const wrapper = WRAPPERS.find((each) => isObject(outer[each]));
  return { names: Object.keys(wrapper ? outer[wrapper] : outer) };
}

/** @param {{ names: string[] } | { problem: string } | null} found */
function about(found) {
  if (!found || "problem" in found) return "Paste the configuration for Claude, Cursor or VS Code from the server's documentation.";
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
