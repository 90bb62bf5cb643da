/**
 * The plugins: which are here and whether their site is open, their settings, those that failed and why, and new ones.
 */

import { h } from "../dom.js";
import { counted } from "../format.js";
import { glyph } from "../glyphs.js";
import { badge, button, dot, empty, expander, iconButton, section, confirmButton } from "../components.js";
import { settingsForm } from "./fields.js";
import { finder } from "./finder.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").PluginFacts} PluginFacts */
/** @typedef {import("../types.js").View} View */

/** @param {App} app */
function draw(app) {
  const plugins = app.state?.plugins ?? [];
  const failed = app.state?.failedPlugins ?? [];
  const check = button("Check for updates", {
    small: true,
    glyph: "refresh",
    disabled: app.ui["checking"] === true,
    onclick: () => void checkUpdates(app),
  });
  return [
    h(
      "p",
      { class: "lead" },
      "A plugin gives agents tools for one web app, so that they need not click through it.",
    ),
    failed.length > 0
      ? section(
          "Failed to load",
          null,
          h(
            "div",
            { class: "cards" },
            failed.map((each) => failure(app, each)),
          ),
        )
      : null,
    section(
      "Installed",
      plugins.length > 0 ? check : null,
      plugins.length > 0
        ? h(
            "div",
            { class: "cards" },
            plugins.map((plugin) => card(app, plugin)),
          )
        : empty(
            "plugins",
            "No plugins yet",
            h("p", null, "Search below for a web app that you use, or create one with “tabhub plugin create”."),
          ),
    ),
    finder(app),
  ];
}

/** @param {PluginFacts} plugin */
function tabStatus({ tabState, tabs }) {
  const ready = (tabs ?? []).filter((tab) => tab.ready !== false).length;
  if (tabState === "ready")
    return /** @type {const} */ (["good", ready > 1 ? `ready in ${counted(ready, "tab")}` : "ready"]);
  if (tabState === "unavailable") return /** @type {const} */ (["warn", "open, but not ready: are you logged in?"]);
  return /** @type {const} */ (["quiet", "no open tab"]);
}

/**
 * @param {App} app
 * @param {PluginFacts} plugin
 */
function card(app, plugin) {
  const { name, displayName, version, description, problems = [], homepage, path, configSchema = {} } = plugin;
  const [tone, status] = tabStatus(plugin);
  const newer = /** @type {Record<string, string>} */ (app.ui["updates"] ?? {})[name];
  const fields = Object.keys(configSchema).length;
  return h(
    "article",
    { class: "card plugin", key: name, "aria-label": displayName, "data-plugin": name },
    h(
      "div",
      { class: "card-head" },
      icon(plugin),
      h(
        "div",
        { class: "card-title" },
        h("h3", null, displayName, " ", h("span", { class: "version" }, version)),
        h("p", { class: "quiet" }, dot(tone), status),
      ),
      newer
        ? button(`Update to ${newer}`, { kind: "primary", small: true, onclick: () => void update(app, plugin) })
        : null,
    ),
    description ? h("p", { class: "card-text" }, description) : null,
    problems.map((problem) => h("p", { class: "problem", key: problem }, glyph("alert", 14), problem)),
    fields > 0
      ? expander(app, `settings ${name}`, {
          title: "Settings",
          level: 4,
          side: problems.length > 0 ? badge("needs attention", "warn") : null,
          open: problems.length > 0,
          body: () => settingsForm(app, plugin),
        })
      : null,
    h(
      "div",
      { class: "card-foot" },
      badge(counted(plugin.tools.length, "tool")),
      plugin.source
        ? badge(plugin.source === "npm" ? "from npm" : plugin.source === "python" ? "from Python" : "from a folder")
        : null,
      h("span", { class: "room" }),
      homepage && /^https?:/.test(homepage)
        ? iconButton(`Open ${displayName}`, "expand", () => void chrome.tabs.create({ url: homepage }))
        : null,
      path?.match(/^([/\\]|[A-Za-z]:)/)
        ? iconButton("Open folder", "folder", () => void app.act("folder.open", { path }))
        : null,
      plugin.source === "npm"
        ? confirmButton(
            app,
            `remove ${name}`,
            "Remove",
            "Remove now?",
            () => void app.act("plugin.remove", { name }, `${displayName} was removed.`),
            displayName,
          )
        : null,
    ),
  );
}

/** @param {PluginFacts} plugin */
function icon({ iconSvg, displayName }) {
  if (!iconSvg)
    return h("span", { class: "avatar square", "aria-hidden": "true" }, (displayName[0] ?? "?").toUpperCase());
  // As an image, in which no scripts run and nothing is loaded.
  return h("img", {
    class: "plugin-icon",
    alt: "",
    width: 32,
    height: 32,
    src: `data:image/svg+xml,${encodeURIComponent(iconSvg)}`,
  });
}

/**
 * @param {App} app
 * @param {{ path: string, error: string, package?: string }} failed
 */
function failure(app, { path, error, package: specifier }) {
  return h(
    "article",
    { class: "card failed", key: path },
    h(
      "div",
      { class: "card-head" },
      glyph("alert", 20),
      h(
        "div",
        { class: "card-title" },
        h("h3", null, path.split(/[/\\]/).at(-1) ?? path),
        h("p", { class: "quiet path" }, path),
      ),
    ),
    h("p", { class: "card-text" }, error),
    h(
      "div",
      { class: "card-foot" },
      h("span", { class: "room" }),
      iconButton("Open folder", "folder", () => void app.act("folder.open", { path })),
      specifier
        ? confirmButton(
            app,
            `remove ${path}`,
            "Remove",
            "Remove now?",
            () => void app.act("plugin.removeBySpecifier", { specifier }, "Removed."),
            specifier,
          )
        : null,
    ),
  );
}

/** @param {App} app */
async function checkUpdates(app) {
  app.ui["checking"] = true;
  app.changed();
  const answer = await app.act("plugin.checkUpdates");
  app.ui["checking"] = false;
  if (!answer) return;
  const updates = /** @type {{ name: string, newest: string }[]} */ (answer.updates ?? []);
  app.ui["updates"] = Object.fromEntries(updates.map(({ name, newest }) => [name, newest]));
  const problems = /** @type {string[]} */ (answer.problems ?? []);
  if (problems.length > 0) app.say(problems.join(" "), "bad");
  else app.say(updates.length > 0 ? `${counted(updates.length, "update")} found.` : "All plugins are up to date.");
}

/**
 * @param {App} app
 * @param {PluginFacts} plugin
 */
async function update(app, plugin) {
  const answer = await app.act("plugin.updateFromRegistry", { name: plugin.name });
  if (!answer) return;
  if (app.ui["updates"]) delete app.ui["updates"][plugin.name];
  app.say(`${plugin.displayName} is now ${answer.version}.`);
}

/** @type {View} */
export const plugins = { id: "plugins", title: "Plugins", glyph: "plugins", draw };
