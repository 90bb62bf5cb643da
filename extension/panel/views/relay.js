/**
 * The relay in the settings: where agents on other machines reach this browser, and what they may do. Their requests are
 * listed with the approvals.
 */

import { h } from "../dom.js";
import { button, section, toggle } from "../components.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").RelayFacts} RelayFacts */

const OPTIONS = [
  ["off", "Read only"],
  ["ask", "Ask me first"],
  ["auto", "Act without approval"],
];

/** @param {App} app */
export function relaySection(app) {
  const { relay } = app;
  if (!relay) return null;
  return section(
    "Relay",
    null,
    h("div", { class: "card settings" }, address(app, relay), acting(app, relay), instead(app, relay)),
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
function acting(app, relay) {
  return h(
    "div",
    { class: "setting", key: "acting" },
    h(
      "div",
      null,
      h("h3", { id: "label-relay-acting" }, "Agents over the relay"),
      h("p", { class: "quiet" }, "They can always read tabs. You approve actions once per site and connection."),
    ),
    h(
      "select",
      {
        "aria-labelledby": "label-relay-acting",
        value: relay.acting,
        onchange: (/** @type {Event} */ event) =>
          void app.changeRelay({ acting: /** @type {any} */ (event.target).value }),
      },
      OPTIONS.map(([value, text]) => h("option", { value }, text)),
    ),
  );
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
