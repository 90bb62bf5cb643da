/**
 * The relay in the settings: where agents on other machines reach this browser, and what they may do. Their requests are
 * listed with the approvals.
 */

import { h } from "../dom.js";
import { button, iconButton, levelSelect, section, toggle } from "../components.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").RelayFacts} RelayFacts */

/** @param {App} app */
export function relaySection(app) {
  const { relay } = app;
  if (!relay) return null;
  return section(
    "Relay",
    null,
    h("div", { class: "card settings" }, address(app, relay), everywhere(app, relay), sites(app, relay), instead(app, relay)),
  );
}

/**
 * @param {App} app
 * @param {RelayFacts} relay
 */
function address(app, relay) {
  // Read when needed: Enter may be pressed before the last letter is drawn.
  const draft = () => app.ui["relay"] ?? { url: relay.url, token: "" };
  const store = (/** @type {string} */ field) => (/** @type {Event} */ event) => {
    app.ui["relay"] = { ...draft(), [field]: /** @type {HTMLInputElement} */ (event.target).value };
    app.changed();
  };
  const changed = () => draft().url !== relay.url || draft().token !== "";
  const save = async () => {
    const { url, token } = draft();
    const given = token === "" && url !== "" ? { url } : { url, token };
    if (await app.changeRelay(given, "Relay: saved.")) delete app.ui["relay"];
    app.changed();
  };
  const input = (
    /** @type {string} */ field,
    /** @type {string} */ label,
    /** @type {string} */ type,
    /** @type {string} */ hint,
  ) =>
    h(
      "div",
      { class: "field", key: field },
      h("label", { for: `relay-${field}` }, label),
      h("input", {
        type,
        id: `relay-${field}`,
        placeholder: hint,
        autocomplete: "off",
        spellcheck: "false",
        value: draft()[field],
        oninput: store(field),
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key === "Enter" && changed()) void save();
        },
      }),
    );
  return h(
    "div",
    { class: "setting stacked", key: "address", "data-setting": "relay" },
    h(
      "div",
      null,
      h("h3", null, "Connect this browser to a relay"),
      h("p", { class: "quiet", role: "status" }, statusText(relay)),
    ),
    input("url", "Relay URL", "url", "wss://relay.example.com"),
    input("token", "Token", "password", relay.hasToken ? "a token is set" : "from the operator of the relay"),
    changed() ? button("Save", { small: true, kind: "primary", onclick: () => void save() }) : null,
  );
}

/**
 * @param {App} app
 * @param {RelayFacts} relay
 */
function everywhere(app, relay) {
  return h(
    "div",
    { class: "setting", key: "level" },
    h(
      "div",
      null,
      h("h3", null, "Agents over the relay"),
      h(
        "p",
        { class: "quiet" },
        "To read is to see tabs, addresses and pictures, with secret fields covered. You approve everything else once per site and connection.",
      ),
    ),
    levelSelect("Agents over the relay", relay.level, (level) => app.changeRelay({ level })),
  );
}

/**
 * @param {App} app
 * @param {RelayFacts} relay
 */
function sites(app, relay) {
  const rows = relay.sites;
  const draft = () => app.ui["relay site"] ?? "";
  const others = (/** @type {string} */ site) => rows.filter((row) => row.site !== site);
  const add = async () => {
    const site = draft().trim();
    if (await app.changeRelay({ sites: [...rows, { site, level: "block" }] }, `Relay: agents are kept off ${site}.`)) delete app.ui["relay site"];
    app.changed();
  };
  return h(
    "div",
    { class: "setting stacked", key: "sites", "data-setting": "relay-sites" },
    h(
      "div",
      null,
      h("h3", null, "Sites with a level of their own"),
      h("p", { class: "quiet" }, "Agents over the relay get nothing of a site that they are kept off: no address, no picture, no history."),
      relay.migrated
        ? h("p", { role: "status" }, "These were rewritten as site rules: *.bank.example is the site with its subdomains. ", seen(app))
        : null,
    ),
    rows.map(({ site, level }) =>
      h(
        "div",
        { class: "field site-level", key: site, "data-site": site },
        h("span", { class: "path" }, site),
        levelSelect(`Level of ${site}`, level, (level) =>
          app.changeRelay({ sites: rows.map((row) => (row.site === site ? { site, level } : row)) }),
        ),
        iconButton(`Remove ${site}`, "close", () => void app.changeRelay({ sites: others(site) })),
      ),
    ),
    h(
      "div",
      { class: "field", key: "add" },
      h("label", { for: "relay-site" }, "Keep agents over the relay off"),
      h("input", {
        type: "text",
        id: "relay-site",
        placeholder: "*.bank.example",
        autocomplete: "off",
        spellcheck: "false",
        value: draft(),
        oninput: (/** @type {Event} */ event) => {
          app.ui["relay site"] = /** @type {HTMLInputElement} */ (event.target).value;
          app.changed();
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key === "Enter" && draft().trim()) void add();
        },
      }),
    ),
    draft().trim() ? button("Add", { small: true, kind: "primary", onclick: () => void add() }) : null,
  );
}

/** @param {App} app */
function seen(app) {
  return button("OK", { small: true, onclick: () => void app.changeRelay({}) });
}

/**
 * @param {App} app
 * @param {RelayFacts} relay
 */
function instead(app, relay) {
  return h(
    "div",
    { class: "setting", key: "instead" },
    h(
      "div",
      null,
      h("h3", null, "Relay only"),
      h("p", { class: "quiet", id: "about-relay-instead" }, "Do not connect to the hub on this computer."),
    ),
    toggle("Relay only", relay.instead, (on) => void app.changeRelay({ instead: on }), {
      hidden: true,
      describedby: "about-relay-instead",
    }),
  );
}

/** @param {RelayFacts} relay */
function statusText({ phase, reason, user, agents, url }) {
  if (phase === "connected") return `Connected as ${user}. ${agents} agent${agents === 1 ? "" : "s"} connected.`;
  if (reason) return reason;
  return url ? "Connecting…" : "Not configured. With a URL and a token, your agents on other machines can use this browser.";
}
