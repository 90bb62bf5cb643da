/**
 * External MCP servers: their tools are offered to agents beside those of the browser. How one is added is adder.js's.
 */

import { h } from "../dom.js";
import { counted, words } from "../format.js";
import { badge, button, dot, empty, expander, iconButton, sureButton, toggle } from "../components.js";
import { adder } from "./add_server.js";

/** @typedef {import("../types.js").App} App */
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
  if (state === "login") return /** @type {const} */ (["warn", "wants you to sign in"]);
  if (error || state === "waiting" || state === "failed") return /** @type {const} */ (["bad", "not reached"]);
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
    h("p", { class: "quiet path" }, url ?? command ?? "", secrets.length > 0 ? ` · sends ${secrets.join(", ")}` : null),
    error ? h("p", { class: "problem" }, error) : null,
    loginUrl && /^https?:/.test(loginUrl)
      ? button("Sign in", {
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
        name,
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
  const title = tool.title || words(tool.tool ?? tool.name);
  const change = (/** @type {boolean} */ on) => {
    tool.enabled = on;
    app.changed();
    const off = server.tools.filter((each) => each.enabled === false).map((each) => each.tool ?? each.name);
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

/** @type {View} */
export const servers = { id: "servers", title: "Servers", glyph: "servers", draw };
