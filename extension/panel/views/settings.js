/**
 * The most important settings, each with an explanation. The others are changed with `tabhub config`.
 */

import { h } from "../dom.js";
import { button, command, section, toggle } from "../components.js";
import { relaySection } from "./relay.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").View} View */
/**
 * @typedef {object} Setting
 * @property {string} key
 * @property {string} label
 * @property {string} text its explanation
 * @property {[string, string][]} [options]
 * @property {"seconds"} [unit]
 */

/** @type {readonly { title: string, settings: readonly Setting[] }[]} */
const GROUPS = [
  {
    title: "Approvals",
    settings: [
      {
        key: "approvalTimeout",
        label: "Time to decide",
        text: "A call is denied if you do not decide within this time.",
        unit: "seconds",
      },
      {
        key: "approvals.elicitation",
        label: "Ask in the agent's app too",
        text: "MCP clients that support elicitation also show you the approval.",
      },
      {
        key: "dataflow",
        label: "Protect against prompt injection",
        text: "When an agent has read one site and then acts on another, the page may have told it to.",
        options: [
          ["ask", "Ask me"],
          ["warn", "Log a warning"],
          ["off", "Off"],
        ],
      },
      {
        key: "showDisabled",
        label: "List disabled tools",
        text: "Agents see tools that are off, marked as disabled.",
      },
    ],
  },
  {
    title: "Tabs",
    settings: [
      {
        key: "readLeasedTabs",
        label: "Agents may read each other's tabs",
        text: "Only one agent can act in a tab. With this, others can read it.",
      },
      {
        key: "keepTabs",
        label: "Keep tabs when a session ends",
        text: "Otherwise the tabs that the agent opened are closed.",
      },
      {
        key: "fileUrls",
        label: "Agents may open local files",
        text: "With file: URLs an agent can read any file that you can read.",
      },
    ],
  },
  {
    title: "Agents",
    settings: [
      {
        key: "requireTokens",
        label: "Require a token for every agent",
        text: "“tabhub setup CLIENT” creates one. Off admits agents of version 0.1.0, which share one secret.",
      },
      {
        key: "auditArguments",
        label: "Log call parameters",
        text: "The audit log then contains the parameters of every call, which may be private.",
      },
    ],
  },
];

/** @param {App} app */
function draw(app) {
  if (!app.state) return relaySection(app);
  const values = app.state?.settings ?? {};
  const skip = app.state?.skipPermissions === true;
  return [
    GROUPS.map(({ title, settings: all }) => {
      const known = all.filter(({ key }) => valueOf(values, key) !== undefined);
      return known.length === 0
        ? null
        : section(
            title,
            null,
            h(
              "div",
              { class: "card settings" },
              known.map((setting) => row(app, setting, valueOf(values, setting.key))),
            ),
          );
    }),
    relaySection(app),
    section(
      "Danger",
      null,
      h(
        "div",
        { class: "card settings danger" },
        h(
          "div",
          { class: "setting" },
          h(
            "div",
            null,
            h("h3", null, "Skip approvals"),
            h(
              "p",
              { class: "quiet", id: "skip-about" },
              "Every tool that is set to Ask runs without approval. Only for machines without anything to lose.",
            ),
          ),
          toggle("Skip approvals", skip, (on) => setSkip(app, on), {
            hidden: true,
            describedby: "skip-about",
          }),
        ),
      ),
    ),
    section(
      "More settings",
      null,
      h("p", { class: "quiet" }, "All settings with explanations:"),
      command(app, "tabhub config set --help"),
    ),
    h("p", { class: "quiet foot" }, `Tabhub ${app.state?.version ?? ""}`),
  ];
}

/**
 * @param {App} app
 * @param {boolean} skip
 */
function setSkip(app, skip) {
  void app.act("config.setSkipPermissions", { skip }, undefined, (state) => {
    state.skipPermissions = skip;
  });
}

/**
 * @param {Record<string, any>} values
 * @param {string} key
 */
function valueOf(values, key) {
  return key in values ? values[key] : key.split(".").reduce((/** @type {any} */ inner, step) => inner?.[step], values);
}

/**
 * @param {Record<string, any>} values
 * @param {string} key
 * @param {unknown} value
 */
function setValue(values, key, value) {
  const steps = key in values ? [key] : key.split(".");
  const last = steps.pop() ?? key;
  const place = steps.reduce((/** @type {any} */ inner, step) => inner?.[step], values);
  if (place) place[last] = value;
}

/**
 * @param {App} app
 * @param {Setting} setting
 * @param {unknown} value
 */
function row(app, { key, label, text, options, unit }, value) {
  const about = `about-${key}`;
  const set = (/** @type {unknown} */ next) => {
    void app.act("config.set", { key, value: next }, `${label}: saved.`, (state) => setValue(state.settings, key, next));
  };
  return h(
    "div",
    { class: "setting", key, "data-setting": key },
    h("div", null, h("h3", { id: `label-${key}` }, label), h("p", { class: "quiet", id: about }, text)),
    options
      ? h(
          "select",
          {
            "aria-labelledby": `label-${key}`,
            "aria-describedby": about,
            value: String(value),
            onchange: (/** @type {Event} */ event) => set(/** @type {HTMLSelectElement} */ (event.target).value),
          },
          options.map(([each, label]) => h("option", { value: each }, label)),
        )
      : unit
        ? seconds(app, key, about, Number(value), set)
        : toggle(label, value === true, set, { hidden: true, describedby: about }),
  );
}

/**
 * @param {App} app
 * @param {string} key
 * @param {string} about
 * @param {number} value
 * @param {(value: number) => void} set
 */
function seconds(app, key, about, value, set) {
  const draft = app.ui[`draft ${key}`];
  const changed = draft !== undefined && Number(draft) !== value && Number(draft) >= 5;
  const save = () => {
    set(Number(draft));
    delete app.ui[`draft ${key}`];
  };
  return h(
    "span",
    { class: "seconds" },
    h("input", {
      type: "number",
      min: "5",
      max: "3600",
      "aria-labelledby": `label-${key}`,
      "aria-describedby": about,
      value: draft ?? value,
      oninput: (/** @type {Event} */ event) => {
        app.ui[`draft ${key}`] = /** @type {HTMLInputElement} */ (event.target).value;
        app.changed();
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Enter" && changed) save();
      },
    }),
    h("span", { class: "quiet" }, "s"),
    changed ? button("Save", { small: true, kind: "primary", onclick: save }) : null,
  );
}

/** @type {View} */
export const settings = { id: "settings", title: "Settings", glyph: "settings", draw };
