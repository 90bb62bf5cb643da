/**
 * What waits for the person: who wants what, where, and with what exactly. One card is one question, and its buttons
 * answer that one only. On a card that has the focus: A once, S this session, W always, D deny.
 */

import { h } from "../dom.js";
import { agentName, clock, host, toolTitle } from "../format.js";
import { glyph } from "../glyphs.js";
import { badge, button, disclosure, empty, sureButton } from "../components.js";
import { values, visible } from "./values.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").Approval} Approval */
/** @typedef {import("../types.js").Decision} Decision */
/** @typedef {import("../types.js").View} View */

/** @type {Record<string, Decision>} */
const KEYS = { a: "allow_once", s: "allow_session", w: "allow_always", d: "deny" };
/** @type {readonly { decision: Decision, label: string, kind: "primary" | "danger" | "plain" }[]} */
const ANSWERS = [
  { decision: "allow_once", label: "Allow once", kind: "primary" },
  { decision: "deny", label: "Deny", kind: "danger" },
  { decision: "allow_session", label: "For this session", kind: "plain" },
  { decision: "allow_always", label: "Always", kind: "plain" },
];
/** Why it is asked, beside the permission being `ask`. @type {Record<string, { title: string, text: string }>} */
const REASONS = {
  pin: {
    title: "This tool has changed",
    text: "It is not the tool you approved before. Look at what is different.",
  },
  dataflow: {
    title: "From one site to another",
    text: "The agent has read content of one site, and now acts on another. A page could have told it to.",
  },
  tab: { title: "An agent asks for a tab", text: "Another agent is working in it, and would lose it." },
  page: { title: "The page asks", text: "The page itself wants you to confirm before it goes on." },
};

/** What an agent over a relay would be allowed with the first answer. @type {Record<string, string>} */
const RELAYED = {
  allow_session: "If you allow it, it may do so on this site until it disconnects.",
  allow_once: "If you allow it, it may do so this once.",
};

/** @param {App} app */
function draw(app) {
  if (app.waiting.length > 0) {
    return [
      h(
        "div",
        { class: "lead-row" },
        h("p", { class: "lead" }, "Agents wait until you decide. What you do not answer in time is denied."),
        app.waiting.length > 1
          ? sureButton(app, "deny all", "Deny all", `Deny all ${app.waiting.length}?`, () => denyAll(app))
          : null,
      ),
      cards(app, 2),
    ];
  }
  return empty(
    "approvals",
    "Nothing waits for you",
    h("p", null, "When an agent wants to use a tool that is set to “Ask”, you decide here."),
    h("p", null, h("a", { href: "#tools" }, "Choose which tools ask")),
  );
}

/** Each is answered by itself, with what was there when it was clicked. @param {App} app */
function denyAll(app) {
  app.decideAll(app.waiting, "deny");
}

/**
 * Every question, in the order they came.
 * @param {App} app
 * @param {number} [level] of their headings
 */
export function cards(app, level = 3) {
  return h(
    "div",
    { class: "approvals", "data-settling": app.settling },
    app.waiting.map((approval) => card(app, approval, level)),
  );
}

/**
 * One question, wherever it is shown.
 * @param {App} app
 * @param {Approval} approval
 * @param {number} level of its heading
 */
export function card(app, approval, level) {
  const { id, tool, params, expiresAt, choices: offered = ANSWERS.map(({ decision }) => decision) } = approval;
  const reasons = /** @type {Record<string, string>} */ (app.ui["reasons"] ??= {});
  const decide = (/** @type {Decision} */ decision) => app.decide(approval, decision, reasons[id]?.trim());
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
        // Only on the card itself: a letter typed into a field is a letter, and a held key is no decision.
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
    approval.relay ? h("p", { class: "quiet" }, RELAYED[offered[0] ?? ""]) : values(params, "Sent without parameters."),
    h(
      "div",
      { class: "approval-actions" },
      answers(approval, offered).map(({ decision, label, kind }) =>
        button(label, { kind, onclick: () => decide(decision), name: `${label}: ${visible(title)}`, key: decision }),
      ),
    ),
    // Over a relay there is no way for a reason to travel.
    approval.relay
      ? null
      : disclosure(
          "reason",
          "Say why",
          h("input", {
            type: "text",
            "aria-label": "Reason, told to the agent when you deny",
            placeholder: "Told to the agent when you deny",
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
    "-": ["gone", "removed: "],
  });
  return h(
    "div",
    { class: "diff", role: "region", "aria-label": "What changed", tabindex: "0" },
    text.split("\n").map((line) => {
      const [kind, said] = kinds[line[0] ?? ""] ?? ["same", ""];
      return h("div", { class: kind }, said ? h("span", { class: "unseen" }, said) : null, line || " ");
    }),
  );
}

/** @type {View} */
export const approvals = { id: "approvals", title: "Approvals", glyph: "approvals", draw };
