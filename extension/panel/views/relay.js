/**
 * The relay in the settings: where agents on other machines find this browser, and what they may do. What they ask is
 * among the approvals.
 */

import { h } from "../dom.js";
import { button, section, toggle } from "../components.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").RelayFacts} RelayFacts */

const OPTIONS = [
  ["off", "Only look"],
  ["ask", "Ask me first"],
  ["auto", "Act without asking"],
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
  // Read when it is needed: a key may come before what was typed last is drawn.
  const draft = () => app.ui["relay"] ?? { url: relay.url, token: "" };
  const keep = (/** @type {string} */ field) => (/** @type {Event} */ event) => {
    app.ui["relay"] = { ...draft(), [field]: /** @type {HTMLInputElement} */ (event.target).value };
    app.changed();
  };
  const changed = () => draft().url !== relay.url || draft().token !== "";
  const save = async () => {
    const { url, token } = draft();
    const given = token === "" && url !== "" ? { url } : { url, token };
    if (await tell(app, "relay.set", given, "Relay: saved.")) delete app.ui["relay"];
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
        oninput: keep(field),
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
      h("h3", null, "Reach this browser over a relay"),
      h("p", { class: "quiet", role: "status" }, words(relay)),
    ),
    input("url", "Address of the relay", "url", "wss://relay.example.com"),
    input("token", "Token", "password", relay.hasToken ? "a token is set" : "as whoever runs the relay gave it to you"),
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
      h("p", { class: "quiet" }, "They can always look at tabs. You are asked once for each site and connection."),
    ),
    h(
      "select",
      {
        "aria-labelledby": "label-relay-acting",
        value: relay.acting,
        onchange: (/** @type {Event} */ event) =>
          void tell(app, "relay.set", { acting: /** @type {HTMLSelectElement} */ (event.target).value }),
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
      h("h3", null, "Only over the relay"),
      h("p", { class: "quiet", id: "about-relay-instead" }, "The hub on this computer is then left alone."),
    ),
    toggle("Only over the relay", relay.instead, (on) => void tell(app, "relay.set", { instead: on }), {
      hidden: true,
      describedby: "about-relay-instead",
    }),
  );
}

/** @param {RelayFacts} relay */
function words({ phase, reason, user, agents, url }) {
  if (phase === "connected") return `Connected as ${user}. ${agents} agent${agents === 1 ? "" : "s"} connected.`;
  if (reason) return reason;
  return url ? "Connecting…" : "Not set. With an address and a token, your agents on other machines can use this browser.";
}

/**
 * Ask the worker; a refusal is shown. Gives whether it went well.
 * @param {App} app
 * @param {string} method
 * @param {Record<string, unknown>} params
 * @param {string} [said]
 */
async function tell(app, method, params, said) {
  try {
    await app.ask(method, params);
    if (said) app.say(said);
    return true;
  } catch (error) {
    app.say(error instanceof Error ? error.message : String(error), "bad");
    return false;
  }
}
