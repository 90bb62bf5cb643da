/**
 * The components that views are made of: buttons, switches, badges, sections, empty states. They hold no state.
 */

import { h } from "./dom.js";
import { glyph } from "./glyphs.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./types.js").App} App */
/** @typedef {import("./types.js").Permission} Permission */
/** @typedef {import("./types.js").SiteLevel} SiteLevel */
/** @typedef {"good" | "warn" | "bad" | "quiet" | "accent"} Tone */

/** @type {readonly { value: Permission, label: string, means: string }[]} */
const LEVELS = [
  { value: "off", label: "Off", means: "hidden from agents" },
  { value: "ask", label: "Ask", means: "you approve each call" },
  { value: "auto", label: "Auto", means: "runs without approval" },
];
/** @type {readonly { level: SiteLevel, label: string }[]} */
const SITE_LEVELS = [
  { level: "block", label: "Keep off" },
  { level: "read", label: "Only read" },
  { level: "ask", label: "Ask me" },
  { level: "act", label: "Act freely" },
];

/**
 * @param {string} label
 * @param {{ onclick: (event: MouseEvent) => unknown, kind?: "primary" | "danger" | "plain" | "link", glyph?: string, disabled?: boolean, name?: string | undefined, key?: string, small?: boolean, pressed?: boolean }} options
 */
export function button(label, { onclick, kind = "plain", glyph: picture, disabled, name, key, small, pressed }) {
  return h(
    "button",
    {
      type: "button",
      class: `button ${kind}${small ? " small" : ""}`,
      "aria-label": name,
      "aria-pressed": pressed === undefined ? undefined : String(pressed),
      onclick,
      disabled: disabled ?? false,
      key,
    },
    picture ? glyph(picture, small ? 14 : 16) : null,
    label ? h("span", null, label) : null,
  );
}

/**
 * A button with only an icon; its name is the tooltip and the accessible name.
 * @param {string} name
 * @param {string} picture
 * @param {(event: MouseEvent) => unknown} onclick
 * @param {{ disabled?: boolean, key?: string }} [more]
 */
export function iconButton(name, picture, onclick, { disabled, key } = {}) {
  return h(
    "button",
    {
      type: "button",
      class: "button icon",
      title: name,
      "aria-label": name,
      onclick,
      disabled: disabled ?? false,
      key,
    },
    glyph(picture),
  );
}

/**
 * A button that needs a second click to confirm, for actions that cannot be undone.
 * @param {App} app
 * @param {string} key
 * @param {string} label
 * @param {string} confirm the label while it waits for the second click
 * @param {() => unknown} onclick
 * @param {string} [of] what it acts on, where several such buttons are shown
 */
export function confirmButton(app, key, label, confirm, onclick, of) {
  const armed = app.ui["armed"] === key;
  const shown = armed ? confirm : label;
  return button(shown, {
    name: of && `${shown} ${of}`,
    kind: armed ? "danger" : "plain",
    small: true,
    key: `confirm ${key}`,
    onclick: () => {
      app.ui["armed"] = armed ? null : key;
      if (armed) onclick();
      app.changed();
    },
  });
}

/**
 * A small label.
 * @param {string} text
 * @param {Tone} [tone]
 */
export function badge(text, tone = "quiet") {
  return h("span", { class: `badge ${tone}` }, text);
}

/** @param {Tone | "live"} tone */
export function dot(tone) {
  return h("span", { class: `dot ${tone}`, "aria-hidden": "true" });
}

/**
 * An empty state: what would be here, and how to get it.
 * @param {string} picture
 * @param {string} title
 * @param {...Child} text
 */
export function empty(picture, title, ...text) {
  return h("div", { class: "empty" }, glyph(picture, 28), h("h2", null, title), h("div", { class: "text" }, ...text));
}

/**
 * A command line with a copy button.
 * @param {App} app
 * @param {string} text
 */
export function command(app, text) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    app.say("Copied.");
  };
  return h(
    "div",
    { class: "command" },
    h("code", null, text),
    iconButton(`Copy ${text}`, "copy", () => void copy()),
  );
}

/**
 * A titled part of a view.
 * @param {string} title
 * @param {Child} side
 * @param {...Child} children
 */
export function section(title, side, ...children) {
  return h(
    "section",
    { class: "section", key: `section ${title}` },
    h("div", { class: "section-head" }, h("h2", null, title), side),
    ...children,
  );
}

/**
 * Off, ask or auto. An inherited level is drawn as an outline, so that a person sees what they have set. Where no level is
 * inherited, `recommended` is a choice of its own, which is chosen while nothing is set.
 * @param {{ id: string, label: string, own: Permission | null, effective: Permission | null, from?: string, pick: (value: Permission) => unknown, reset?: () => unknown, recommended?: () => unknown }} options
 */
export function permissionSwitch({ id, label, own, effective, from, pick, reset, recommended }) {
  const about = own === null ? `${label}, from ${from ?? "above"}` : label;
  return h(
    "span",
    { class: "permission", key: `permission ${id}` },
    own !== null && reset ? iconButton(`Reset ${label}`, "reset", reset, { key: "reset" }) : null,
    h(
      "span",
      { class: `switch${own === null && !recommended ? " inherited" : ""}`, role: "radiogroup", "aria-label": about, key: "switch" },
      recommended
        ? h(
            "label",
            { class: "level recommended", title: "Recommended: by what the tool does" },
            h("input", { type: "radio", name: id, checked: own === null, onclick: () => own !== null && recommended() }),
            h("span", null, "Recommended"),
          )
        : null,
      LEVELS.map(({ value, label: text, means }) =>
        h(
          "label",
          { class: `level ${value}`, title: `${text}: ${means}` },
          h("input", {
            type: "radio",
            name: id,
            checked: effective === value && !(recommended && own === null),
            onclick: () => (own === value ? undefined : pick(value)),
          }),
          h("span", null, text),
        ),
      ),
    ),
  );
}

/**
 * On or off.
 * @param {string} label
 * @param {boolean} on
 * @param {(on: boolean) => unknown} change
 * @param {{ hidden?: boolean, key?: string, describedby?: string }} [more]
 */
export function toggle(label, on, change, { hidden, key, describedby } = {}) {
  return h(
    "label",
    { class: "toggle", key },
    h("input", {
      type: "checkbox",
      role: "switch",
      checked: on,
      "aria-label": hidden ? label : undefined,
      "aria-describedby": describedby,
      onchange: (/** @type {Event} */ event) => change(/** @type {HTMLInputElement} */ (event.target).checked),
    }),
    h("span", { class: "track", "aria-hidden": "true" }),
    hidden ? null : h("span", null, label),
  );
}

/**
 * A search field.
 * @param {App} app
 * @param {string} key where its text is stored
 * @param {string} label
 */
export function searchField(app, key, label) {
  return h(
    "div",
    { class: "search" },
    glyph("search"),
    h("input", {
      type: "search",
      "aria-label": label,
      placeholder: label,
      autocomplete: "off",
      spellcheck: "false",
      value: app.ui[key] ?? "",
      oninput: (/** @type {Event} */ event) => {
        app.ui[key] = /** @type {HTMLInputElement} */ (event.target).value;
        app.changed();
      },
    }),
  );
}

/**
 * A section that can be opened; it stays open across redraws.
 * @param {string} key
 * @param {Child} summary
 * @param {Child} body
 * @param {{ open?: boolean, class?: string }} [more]
 */
export function disclosure(key, summary, body, more = {}) {
  return h(
    "details",
    { key, class: `disclosure ${more.class ?? ""}`, open: more.open ?? false },
    h("summary", null, glyph("chevron", 12), summary),
    body,
  );
}

/**
 * A heading that can be opened, with something next to it. A closed body is not built.
 * @param {App} app
 * @param {string} key
 * @param {{ title: Child, side?: Child, body: () => Child, open?: boolean, level?: number, class?: string }} options
 */
export function expander(app, key, { title, side, body, open, level = 2, class: look = "" }) {
  const opened = /** @type {Record<string, boolean>} */ (app.ui["opened"] ??= {});
  const shown = opened[key] ?? open ?? false;
  const toggleOpen = () => {
    opened[key] = !shown;
    app.changed();
  };
  return h(
    "div",
    { class: `expander ${look}${shown ? " open" : ""}`, key: `expander ${key}` },
    h(
      "div",
      { class: "expander-head" },
      h(
        `h${level}`,
        null,
        h("button", { type: "button", "aria-expanded": String(shown), onclick: toggleOpen }, glyph("chevron", 12), title),
      ),
      side,
    ),
    shown ? h("div", { class: "expander-body" }, body()) : null,
  );
}

/**
 * What agents may do on a site, to choose from.
 * @param {string} label
 * @param {SiteLevel} level
 * @param {(level: SiteLevel) => unknown} pick
 */
export function levelSelect(label, level, pick) {
  return h(
    "select",
    {
      "aria-label": label,
      value: level,
      onchange: (/** @type {Event} */ event) =>
        pick(/** @type {SiteLevel} */ (/** @type {HTMLSelectElement} */ (event.target).value)),
    },
    SITE_LEVELS.map(({ level: value, label: text }) => h("option", { value }, text)),
  );
}
