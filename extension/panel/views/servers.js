/**
 * External MCP servers: their tools are offered to agents beside those of the browser. One is added by pasting what its
 * documentation gives for other programs.
 */

import { h } from "../dom.js";
import { counted, words } from "../format.js";
import { badge, button, disclosure, dot, empty, expander, iconButton, section, sureButton, toggle } from "../parts.js";

/** @typedef {import("../shapes.js").App} App */
/** @typedef {import("../shapes.js").ServerFacts} ServerFacts */
/** @typedef {import("../shapes.js").ToolFacts} ToolFacts */
/** @typedef {import("../shapes.js").View} View */

const EXAMPLE = `{
  "mcpServers": {
    "files": { "url": "http://127.0.0.1:3001/mcp" }
  }
}`;

/** @param {App} app */
function draw(app) {
  const servers = app.state?.upstream ?? [];
  return [
    h(
      "p",
      { class: "lead" },
      "Other MCP servers you use. Through the hub, agents have their tools too, with the same permissions and the same log.",
    ),
    servers.length > 0
      ? h(
          "div",
          { class: "cards" },
          servers.map((server) => card(app, server)),
        )
      : empty(
          "servers",
          "No server yet",
          h("p", null, "Paste a server's settings below. Its tools are found by themselves."),
        ),
    adder(app),
  ];
}

/** @param {ServerFacts} server */
function stateOf({ enabled, state, error, tools }) {
  if (!enabled) return /** @type {const} */ (["quiet", "switched off"]);
  if (error || state === "failed" || state === "error") return /** @type {const} */ (["bad", "not reached"]);
  if (state === "connecting" || state === "starting") return /** @type {const} */ (["quiet", "connecting…"]);
  return /** @type {const} */ (["good", counted(tools?.length ?? 0, "tool")]);
}

/**
 * @param {App} app
 * @param {ServerFacts} server
 */
function card(app, server) {
  const { name, url, command, enabled, error, tools = [] } = server;
  const [tone, said] = stateOf(server);
  const enable = (/** @type {boolean} */ on) => {
    server.enabled = on;
    app.changed();
    void app.act("upstream.set", { name, enabled: on });
  };
  return h(
    "article",
    { class: "card", key: name, "aria-label": name, "data-server": name },
    h(
      "div",
      { class: "card-head" },
      h("div", { class: "card-title" }, h("h2", null, name), h("p", { class: "quiet" }, dot(tone), said)),
      toggle(`Use ${name}`, enabled, enable, { hidden: true }),
    ),
    h("p", { class: "quiet path" }, url ?? command ?? ""),
    error ? h("p", { class: "problem" }, error) : null,
    tools.length > 0
      ? expander(app, `server ${name}`, {
          title: "Tools",
          level: 3,
          body: () =>
            h(
              "ul",
              { class: "tool-list" },
              tools.map((tool) => toolRow(app, server, tool)),
            ),
        })
      : null,
    h(
      "div",
      { class: "card-foot" },
      tools.length > 0 ? h("a", { href: "#tools" }, "Permissions") : null,
      h("span", { class: "room" }),
      iconButton(
        `Look again for tools of ${name}`,
        "refresh",
        () => void app.act("upstream.refresh", { name }, `${name} was asked for its tools.`),
      ),
      sureButton(
        app,
        `remove ${name}`,
        "Remove",
        "Remove it now?",
        () => void app.act("upstream.remove", { name }, `${name} was removed.`),
      ),
    ),
  );
}

/**
 * @param {App} app
 * @param {ServerFacts} server
 * @param {ToolFacts} tool
 */
function toolRow(app, server, tool) {
  const title = tool.title || words(tool.name);
  const change = (/** @type {boolean} */ on) => {
    tool.enabled = on;
    app.changed();
    const off = server.tools.filter((each) => each.enabled === false).map((each) => each.name);
    void app.act("upstream.set", { name: server.name, disabledTools: off });
  };
  return h(
    "li",
    { key: tool.name, class: "tool" },
    h(
      "div",
      { class: "tool-words" },
      h("span", { class: "tool-title" }, title, tool.changed ? badge("changed", "warn") : null),
      h("span", { class: "tool-description" }, tool.description ?? ""),
    ),
    toggle(`Offer ${title}`, tool.enabled !== false, change, { hidden: true }),
  );
}

/** @param {App} app */
function adder(app) {
  const text = String(app.ui["serverJson"] ?? "");
  const wrong = text.trim() === "" ? null : problem(text);
  const add = async () => {
    const done = await app.act("upstream.add", { json: text }, "Added. Its tools are being looked for.");
    if (!done) return;
    app.ui["serverJson"] = "";
    app.changed();
  };
  return section(
    "Add a server",
    null,
    h("label", { for: "server-json" }, "Settings, as JSON"),
    h("textarea", {
      id: "server-json",
      rows: 5,
      spellcheck: "false",
      placeholder: EXAMPLE,
      "aria-describedby": wrong ? "server-wrong" : undefined,
      "aria-invalid": wrong ? "true" : undefined,
      value: text,
      oninput: (/** @type {Event} */ event) => {
        app.ui["serverJson"] = /** @type {HTMLTextAreaElement} */ (event.target).value;
        app.changed();
      },
    }),
    wrong ? h("p", { class: "problem", id: "server-wrong" }, wrong) : null,
    h(
      "div",
      { class: "form-foot" },
      button("Add", { kind: "primary", disabled: text.trim() === "" || wrong !== null, onclick: () => void add() }),
    ),
    disclosure(
      "example",
      "What it looks like",
      h("pre", { tabindex: "0", role: "region", "aria-label": "Example" }, EXAMPLE),
    ),
  );
}

/** @param {string} text */
function problem(text) {
  try {
    const read = JSON.parse(text);
    if (read === null || typeof read !== "object" || Array.isArray(read))
      return "This is JSON, but not an object in braces.";
    return null;
  } catch (error) {
    return `Not JSON yet: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** @type {View} */
export const servers = { id: "servers", title: "Servers", glyph: "servers", draw };
