/**
 * The settings of a plugin as a form, built from the plugin's schema. A URL setting can have several named URLs, from
 * which agents choose by name.
 */

import { h } from "../dom.js";
import { button, iconButton, toggle } from "../components.js";
import { errorText } from "../worker_client.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").PluginFacts} PluginFacts */
/** @typedef {import("../types.js").SettingField} SettingField */
/** @typedef {{ name: string, url: string }} Instance */
/** @typedef {Record<string, any>} Draft */

const ONLY = "default";

/**
 * @param {App} app
 * @param {PluginFacts} plugin
 */
export function settingsForm(app, plugin) {
  const drafts = /** @type {Record<string, Draft>} */ (app.ui["drafts"] ??= {});
  const draft = (drafts[plugin.name] ??= newDraft(plugin));
  const problems = /** @type {Record<string, string>} */ (app.ui[`wrong ${plugin.name}`] ?? {});
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    await save(app, plugin, draft);
  };
  return h(
    "form",
    { class: "fields", onsubmit: (/** @type {Event} */ event) => void submit(event) },
    Object.entries(plugin.configSchema ?? {}).map(([key, field]) =>
      fieldRow(app, `${plugin.name}-${key}`, key, field, draft, problems[key]),
    ),
    h("div", { class: "form-foot" }, h("button", { type: "submit", class: "button primary small" }, "Save")),
  );
}

/** @param {PluginFacts} plugin */
function newDraft({ configSchema = {}, settings = {} }) {
  /** @type {Draft} */
  const draft = {};
  for (const [key, { type }] of Object.entries(configSchema)) {
    const value = settings[key];
    draft[key] = type === "url" ? instances(value) : (value ?? (type === "boolean" ? false : ""));
  }
  return draft;
}

/**
 * @param {unknown} value
 * @returns {Instance[]}
 */
function instances(value) {
  if (typeof value === "string") return [{ name: ONLY, url: value }];
  const all = Object.entries(/** @type {Record<string, string>} */ (value ?? {})).map(([name, url]) => ({ name, url }));
  return all.length > 0 ? all : [{ name: ONLY, url: "" }];
}

/**
 * @param {App} app
 * @param {PluginFacts} plugin
 * @param {Draft} draft
 */
async function save(app, plugin, draft) {
  /** @type {Record<string, unknown>} */
  const settings = {};
  for (const [key, { type }] of Object.entries(plugin.configSchema ?? {})) {
    const value = draft[key];
    if (type === "url") settings[key] = urlSetting(value);
    else if (type === "number") settings[key] = value === "" ? null : Number(value);
    else settings[key] = value === "" ? null : value;
  }
  try {
    await app.ask("config.setPluginSettings", { plugin: plugin.name, settings });
    app.ui[`wrong ${plugin.name}`] = {};
    delete app.ui["drafts"][plugin.name];
    app.say(`The settings of ${plugin.displayName} are saved.`);
  } catch (error) {
    const errors = /** @type {{ field: string, problem: string }[]} */ (/** @type {any} */ (error).data?.errors ?? []);
    app.ui[`wrong ${plugin.name}`] = Object.fromEntries(errors.map(({ field, problem }) => [field, problem]));
    const known = errors.some(({ field }) => field in (plugin.configSchema ?? {}));
    app.say(known ? "Not saved: correct the marked fields." : errorText(error), "bad");
    if (known) focusFirst(plugin.name);
  }
}

/**
 * Focus the first invalid field, once it is marked.
 * @param {string} plugin
 */
function focusFirst(plugin) {
  requestAnimationFrame(() => {
    const card = document.querySelector(`[data-plugin="${CSS.escape(plugin)}"]`);
    /** @type {HTMLElement | null | undefined} */ (card?.querySelector("[aria-invalid=true]"))?.focus();
  });
}

/**
 * @param {Instance[]} given
 * @returns {string | Record<string, string> | null}
 */
function urlSetting(given) {
  const filled = given.filter(({ url }) => url.trim() !== "");
  if (filled.length === 0) return null;
  if (filled.length === 1 && filled[0]?.name === ONLY) return filled[0].url.trim();
  return Object.fromEntries(filled.map(({ name, url }) => [name.trim(), url.trim()]));
}

/**
 * @param {App} app
 * @param {string} id
 * @param {string} key
 * @param {SettingField} field
 * @param {Draft} draft
 * @param {string | undefined} problem
 */
function fieldRow(app, id, key, field, draft, problem) {
  const described =
    [field.description ? `${id}-about` : "", problem ? `${id}-wrong` : ""].filter(Boolean).join(" ") || undefined;
  const about = field.description ? h("p", { class: "quiet", id: `${id}-about` }, field.description) : null;
  const fault = problem
    ? h("p", { class: "problem", id: `${id}-wrong` }, `${problem[0]?.toUpperCase() ?? ""}${problem.slice(1)}.`)
    : null;
  const change = (/** @type {Event} */ event) => (draft[key] = /** @type {HTMLInputElement} */ (event.target).value);
  const common = {
    id,
    "aria-describedby": described,
    "aria-invalid": problem ? "true" : undefined,
    value: draft[key],
    oninput: change,
  };
  const label = h(
    "label",
    { for: id },
    field.label,
    field.required ? h("span", { class: "quiet" }, " (required)") : null,
  );
  if (field.type === "boolean") {
    return h(
      "div",
      { class: "field", key },
      toggle(field.label, draft[key] === true, (on) => {
        draft[key] = on;
        app.changed();
      }),
      about,
      fault,
    );
  }
  if (field.type === "url")
    return h("div", { class: "field", key }, urlFields(app, id, field, draft[key], problem, described), about, fault);
  if (field.type === "select") {
    const options = [
      field.required ? null : h("option", { value: "" }, "not set"),
      ...(field.options ?? []).map((each) => h("option", { value: each }, each)),
    ];
    return h("div", { class: "field", key }, label, h("select", common, options), about, fault);
  }
  const type = field.secret ? "password" : field.type === "number" ? "number" : "text";
  const input = h("input", {
    ...common,
    type,
    step: type === "number" ? "any" : undefined,
    placeholder: field.placeholder,
    autocomplete: "off",
  });
  return h("div", { class: "field", key }, label, input, about, fault);
}

/**
 * @param {App} app
 * @param {string} id
 * @param {SettingField} field
 * @param {Instance[]} list
 * @param {string | undefined} problem
 * @param {string | undefined} describedby
 */
function urlFields(app, id, field, list, problem, describedby) {
  // With several URLs, the problem names the one it is about.
  const affected = list.filter(({ name }) => problem?.includes(`'${name}'`));
  const marks = (/** @type {Instance} */ instance, /** @type {boolean} */ isName) => {
    const about = problem !== undefined && (affected.length === 0 || affected.includes(instance));
    const invalid = about && isName === (problem?.includes("instance name") ?? false);
    return { "aria-invalid": invalid ? "true" : undefined, "aria-describedby": describedby };
  };
  const named = list.length > 1 || list[0]?.name !== ONLY;
  const add = () => {
    if (list.length === 1 && list[0]?.name === ONLY) list[0].name = "";
    list.push({ name: "", url: "" });
    app.changed();
  };
  return h(
    "fieldset",
    null,
    h("legend", null, field.label, field.required ? h("span", { class: "quiet" }, " (required)") : null),
    list.map((instance, index) =>
      h(
        "div",
        { class: `instance${named ? " named" : ""}`, key: `instance ${index}` },
        named
          ? input(
              `Name of URL ${index + 1}`,
              instance.name,
              "work",
              marks(instance, true),
              (text) => (instance.name = text),
            )
          : null,
        input(
          named ? `URL ${index + 1}` : field.label,
          instance.url,
          field.placeholder ?? "https://example.com",
          marks(instance, false),
          (text) => (instance.url = text),
        ),
        named
          ? iconButton(`Remove URL ${index + 1}`, "close", () => {
              list.splice(index, 1);
              if (list.length === 0) list.push({ name: ONLY, url: "" });
              app.changed();
            })
          : null,
      ),
    ),
    button("Add a URL", { small: true, kind: "link", glyph: "plus", onclick: add, key: `add ${id}` }),
  );
}

/**
 * @param {string} label
 * @param {string} value
 * @param {string} placeholder
 * @param {Record<string, string | undefined>} marks
 * @param {(text: string) => unknown} change
 */
function input(label, value, placeholder, marks, change) {
  return h("input", {
    type: "text",
    "aria-label": label,
    ...marks,
    placeholder,
    value,
    autocomplete: "off",
    spellcheck: "false",
    oninput: (/** @type {Event} */ event) => change(/** @type {HTMLInputElement} */ (event.target).value),
  });
}
