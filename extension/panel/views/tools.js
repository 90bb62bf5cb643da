/**
 * Permissions: every tool by its source, each off, ask or auto. A tool's own level takes precedence over its source's,
 * and that over the default; a switch with an inherited level is drawn as an outline.
 */

import { h } from "../dom.js";
import { counted, toolLabel, toolsByName } from "../format.js";
import { glyph } from "../glyphs.js";
import { badge, empty, expander, permissionSwitch, searchField } from "../components.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").HubState} HubState */
/** @typedef {import("../types.js").Permission} Permission */
/** @typedef {import("../types.js").ToolFacts} ToolFacts */
/** @typedef {import("../types.js").View} View */
/**
 * @typedef {object} SourceFacts
 * @property {string} key its name in the hub's permissions
 * @property {string} title
 * @property {string} glyph
 * @property {{ permission?: Permission | null, effective?: Permission }} own
 * @property {{ name: string, tools: ToolFacts[] }[]} families
 */

/** @param {App} app */
function draw(app) {
  const { state } = app;
  if (!state) return null;
  const query = String(app.ui["toolSearch"] ?? "")
    .trim()
    .toLowerCase();
  const sources = sourcesOf(state)
    .map((source) => filterTools(source, query))
    .filter((source) => !query || source.families.length > 0);
  return [
    h(
      "p",
      { class: "lead" },
      "Choose what agents may do. Off: hidden from agents. Ask: you approve each call. Auto: runs without approval.",
    ),
    searchField(app, "toolSearch", "Search tools"),
    defaultPermission(app, state),
    sources.length === 0
      ? empty(
          "search",
          "No matching tools",
          h("p", null, "Search by name or description, such as “click” or “cookies”."),
        )
      : h(
          "div",
          { class: "sources" },
          sources.map((source) => sourceCard(app, state, source, query !== "")),
        ),
    !query && (state.pages ?? []).length + (state.plugins ?? []).length + (state.upstream ?? []).length === 0
      ? h(
          "p",
          { class: "quiet hint" },
          "Tools of pages are listed while the page is open. Add more with ",
          h("a", { href: "#plugins" }, "plugins"),
          " and ",
          h("a", { href: "#servers" }, "servers"),
          ".",
        )
      : null,
  ];
}

const NATURAL = new Intl.Collator(undefined, { numeric: true });

/**
 * @param {App} app
 * @param {HubState} state
 */
function defaultPermission(app, state) {
  const own = state.permissionDefault ?? null;
  return h(
    "div",
    { class: "default" },
    h(
      "div",
      null,
      h("h2", null, "Default"),
      h(
        "p",
        { class: "quiet" },
        own === null
          ? "Read-only tools run. Others need approval, except in a browser that the hub started."
          : "Applies to every tool without its own setting.",
      ),
    ),
    permissionSwitch({
      id: "default",
      label: "Default",
      own,
      effective: own,
      from: "the kind of tool",
      pick: (value) => setDefault(app, value),
      recommended: () => setDefault(app, null),
    }),
  );
}

/**
 * @param {App} app
 * @param {Permission | null} value
 */
function setDefault(app, value) {
  void app.act("config.set", { key: "permissions.default", value }, undefined, (state) => {
    state.permissionDefault = value;
  });
}

/**
 * @param {HubState} state
 * @returns {SourceFacts[]}
 */
function sourcesOf(state) {
  const one = (/** @type {ToolFacts[]} */ tools) => [{ name: "", tools: tools ?? [] }];
  const named = (/** @type {ToolFacts} */ tool) => tool.title || tool.name;
  // 2 before 10.
  const ordered = (/** @type {ToolFacts[]} */ tools) => (tools ?? []).toSorted((a, b) => NATURAL.compare(named(a), named(b)));
  return [
    {
      key: "browser",
      title: "Browser",
      glyph: "globe",
      own: state.browserTools,
      families: state.browserTools?.families ?? [],
    },
    ...(state.pages ?? []).map((page) => ({
      key: page.origin,
      title: page.origin.replace(/^https?:\/\//, ""),
      glyph: "tab",
      own: page,
      families: one(ordered(page.tools)),
    })),
    ...(state.plugins ?? []).map((plugin) => ({
      key: plugin.name,
      title: plugin.displayName,
      glyph: "plugins",
      own: plugin,
      families: one(plugin.tools),
    })),
    ...(state.upstream ?? []).map((server) => ({
      key: `mcp__${server.name}`, // a plugin may have the same name
      title: server.name,
      glyph: "servers",
      own: server,
      families: one(server.tools),
    })),
  ];
}

/**
 * The source with only the tools that match a search.
 * @param {SourceFacts} source
 * @param {string} query
 */
function filterTools(source, query) {
  if (!query || source.title.toLowerCase().includes(query)) return source;
  const matches = (/** @type {ToolFacts} */ tool) =>
    [tool.name, tool.title, tool.description].some((text) => text?.toLowerCase().includes(query));
  const families = source.families.map(({ name, tools }) => ({
    name,
    tools: name.toLowerCase().includes(query) ? tools : tools.filter(matches),
  }));
  return { ...source, families: families.filter(({ tools }) => tools.length > 0) };
}

/**
 * @param {App} app
 * @param {HubState} state
 * @param {SourceFacts} source
 * @param {boolean} searching
 */
function sourceCard(app, state, source, searching) {
  const tools = source.families.flatMap((family) => family.tools);
  const changed = tools.filter((tool) => tool.changed).length;
  const own = source.own?.permission ?? null;
  const pick = (/** @type {Permission | null} */ permission) =>
    void app.act("config.setPluginPermission", { plugin: source.key, permission }, undefined, (shown) => {
      setLevel(sourcesOf(shown).find(({ key }) => key === source.key)?.own, permission);
    });
  return expander(app, `${searching ? "found" : "source"} ${source.key}`, {
    title: [
      glyph(source.glyph),
      h("span", { class: "source-title" }, source.title),
      h("span", { class: "quiet" }, counted(tools.length, "tool")),
      changed ? badge(`${changed} changed`, "warn") : null,
    ],
    side: permissionSwitch({
      id: `source ${source.key}`,
      label: `all tools of ${source.title}`,
      own,
      effective: /** @type {any} */ (own ?? state.permissionDefault ?? source.own?.effective ?? ""),
      from: "the default",
      pick,
      ...(own === null ? {} : { reset: () => pick(null) }),
    }),
    open: searching,
    class: "card source",
    body: () => source.families.map((family) => familyPart(app, source, family)),
  });
}

/**
 * @param {{ permission?: Permission | null, effective?: Permission } | undefined} facts of a tool or source
 * @param {Permission | null} permission
 */
function setLevel(facts, permission) {
  if (facts) Object.assign(facts, { permission }, permission ? { effective: permission } : {});
}

/**
 * @param {App} app
 * @param {SourceFacts} source
 * @param {{ name: string, tools: ToolFacts[] }} family
 */
function familyPart(app, source, { name, tools }) {
  return h(
    "div",
    { class: "family", key: `family ${name}` },
    name ? h("h3", null, toolLabel(name)) : null,
    h(
      "ul",
      { class: "tool-list" },
      tools.map((tool) => toolRow(app, source, tool)),
    ),
  );
}

/**
 * @param {App} app
 * @param {SourceFacts} source
 * @param {ToolFacts} tool
 */
function toolRow(app, source, tool) {
  const title = tool.title || toolLabel(tool.tool ?? tool.name, source.key);
  const own = tool.permission ?? null;
  const effective =
    tool.effective ?? own ?? source.own.permission ?? app.state?.permissionDefault ?? (tool.readOnly ? "auto" : "ask");
  const pick = (/** @type {Permission | null} */ permission) =>
    void app.act("config.setToolPermission", { plugin: source.key, tool: tool.name, permission }, undefined, (shown) =>
      setLevel(toolsByName(shown).get(tool.name), permission),
    );
  return h(
    "li",
    { key: tool.name, class: `tool ${effective}`, "data-tool": tool.name },
    h(
      "div",
      { class: "tool-text" },
      h(
        "span",
        { class: "tool-title" },
        title,
        " ",
        tool.readOnly ? badge("reads") : null,
        tool.changed ? badge("changed, needs approval", "warn") : null,
      ),
      h("span", { class: "tool-description", title: tool.name }, tool.description ?? ""),
    ),
    permissionSwitch({
      id: `tool ${source.key} ${tool.name}`,
      label: title,
      own,
      effective,
      from: tool.from ?? (source.own.permission ? source.title : "the default"),
      pick,
      ...(own === null ? {} : { reset: () => pick(null) }),
    }),
  );
}

/** @type {View} */
export const tools = { id: "tools", title: "Tools", glyph: "tools", draw };
