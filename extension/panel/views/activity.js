/**
 * Running calls, and the audit log: who made each call, where, and who approved it.
 */

import { h } from "../dom.js";
import { HIGHLIGHT_MS, agentName, ago, capital, duration, host, toolTitle } from "../format.js";
import { glyph } from "../glyphs.js";
import { button, dot, empty, searchField, section } from "../components.js";
import { OUTCOMES, approvedBy, outcome } from "../outcomes.js";
import { values, visible } from "./values.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").Entry} Entry */
/** @typedef {import("../types.js").View} View */

const PAGE = 50;
const WAIT_MS = 200;

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** @param {App} app */
function draw(app) {
  return [running(app), history(app)];
}

/** @param {App} app */
function running(app) {
  const calls = [...app.running.values()].toReversed();
  return section(
    "Running",
    null,
    calls.length === 0
      ? h("p", { class: "quiet none" }, "No running calls.")
      : h(
          "ul",
          { class: "rows" },
          calls.map((call) =>
            h(
              "li",
              { key: call.callId, class: "call running" },
              dot("live"),
              h("span", { class: "call-what", dir: "auto" }, whatOf(app, call)),
              h("span", { class: "call-who" }, agentName(call.client, call.token)),
              h("span", { class: "call-time", "data-since": call.at }, duration(Date.now() - call.at)),
            ),
          ),
        ),
  );
}

/** The filters that are set. @param {App} app */
function filters(app) {
  const { activityTool = "", activityResult = "", activitySource = "" } = app.ui;
  return {
    ...(activityTool.trim() ? { tool: activityTool.trim() } : {}),
    ...(activitySource ? { source: activitySource } : {}),
    ...(activityResult ? { ok: activityResult === "ok" } : {}),
  };
}

/** @param {App} app */
function history(app) {
  const wanted = filters(app);
  const filtered = Object.keys(wanted).length > 0;
  refresh(app, wanted, filtered);
  const older = /** @type {Entry[]} */ (app.ui["activityFound"] ?? []);
  const live = app.state?.activity ?? [];
  const last = live.at(-1)?.timestamp ?? "";
  const entries = filtered ? older : [...live, ...older.filter((entry) => entry.timestamp < last)];
  return section(
    "History",
    null,
    h(
      "div",
      { class: "filters" },
      searchField(app, "activityTool", "Filter by tool"),
      choice(app, "activitySource", "Source", [
        ["", "All sources"],
        ["browser", "Browser"],
        ["page", "Pages"],
        ["plugin", "Plugins"],
        ["upstream", "Servers"],
      ]),
      choice(app, "activityResult", "Result", [
        ["", "All results"],
        ["ok", "Succeeded"],
        ["failed", "Failed"],
      ]),
    ),
    entries.length > 0
      ? h(
          "ul",
          { class: "rows" },
          entries.map((entry) => row(app, entry)),
        )
      : filtered
        ? h("p", { class: "quiet none" }, "No matching calls.")
        : empty(
            "activity",
            "No calls yet",
            h("p", null, "Every call of an agent is listed here and in the audit log."),
          ),
    entries.length >= PAGE && !app.ui["activityEnd"]
      ? button("Show older", { onclick: () => void more(app, wanted, entries.at(-1)?.timestamp), key: "older" })
      : null,
  );
}

/**
 * Request matching entries once the person has stopped typing.
 * @param {App} app
 * @param {Record<string, unknown>} wanted
 * @param {boolean} filtered
 */
function refresh(app, wanted, filtered) {
  const asked = JSON.stringify(wanted);
  if (app.ui["activityAsked"] === asked) return;
  app.ui["activityAsked"] = asked;
  app.ui["activityEnd"] = false;
  clearTimeout(timer);
  if (!filtered) {
    app.ui["activityFound"] = [];
    return;
  }
  timer = setTimeout(() => void more(app, wanted), WAIT_MS);
}

/**
 * @param {App} app
 * @param {Record<string, unknown>} wanted
 * @param {string} [before]
 */
async function more(app, wanted, before) {
  const answer = await app
    .ask("audit.list", { limit: PAGE, ...wanted, ...(before ? { before } : {}) })
    .catch((error) => {
      app.say(error.message, "bad");
      return { entries: [] };
    });
  if (JSON.stringify(wanted) !== app.ui["activityAsked"]) return;
  const found = /** @type {Entry[]} */ (Array.isArray(answer) ? answer : (answer.entries ?? []));
  app.ui["activityFound"] = before ? [...(app.ui["activityFound"] ?? []), ...found] : found;
  app.ui["activityEnd"] = found.length < PAGE;
  app.changed();
}

/**
 * @param {App} app
 * @param {string} key
 * @param {string} label
 * @param {[string, string][]} options
 */
function choice(app, key, label, options) {
  return h(
    "select",
    {
      "aria-label": label,
      value: app.ui[key] ?? "",
      onchange: (/** @type {Event} */ event) => {
        app.ui[key] = /** @type {HTMLSelectElement} */ (event.target).value;
        app.changed();
      },
    },
    options.map(([value, text]) => h("option", { value }, text)),
  );
}

/**
 * What a call does, or did.
 * @param {App} app
 * @param {{ tool: string, what?: string | undefined }} call
 */
export function whatOf(app, { tool, what }) {
  return visible(what ? capital(what) : toolTitle(app.state, tool));
}

/**
 * One ended call; it opens to show the details.
 * @param {App} app
 * @param {Entry} entry
 */
export function row(app, entry) {
  const { timestamp, tool, durationMs, waitedMs, client, tokenName, origin, error } = entry;
  const how = outcome(entry);
  const { glyph: shape, tone } = OUTCOMES[how];
  return h(
    "li",
    {
      key: `${timestamp} ${tool} ${entry.session ?? ""}`,
      class: `call${Date.now() - Date.parse(timestamp) < HIGHLIGHT_MS ? " fresh" : ""}`,
    },
    h(
      "details",
      null,
      h(
        "summary",
        null,
        h("span", { class: `outcome ${tone}`, title: capital(how) }, glyph(shape, 14)),
        h("span", { class: "call-what", dir: "auto" }, whatOf(app, entry), h("span", { class: "unseen" }, ` (${how})`)),
        h("span", { class: "call-who" }, [agentName(client, tokenName), host(origin)].filter(Boolean).join(" · ")),
        h("span", { class: "call-time" }, how === "done" ? duration(durationMs) : h("span", { class: `how ${tone}` }, how)),
        h("span", { class: "call-ago", "data-ago": Date.parse(timestamp) }, ago(Date.parse(timestamp), Date.now())),
      ),
      h(
        "div",
        { class: "call-more" },
        error?.message ? h("p", { class: "call-error", dir: "auto" }, visible(error.message)) : null,
        h("p", { class: "quiet" }, timing(how, durationMs, waitedMs, approvedBy(entry))),
        values(details(entry), ""),
      ),
    ),
  );
}

/**
 * How it ended, who approved it, and how long it took, without the time it waited for the person.
 * @param {string} how
 * @param {number} ms
 * @param {number | undefined} waited
 * @param {string} by
 */
function timing(how, ms, waited, by) {
  return [capital(how), by, waited === undefined ? "" : `waited ${duration(waited)} for you`, `took ${duration(ms)}`]
    .filter((part) => part && part !== how)
    .filter((part, at, all) => all.indexOf(part) === at)
    .join(" · ");
}

/** @param {Entry} entry */
function details(entry) {
  const { tool, timestamp, session, tabId, origin, outcome: sent, source, arguments: given } = entry;
  const all = { tool, when: new Date(timestamp).toLocaleString(), source, session, tab: tabId, site: origin, outcome: sent };
  const known = Object.entries(all).filter(([, value]) => value !== undefined && value !== null);
  return { ...Object.fromEntries(known), ...(given ? { arguments: given } : {}) };
}

/** @type {View} */
export const activity = { id: "activity", title: "Activity", glyph: "activity", draw };
