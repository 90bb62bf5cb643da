/**
 * Pending approvals: which agent wants to do what, where, and how that looks in the page. A card is one approval, and its
 * buttons answer only that one. Keys on a focused card: A once, S this session, W always, D deny.
 */

import { h, svg } from "../dom.js";
import { clock, host, sentenceOf } from "../format.js";
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
/** @type {readonly { decision: Decision, label: string, kind: "primary" | "danger" | "plain", key: string }[]} */
const ANSWERS = [
  { decision: "allow_once", label: "Allow once", kind: "primary", key: "A" },
  { decision: "deny", label: "Deny", kind: "danger", key: "D" },
  { decision: "allow_session", label: "Allow for this session", kind: "plain", key: "S" },
  { decision: "allow_always", label: "Always allow", kind: "plain", key: "W" },
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

const SCRIPT = "browser_execute_script";
/** Where an element is in its picture, in shares of it, and how wide that is compared to its height. @typedef {{ x: number, y: number, width: number, height: number, ratio: number }} Place */
/** The width of a picture in its own units. */
const UNITS = 420;
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
  const { id, tool, plugin, params, expiresAt, steps = [], choices: offered = ANSWERS.map(({ decision }) => decision) } = approval;
  const reasons = /** @type {Record<string, string>} */ (app.ui["reasons"] ??= {});
  const decide = (/** @type {Decision} */ decision) =>
    app.decide(approval, decision, reasons[id]?.trim(), decision === "allow_always" ? widened(app, id) : []);
  const why = REASONS[approval.reason ?? ""];
  const title = visible(sentenceOf(approval));
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
      h(`h${level}`, { id: `title-${id}`, dir: "auto" }, title),
      expiresAt
        ? h(
            "span",
            { class: "countdown", title: "Time left to decide" },
            glyph("clock", 14),
            h("span", { "data-until": expiresAt }, clock(expiresAt - Date.now())),
          )
        : null,
    ),
    place(app, approval),
    approval.changed
      ? notice("The page has changed", `The question before does not count any more: ${approval.changed}.`)
      : null,
    why ? notice(why.title, approval.message || why.text) : null,
    steps.length > 0
      ? h(
          "ol",
          { class: "approval-steps" },
          steps.map((step) => h("li", { dir: "auto" }, visible(step))),
        )
      : null,
    picture(app, approval),
    approval.diff ? diff(approval.diff) : null,
    approval.relay ? h("p", { class: "quiet" }, RELAY_SCOPES[offered[0] ?? ""]) : null,
    h(
      "div",
      { class: "approval-actions" },
      answers(approval, offered).map((answer) => choice(app, approval, answer, title, () => decide(answer.decision))),
    ),
    approval.scope && offered.includes("allow_always") ? alwaysScope(app, approval) : null,
    approval.relay
      ? null
      : disclosure(
          "details",
          "Details",
          [
            h("p", { class: "quiet" }, h("code", null, visible(tool)), approval.token ? ` · ${visible(approval.client)}` : null),
            values(params, "No parameters."),
          ],
          // A script is judged by its code, and a tool of others by all it is given.
          { open: tool === SCRIPT || (plugin !== undefined && plugin !== "browser") },
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
            dir: "auto",
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
 * One choice, with its scope and its key.
 * @param {App} app
 * @param {Approval} approval
 * @param {{ decision: Decision, label: string, kind: "primary" | "danger" | "plain", key?: string }} answer
 * @param {string} title of the card
 * @param {() => void} onclick
 */
function choice(app, approval, { decision, label, kind, key }, title, onclick) {
  const scope = scopeOf(app, approval, decision);
  return h(
    "button",
    {
      type: "button",
      class: `button ${kind}${kind === "plain" ? " scoped" : ""}`,
      key: decision,
      "aria-keyshortcuts": key,
      onclick,
    },
    h("span", { class: "choice" }, label, scope ? h("small", null, ` ${scope}`) : null),
    // So that the buttons of several cards differ for screen readers.
    h("span", { class: "unseen" }, `: ${title}`),
    key ? h("kbd", { "aria-hidden": "true" }, key) : null,
  );
}

/**
 * What a choice beyond this call covers.
 * @param {App} app
 * @param {Approval} approval
 * @param {Decision} decision
 */
function scopeOf(app, { id, sessionScope }, decision) {
  if (!sessionScope || (decision !== "allow_session" && decision !== "allow_always")) return "";
  const wide = decision === "allow_always" ? widened(app, id) : [];
  const shown = wide.includes("every_site") ? sessionScope.replace(/ on \S+/g, " on every site") : sessionScope;
  return visible(wide.includes("every_agent") ? `${shown}, every agent` : shown);
}

/**
 * @param {string} title
 * @param {string} text
 */
function notice(title, text) {
  return h(
    "div",
    { class: "approval-why" },
    glyph("alert"),
    h("div", null, h("strong", null, title), h("p", { dir: "auto" }, visible(text))),
  );
}

/**
 * The element in its page.
 * @param {App} app
 * @param {Approval} approval
 */
function picture(app, { id, pictured }) {
  if (!pictured) return null;
  const known = /** @type {Record<string, { data: string, place: Place } | null>} */ (app.ui["pictures"] ??= {});
  if (known[id] === undefined) {
    known[id] = null;
    app.ask("approvals.picture", { id }).then(
      ({ picture: data, place: at }) => {
        known[id] = typeof data === "string" ? { data: `data:image/jpeg;base64,${data}`, place: at } : null;
        app.changed();
      },
      () => {}, // without a picture, the sentence has to do
    );
  }
  const shown = known[id];
  if (!shown) return null;
  const { x, y, width, height, ratio } = shown.place;
  const [across, down] = [UNITS, UNITS / ratio];
  return svg(
    "svg",
    { class: "approval-picture", viewBox: `0 0 ${across} ${down}`, role: "img", "aria-label": "The element in its page" },
    svg("image", { href: shown.data, width: across, height: down }),
    svg("rect", { x: x * across - 4, y: y * down - 4, width: width * across + 8, height: height * down + 8, rx: 6 }),
  );
}

/** @type {Record<WiderScope, string>} */
const WIDER = { every_site: "on every site", every_agent: "for every agent" };

/**
 * What “Always” would allow, how that can be widened, and where it is undone.
 * @param {App} app
 * @param {Approval} approval
 */
function alwaysScope(app, { id, scope = "", wider = [] }) {
  const chosen = widened(app, id);
  return disclosure(
    "wider",
    "What “Always allow” means",
    h(
      "div",
      { class: "approval-scope" },
      h("p", { dir: "auto" }, `${visible(scope)}${chosen.length > 0 ? `, widened: ${chosen.map((each) => WIDER[each]).join(" and ")}` : ""}.`),
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
      h("p", null, "You can undo it at any time: ", h("a", { href: "#sites" }, "Sites"), " lists what is always allowed."),
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
    key: decision === "deny" ? "D" : decision === "allow_once" ? "A" : "S",
  }));
}

/**
 * @param {App} app
 * @param {Approval} approval
 */
function place(app, { id, origin, title, url, tabId, plugin, pictured, relay }) {
  const where = host(origin ?? url);
  if (!where && tabId === undefined)
    return plugin && plugin !== "browser" ? h("p", { class: "approval-where" }, glyph("plugins", 14), `with ${plugin}`) : null;
  return h(
    "p",
    { class: "approval-where" },
    glyph("tab", 14),
    title ? h("span", { class: "tab-title", title: visible(title), dir: "auto" }, visible(title)) : null,
    where ? h("span", { class: "origin" }, where) : null,
    tabId === undefined || title ? null : badge(`tab ${tabId}`),
    tabId === undefined || relay
      ? null
      : button("Show me", {
          kind: "link",
          small: true,
          key: "show",
          name: pictured ? "Show me the element in its page" : "Show me the tab",
          onclick: () => void app.act("approvals.show", { id }),
        }),
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
