/**
 * Searching the registry for plugins, and installing one.
 */

import { h } from "../dom.js";
import { badge, button, disclosure, section } from "../components.js";
import { errorText } from "../worker_client.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {{ package: string, name: string, version: string, description: string, author?: string, installed: boolean }} Found */

/** @param {App} app */
export function finder(app) {
  const found = /** @type {Found[] | undefined} */ (app.ui["found"]);
  const search = (/** @type {Event} */ event) => {
    event.preventDefault();
    void find(app);
  };
  return section(
    "Find plugins",
    null,
    h(
      "form",
      { class: "finder", onsubmit: search, role: "search" },
      h("input", {
        type: "search",
        "aria-label": "Search plugins",
        placeholder: "Name of a web app",
        value: app.ui["pluginSearch"] ?? "",
        oninput: (/** @type {Event} */ event) =>
          (app.ui["pluginSearch"] = /** @type {HTMLInputElement} */ (event.target).value),
      }),
      h(
        "button",
        { type: "submit", class: "button primary", disabled: app.ui["finding"] === true },
        app.ui["finding"] ? "Searching…" : "Search",
      ),
    ),
    found === undefined
      ? h(
          "p",
          { class: "quiet hint" },
          "Plugins come from the npm registry. Installing runs none of their scripts; their tools start as Ask.",
        )
      : found.length === 0
        ? h("p", { class: "quiet none" }, "No matching plugins.")
        : h(
            "ul",
            { class: "found" },
            found.map((each) => result(app, each)),
          ),
  );
}

/** @param {App} app */
async function find(app) {
  app.ui["finding"] = true;
  app.changed();
  try {
    app.ui["found"] =
      (await app.ask("plugin.search", { query: String(app.ui["pluginSearch"] ?? "").trim() })).results ?? [];
  } catch (error) {
    app.say(errorText(error), "bad");
  }
  app.ui["finding"] = false;
  app.changed();
}

/**
 * @param {App} app
 * @param {Found} each
 */
function result(app, each) {
  const { name, package: specifier, version, description, author, installed } = each;
  const busy = app.ui["installing"] === specifier;
  const install = async () => {
    app.ui["installing"] = specifier;
    app.changed();
    const done = await app.act("plugin.install", { name: specifier }, `${name} is installed.`);
    app.ui["installing"] = null;
    if (done) each.installed = true;
    app.changed();
  };
  return h(
    "li",
    { key: specifier },
    h(
      "div",
      { class: "found-text" },
      h("span", { class: "tool-title" }, name, " ", h("span", { class: "version" }, version)),
      h("span", { class: "quiet" }, specifier, author ? ` · ${author}` : ""),
      description ? disclosure(`about ${specifier}`, "About", h("p", null, description)) : null,
    ),
    installed
      ? badge("installed", "good")
      : button(busy ? "Installing…" : "Install", {
          small: true,
          disabled: busy,
          name: `Install ${name}`,
          onclick: () => void install(),
        }),
  );
}
