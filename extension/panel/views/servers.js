/**
 * External MCP servers, whose tools agents have besides those of the browser. Adding one is in add_server.js.
 */

import { h } from "../dom.js";
import { counted, toolLabel } from "../format.js";
import { badge, button, dot, empty, expander, iconButton, confirmButton, toggle } from "../components.js";
import { adder } from "./add_server.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").HubState} HubState */
/** @typedef {import("../types.js").ServerFacts} ServerFacts */
/** @typedef {import("../types.js").ToolFacts} ToolFacts */
/** @typedef {import("../types.js").View} View */

/** @param {App} app */
function draw(app) {
  const servers = app.state?.upstream ?? [];
  return [
    h(
      "p",
      { class: "lead" },
      "Agents can also use the tools of other MCP servers through the hub, with the same permissions and log.",
    ),
    servers.length > 0
      ? h(
          "div",
          { class: "cards" },
          servers.map((server) => card(app, server)),
        )
      : empty(
          "servers",
          "No servers yet",
          h("p", null, "Paste a server's configuration below. Its tools are found automatically."),
        ),
    adder(app),
  ];
}

/** @param {ServerFacts} server */
function stateOf({ enabled, state, error, tools }) {
  if (!enabled) return /** @type {const} */ (["quiet", "disabled"]);
  if (state === "login") return /** @type {const} */ (["warn", "login required"]);
  if (error || state === "waiting" || state === "failed") return /** @type {const} */ (["bad", "not connected"]);
  if (state === "connecting" || state === "starting") return /** @type {const} */ (["quiet", "connecting…"]);
  return /** @type {const} */ (["good", counted(tools?.length ?? 0, "tool")]);
}

/**
 * @param {App} app
 * @param {ServerFacts} server
 */
function card(app, server) {
  const { name, url, command, enabled, error, loginUrl, tools = [] } = server;
  const secrets = [...(server.headers ?? []), ...(server.env ?? [])];
  const [tone, status] = stateOf(server);
  const enable = (/** @type {boolean} */ enabled) =>
    void app.act("upstream.set", { name, enabled }, undefined, (state) => Object.assign(find(state, name) ?? {}, { enabled }));
  return h(
    "article",
    { class: "card", key: name, "aria-label": name, "data-server": name },
    h(
      "div",
      { class: "card-head" },
      h("div", { class: "card-title" }, h("h2", null, name), h("p", { class: "quiet" }, dot(tone), status)),
      toggle(`Use ${name}`, enabled, enable, { hidden: true }),
    ),
    h("p", { class: "quiet path" }, url ?? command ?? "", secrets.length > 0 ? ` · sends ${secrets.join(", ")}` : null),
    error ? h("p", { class: "problem" }, error) : null,
    loginUrl && /^https?:/.test(loginUrl)
      ? button("Log in", {
          kind: "primary",
          small: true,
          onclick: () => void chrome.tabs.create({ url: loginUrl }),
          key: "login",
        })
      : null,
    tools.length > 0
      ? expander(app, `server ${name}`, {
          title: "Tools",
          level: 3,
          body: () =>
            h(
              "ul",
              { class: "tool-list" },
              tools.map((tool) => toolRow(app, name, tool)),
            ),
        })
      : null,
    h(
      "div",
      { class: "card-foot" },
      tools.length > 0 ? h("a", { href: "#tools" }, "Permissions") : null,
      h("span", { class: "room" }),
      iconButton(
        `Refresh the tools of ${name}`,
        "refresh",
        () => void app.act("upstream.refresh", { name }, `The tools of ${name} were refreshed.`),
      ),
      confirmButton(
        app,
        `remove ${name}`,
        "Remove",
        "Remove now?",
        () => void app.act("upstream.remove", { name }, `${name} was removed.`),
        name,
      ),
    ),
  );
}

/**
 * A server in a state: each state that is read has its own objects.
 * @param {HubState | null} state
 * @param {string} name
 */
function find(state, name) {
  return state?.upstream?.find((server) => server.name === name);
}

/**
 * @param {App} app
 * @param {string} server
 * @param {ToolFacts} tool
 */
function toolRow(app, server, tool) {
  const title = tool.title || toolLabel(tool.tool ?? tool.name);
  const enable = (/** @type {boolean} */ enabled) => {
    const isDisabled = (/** @type {ToolFacts} */ each) => (each.name === tool.name ? !enabled : each.enabled === false);
    const disabled = (find(app.state, server)?.tools ?? []).filter(isDisabled);
    const disabledTools = disabled.map((each) => each.tool ?? each.name);
    void app.act("upstream.set", { name: server, disabledTools }, undefined, (state) => {
      const shown = find(state, server)?.tools.find((each) => each.name === tool.name);
      if (shown) shown.enabled = enabled;
    });
  };
  return h(
    "li",
    { key: tool.name, class: "tool" },
    h(
      "div",
      { class: "tool-text" },
      h("span", { class: "tool-title" }, title, tool.changed ? badge("changed", "warn") : null),
      h("span", { class: "tool-description" }, tool.description ?? ""),
    ),
    toggle(`Enable ${title}`, tool.enabled !== false, enable, { hidden: true }),
  );
}

/** @type {View} */
export const servers = { id: "servers", title: "Servers", glyph: "servers", draw };
