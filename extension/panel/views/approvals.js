/**
 * Pending approvals: which agent wants to call which tool, where, and with which parameters. A card is one approval, and
 * its buttons answer only that one. Keys on a focused card: A once, S this session, W always, D deny.
 */

import { h } from "../dom.js";
import { agentName, clock, host, toolTitle } from "../format.js";
import { glyph } from "../glyphs.js";
import { badge, button, disclosure, empty, confirmButton } from "../components.js";
import { values, visible } from "./values.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").Approval} Approval */
/** @typedef {import("../types.js").Decision} Decision */
/** @typedef {import("../types.js").View} View */
/** @typedef {import("../types.js").WiderScope} WiderScope */

/** @type {Record<string, Decision>} */
const KEYS = { a: "allow_once", s: "allow_session", w: "allow_always", d: "deny" };
/** @type {readonly { decision: Decision, label: string, kind: "primary" | "danger" | "plain" }[]} */
const ANSWERS = [
  { decision: "allow_once", label: "Allow once", kind: "primary" },
  { decision: "deny", label: "Deny", kind: "danger" },
  { decision: "allow_session", label: "For this session", kind: "plain" },
  { decision: "allow_always", label: "Always", kind: "plain" },
];
/** Reasons for an approval other than the level `ask`. @type {Record<string, { title: string, text: string }>} */
const REASONS = {
  pin: {
    title: "This tool has changed",
    text: "Its definition differs from the one you approved. Check the changes.",
  },
  dataflow: {
    title: "From one site to another",
    text: "The agent has read content from one site and now acts on another. A page may have told it to.",
  },
  tab: { title: "The tab is in use", text: "Another agent holds it, and would lose it." },
  page: { title: "The page asks for confirmation", text: "The page wants you to confirm before it continues." },
};

/** What the first choice allows an agent over a relay. @type {Record<string, string>} */
const RELAY_SCOPES = {
  allow_session: "Allows this on this site until the agent disconnects.",
  allow_once: "Allows this once.",
};

/** @param {App} app */
function draw(app) {
  if (app.waiting.length > 0) {
    return [
      h(
        "div",
        { class: "lead-row" },
        h("p", { class: "lead" }, "Agents wait until you decide. Approvals that time out are denied."),
        app.waiting.length > 1
          ? confirmButton(app, "deny all", "Deny all", `Deny all ${app.waiting.length}?`, () => denyAll(app))
          : null,
      ),
      cards(app, 2),
    ];
  }
  return empty(
    "approvals",
    "No pending approvals",
    h("p", null, "Calls of tools that are set to “Ask” are approved or denied here."),
    h("p", null, h("a", { href: "#tools" }, "Choose which tools need approval")),
  );
}

/** Answers each approval that is listed now. @param {App} app */
function denyAll(app) {
  app.decideAll(app.waiting, "deny");
}

/**
 * All pending approvals, oldest first.
 * @param {App} app
 * @param {number} [level] of the headings
 */
export function cards(app, level = 3) {
  return h(
    "div",
    { class: "approvals", "data-settling": app.settling },
    app.waiting.map((approval) => card(app, approval, level)),
  );
}

/**
 * The card of one approval.
 * @param {App} app
 * @param {Approval} approval
 * @param {number} level of its heading
 */
export function card(app, approval, level) {
  const { id, tool, params, expiresAt, choices: offered = ANSWERS.map(({ decision }) => decision) } = approval;
  const reasons = /** @type {Record<string, string>} */ (app.ui["reasons"] ??= {});
  const decide = (/** @type {Decision} */ decision) =>
    app.decide(approval, decision, reasons[id]?.trim(), decision === "allow_always" ? widened(app, id) : []);
  const why = REASONS[approval.reason ?? ""];
  const title = approval.relay ? tool : toolTitle(app.state, tool);
  return h(
    "article",
    {
      class: `approval${why ? " special" : ""}`,
      key: id,
      tabindex: "0",
      "aria-labelledby": `title-${id}`,
      "data-approval": id,
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const decision = KEYS[event.key.toLowerCase()];
        // Only on the card itself, not in its fields; a key that is held down does not decide.
        if (event.target !== event.currentTarget || !decision || event.repeat || !offered.includes(decision)) return;
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        decide(decision);
      },
    },
    h(
      "div",
      { class: "approval-head" },
      h(
        "p",
        { class: "approval-who" },
        glyph("agents", 14),
        h("strong", null, visible(agentName(approval.client, approval.token))),
        approval.relay ? " wants to" : " wants to use",
      ),
      expiresAt
        ? h(
            "span",
            { class: "countdown", title: "Time left to decide" },
            glyph("clock", 14),
            h("span", { "data-until": expiresAt }, clock(expiresAt - Date.now())),
          )
        : null,
    ),
    h(`h${level}`, { id: `title-${id}` }, visible(title), " ", approval.relay ? null : h("code", null, tool)),
    place(approval),
    why
      ? h(
          "div",
          { class: "approval-why" },
          glyph("alert"),
          h("div", null, h("strong", null, why.title), h("p", null, visible(approval.message || why.text))),
        )
      : null,
    approval.diff ? diff(approval.diff) : null,
    approval.relay ? h("p", { class: "quiet" }, RELAY_SCOPES[offered[0] ?? ""]) : values(params, "No parameters."),
    approval.scope && offered.includes("allow_always") ? alwaysScope(app, approval) : null,
    h(
      "div",
      { class: "approval-actions" },
      answers(approval, offered).map(({ decision, label, kind }) =>
        button(label, { kind, onclick: () => decide(decision), name: `${label}: ${visible(title)}`, key: decision }),
      ),
    ),
    // A relay cannot carry a reason.
    approval.relay
      ? null
      : disclosure(
          "reason",
          "Add a reason",
          h("input", {
            type: "text",
            "aria-label": "Reason, sent to the agent if you deny",
            placeholder: "Sent to the agent if you deny",
            maxlength: "300",
            value: reasons[id] ?? "",
            oninput: (/** @type {Event} */ event) => {
              reasons[id] = /** @type {HTMLInputElement} */ (event.target).value;
            },
            onkeydown: (/** @type {KeyboardEvent} */ event) => {
              if (event.key === "Enter") decide("deny");
            },
          }),
        ),
  );
}

/** @type {Record<WiderScope, string>} */
const WIDER = { every_site: "on every site", every_agent: "for every agent" };

/**
 * What “Always” would allow, and how that can be widened.
 * @param {App} app
 * @param {Approval} approval
 */
function alwaysScope(app, { id, scope = "", wider = [] }) {
  const chosen = widened(app, id);
  return h(
    "div",
    { class: "approval-scope" },
    h(
      "p",
      { class: "quiet" },
      h("strong", null, "Always"),
      ` means: ${visible(scope)}${chosen.length > 0 ? `, widened: ${chosen.map((each) => WIDER[each]).join(" and ")}` : ""}.`,
    ),
    wider.length === 0
      ? null
      : disclosure(
          "wider",
          "Widen “Always”",
          wider.map((each) =>
            h(
              "label",
              { key: each },
              h("input", {
                type: "checkbox",
                checked: chosen.includes(each),
                onchange: (/** @type {Event} */ event) => {
                  const on = /** @type {HTMLInputElement} */ (event.target).checked;
                  app.ui["wider"][id] = on ? [...chosen, each] : chosen.filter((other) => other !== each);
                  app.changed();
                },
              }),
              ` ${WIDER[each]}`,
            ),
          ),
        ),
  );
}

/**
 * @param {App} app
 * @param {string} id of the approval
 * @returns {WiderScope[]}
 */
function widened(app, id) {
  const all = /** @type {Record<string, WiderScope[]>} */ (app.ui["wider"] ??= {});
  return all[id] ?? [];
}

/**
 * @param {Approval} approval
 * @param {readonly Decision[]} offered
 */
function answers({ relay }, offered) {
  if (!relay) return ANSWERS.filter(({ decision }) => offered.includes(decision));
  return offered.map((decision) => ({
    decision,
    label: decision === "deny" ? "Deny" : "Allow",
    kind: /** @type {"primary" | "danger"} */ (decision === "deny" ? "danger" : "primary"),
  }));
}

/** @param {Approval} approval */
function place({ origin, title, url, tabId, plugin }) {
  const where = host(origin ?? url);
  if (!where && tabId === undefined)
    return plugin ? h("p", { class: "approval-where" }, glyph("plugins", 14), `with ${plugin}`) : null;
  return h(
    "p",
    { class: "approval-where" },
    glyph("tab", 14),
    title ? h("span", { class: "tab-title", title: visible(title) }, visible(title)) : null,
    where ? h("span", { class: "origin" }, where) : null,
    tabId === undefined || title ? null : badge(`tab ${tabId}`),
  );
}

/** @param {string} text */
function diff(text) {
  const kinds = /** @type {Record<string, [string, string]>} */ ({
    "+": ["added", "added: "],
    "-": ["removed", "removed: "],
  });
  return h(
    "div",
    { class: "diff", role: "region", "aria-label": "Changes", tabindex: "0" },
    text.split("\n").map((line) => {
      const [kind, label] = kinds[line[0] ?? ""] ?? ["same", ""];
      return h("div", { class: kind }, label ? h("span", { class: "unseen" }, label) : null, line || " ");
    }),
  );
}

/** @type {View} */
export const approvals = { id: "approvals", title: "Approvals", glyph: "approvals", draw };
