/**
 * Sites: what agents may do on which sites, the page the person looks at first; and the grants, what agents may always do.
 */

import { h } from "../dom.js";
import { ago, agentName, counted, host } from "../format.js";
import { glyph } from "../glyphs.js";
import { badge, button, confirmButton, iconButton, levelSelect, section } from "../components.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").SiteLevel} SiteLevel */
/** @typedef {import("../types.js").SiteRule} SiteRule */
/** @typedef {import("../types.js").View} View */
/** @typedef {{ key: string, pattern: string | null, level: SiteLevel | null, explanations: string[] }} PageFacts */

const BY = /** @type {Record<string, string>} */ ({
  panel: "in the panel",
  terminal: "in a terminal",
  notification: "in a notification",
});

/** @param {App} app */
function draw(app) {
  if (!app.state) return null;
  return [
    h("p", { class: "lead" }, "Choose what agents may do on a site. Where several rules fit, the most specific one counts."),
    suggestion(app),
    thisPage(app),
    rules(app),
    grants(app),
  ];
}

/** @param {App} app */
function thisPage(app) {
  const { page } = app;
  if (!page) return null;
  const facts = pageFacts(app, page);
  if (facts && facts.pattern === null) return null;
  const pattern = facts?.pattern;
  const blocked = facts?.level === "block";
  const set = (/** @type {SiteLevel | null} */ level, /** @type {string} */ done) =>
    pattern && void app.act("sites.set", { pattern, level }, done);
  return section(
    "This page",
    null,
    h(
      "div",
      { class: `card this-page${blocked ? " blocked" : ""}` },
      h(
        "div",
        { class: "card-head" },
        glyph(blocked ? "denied" : "globe"),
        h(
          "div",
          { class: "card-title" },
          h("h3", null, host(page)),
          h("p", { class: "quiet" }, blocked ? `Agents are kept off ${pattern}.` : pattern ? `A rule for ${pattern}` : ""),
        ),
        blocked
          ? button("Allow again", {
              small: true,
              key: "unblock",
              onclick: () => set(null, "The rule was removed."),
            })
          : button("Keep agents off this site", {
              kind: "danger",
              small: true,
              key: "block",
              disabled: !pattern,
              onclick: () => set("block", `Agents are kept off ${host(page)} now.`),
            }),
      ),
      explained(app, facts),
    ),
  );
}

/**
 * What an agent may do on the page, as the hub puts it.
 * @param {App} app
 * @param {PageFacts | null} facts
 */
function explained(app, facts) {
  if (!facts) return null;
  const agents = agentNames(app);
  return h(
    "div",
    { class: "explained" },
    agents.length > 1
      ? h(
          "select",
          {
            "aria-label": "Explain for",
            value: explainedAgent(app) ?? "",
            onchange: (/** @type {Event} */ event) => {
              app.ui["explainedAgent"] = /** @type {HTMLSelectElement} */ (event.target).value;
              app.changed();
            },
          },
          agents.map((name) => h("option", { value: name }, name)),
        )
      : null,
    h(
      "ul",
      null,
      facts.explanations.map((sentence) => h("li", { key: sentence }, sentence)),
    ),
  );
}

/**
 * What the hub says about the page; null until it has answered. Asked again when the rules or the agent change.
 * @param {App} app
 * @param {string} page
 * @returns {PageFacts | null}
 */
function pageFacts(app, page) {
  const agent = explainedAgent(app);
  const { siteRules, grants: granted, settings, permissionDefault, skipPermissions } = app.state ?? {};
  const key = JSON.stringify([page, agent, siteRules, granted, settings, permissionDefault, skipPermissions]);
  if (app.ui["pageAsked"] !== key) {
    app.ui["pageAsked"] = key;
    const answered = app.ask("sites.page", { url: page, ...(agent === null ? {} : { agent }) });
    answered.then(
      (facts) => {
        if (app.ui["pageAsked"] === key) app.ui["pageFacts"] = { ...facts, page };
        app.changed();
      },
      () => undefined, // the hub went away; its state is shown elsewhere
    );
  }
  const facts = app.ui["pageFacts"];
  return facts?.page === page ? facts : null;
}

/** The names of the agents that have been seen. @param {App} app */
function agentNames(app) {
  return [...new Set((app.state?.sessions ?? []).flatMap(({ token }) => (token ? [token] : [])))];
}

/** @param {App} app @returns {string | null} */
function explainedAgent(app) {
  const names = agentNames(app);
  const picked = app.ui["explainedAgent"];
  return names.includes(picked) ? picked : (names[0] ?? null);
}

/** @param {App} app */
function rules(app) {
  const all = app.state?.siteRules ?? [];
  return section(
    "Rules",
    null,
    h(
      "div",
      { class: "card settings" },
      all.length === 0
        ? h("div", { class: "setting" }, h("p", { class: "quiet" }, "No rules yet: on every site, the permissions of the tools apply."))
        : all.map((rule) => ruleRow(app, rule)),
      newRule(app),
    ),
  );
}

/**
 * @param {App} app
 * @param {SiteRule} rule
 */
function ruleRow(app, { pattern, agent, level }) {
  const about = agent === null ? pattern : `${pattern} for ${agent}`;
  const of = agent === null ? { pattern } : { pattern, agent };
  return h(
    "div",
    { class: "setting", key: `rule ${pattern} ${agent}`, "data-rule": pattern },
    h("div", { class: "rule" }, h("code", null, pattern), agent === null ? null : badge(agentName(agent, agent))),
    levelSelect(`Agents on ${about}`, level, (picked) => void app.act("sites.set", { ...of, level: picked })),
    iconButton(
      `Remove the rule for ${about}`,
      "trash",
      () => void app.act("sites.set", { ...of, level: null }, "The rule was removed."),
      { key: "remove" },
    ),
  );
}

/** @param {App} app */
function newRule(app) {
  const draft = /** @type {{ pattern: string, level: SiteLevel }} */ (app.ui["newRule"] ??= { pattern: "", level: "block" });
  const add = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const pattern = draft.pattern.trim();
    if (pattern === "") return;
    if (await app.act("sites.set", { pattern, level: draft.level })) draft.pattern = "";
    app.changed();
  };
  return h(
    "form",
    { class: "setting new-rule", key: "new rule", onsubmit: (/** @type {Event} */ event) => void add(event) },
    h("input", {
      type: "text",
      "aria-label": "Site",
      placeholder: "*.bank.example",
      autocomplete: "off",
      spellcheck: "false",
      value: draft.pattern,
      oninput: (/** @type {Event} */ event) => (draft.pattern = /** @type {HTMLInputElement} */ (event.target).value),
    }),
    levelSelect("What agents may do there", draft.level, (level) => {
      draft.level = level;
      app.changed();
    }),
    h("button", { type: "submit", class: "button small" }, "Add"),
  );
}

/** @param {App} app */
function grants(app) {
  const all = app.state?.grants ?? [];
  if (all.length === 0) return null;
  return section(
    "Always allowed",
    null,
    h(
      "div",
      { class: "card settings" },
      all.map(({ id, text, created, approvedBy }) =>
        h(
          "div",
          { class: "setting", key: `grant ${id}`, "data-grant": id },
          h(
            "div",
            null,
            h("p", { class: "grant" }, `${text}.`),
            h("p", { class: "quiet" }, `Approved ${BY[approvedBy] ?? approvedBy} · `, h("span", { "data-ago": created * 1000 }, ago(created * 1000, Date.now()))),
          ),
          confirmButton(app, `revoke ${id}`, "Revoke", "Revoke now?", () => void app.act("grants.revoke", { id }, "Agents ask again."), text),
        ),
      ),
    ),
  );
}

/**
 * The suggestion to block sensitive sites, until the person has decided.
 * @param {App} app
 */
export function suggestion(app) {
  const suggested = app.state?.suggestedSites;
  if (!suggested) return null;
  return h(
    "section",
    { class: "card suggestion", key: "suggestion", "aria-labelledby": "suggestion-title" },
    h(
      "div",
      { class: "card-head" },
      glyph("approvals"),
      h(
        "div",
        { class: "card-title" },
        h("h2", { id: "suggestion-title" }, "Keep agents off sensitive sites?"),
        h("p", { class: "quiet" }, "Well-known names to start with. You can change every rule later, under Sites."),
      ),
    ),
    h(
      "ul",
      { class: "suggested" },
      suggested.map(({ category, title, patterns }) =>
        h(
          "li",
          { key: category },
          h(
            "div",
            null,
            h("strong", null, title),
            h("p", { class: "quiet" }, patterns.length > 0 ? examples(patterns) : "All of them have a rule."),
          ),
          patterns.length > 0
            ? button("Block", {
                small: true,
                key: category,
                name: `Block ${title}`,
                onclick: () => void app.act("sites.suggestion", { category }, `${counted(patterns.length, "site")} blocked.`),
              })
            : h("span", { class: "done" }, glyph("check", 14), "Blocked"),
        ),
      ),
    ),
    h(
      "div",
      { class: "form-foot" },
      button("Done", {
        small: true,
        name: "Done with this suggestion",
        key: "dismiss",
        onclick: () => void app.act("sites.suggestion", { category: null }),
      }),
    ),
  );
}

/** @param {string[]} patterns */
function examples(patterns) {
  const names = patterns.slice(0, 3).map((pattern) => pattern.replace(/^\*\./, ""));
  const more = patterns.length - names.length;
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** @type {View} */
export const sites = { id: "sites", title: "Sites", glyph: "globe", draw };
