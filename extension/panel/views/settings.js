/**
 * The few settings that matter to a person, each with what it means. The rest is `tabhub config`'s.
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
 * @property {string} text what it means
 * @property {[string, string][]} [options]
 * @property {"seconds"} [unit]
 */

/** @type {readonly { title: string, settings: readonly Setting[] }[]} */
const GROUPS = [
  {
    title: "Asking you",
    settings: [
      {
        key: "approvalTimeout",
        label: "Time to decide",
        text: "An agent that gets no answer in this time is told no.",
        unit: "seconds",
      },
      {
        key: "approvals.elicitation",
        label: "Let the agent's own program ask",
        text: "Where an agent's program can show you a question itself, it may ask you there too.",
      },
      {
        key: "dataflow",
        label: "Guard against pages that give orders",
        text: "When an agent has read one site and then acts on another, a page may have told it to.",
        options: [
          ["ask", "Ask me"],
          ["warn", "Note it in the log"],
          ["off", "Do nothing"],
        ],
      },
      {
        key: "showDisabled",
        label: "Show agents what is off",
        text: "Tools that are off are listed as disabled, instead of being hidden.",
      },
    ],
  },
  {
    title: "Tabs",
    settings: [
      {
        key: "readLeasedTabs",
        label: "Agents may read each other's tabs",
        text: "Only one agent acts in a tab. The others may look.",
      },
      {
        key: "keepTabs",
        label: "Keep tabs when an agent ends",
        text: "Otherwise the tabs it opened itself are closed.",
      },
      {
        key: "fileUrls",
        label: "Agents may open files of this computer",
        text: "Addresses that begin with file: let an agent read any file you can.",
      },
    ],
  },
  {
    title: "Agents",
    settings: [
      {
        key: "requireTokens",
        label: "Every agent needs a token of its own",
        text: "“tabhub token create NAME” makes one. Agents with the shared secret are refused.",
      },
      {
        key: "auditArguments",
        label: "Keep what was sent in the log",
        text: "The log then holds the parameters of every call, which may be private.",
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
            h("h3", null, "Never ask"),
            h(
              "p",
              { class: "quiet", id: "skip-about" },
              "Every tool that should ask runs at once. Only for machines where nothing can be lost.",
            ),
          ),
          toggle("Never ask", skip, (on) => neverAsk(app, on), {
            hidden: true,
            describedby: "skip-about",
          }),
        ),
      ),
    ),
    section(
      "Everything else",
      null,
      h("p", { class: "quiet" }, "All settings, with their meaning:"),
      command(app, "tabhub config set --help"),
    ),
    h("p", { class: "quiet foot" }, `Tabhub ${app.state?.version ?? ""}`),
  ];
}

/**
 * @param {App} app
 * @param {boolean} skip
 */
function neverAsk(app, skip) {
  if (app.state) app.state.skipPermissions = skip;
  app.changed();
  void app.act("config.setSkipPermissions", { skip });
}

/**
 * @param {Record<string, any>} values
 * @param {string} key
 */
function valueOf(values, key) {
  return key in values ? values[key] : key.split(".").reduce((/** @type {any} */ inner, step) => inner?.[step], values);
}

/**
 * Show a value before the hub has said yes to it.
 * @param {Record<string, any>} values
 * @param {string} key
 * @param {unknown} value
 */
function keep(values, key, value) {
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
    keep(app.state?.settings ?? {}, key, next);
    app.changed();
    void app.act("config.set", { key, value: next }, `${label}: saved.`);
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
          options.map(([each, words]) => h("option", { value: each }, words)),
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
