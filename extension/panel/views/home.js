/**
 * The first view: what is connected to what, what waits for the person, and who is at work. Where nothing is connected
 * yet it says what to do next, one step at a time.
 */

import { h } from "../dom.js";
import { agentName, counted, duration, toolTitle } from "../format.js";
import { glyph } from "../glyphs.js";
import { command, dot, section } from "../components.js";
import { explanation, nextAttempt } from "../connection_text.js";
import { cards } from "./approvals.js";
import { row } from "./activity.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").View} View */
/** @typedef {import("../components.js").Tone} Tone */

/** @param {App} app */
function draw(app) {
  const { state } = app;
  const first = !state || state.sessions.length === 0;
  return [
    road(app),
    app.waiting.length > 0 ? section("Waiting for you", null, cards(app)) : null,
    first ? steps(app) : null,
    state && !first ? working(app) : null,
    state && !first ? recent(app) : null,
  ];
}

/**
 * The road from agents to tabs, each leg with its own state.
 * @param {App} app
 */
function road(app) {
  const { state, link } = app;
  const phase = link?.link.phase;
  const connected = phase === "connected";
  const known = state?.sessions.length ?? 0;
  const here = state?.sessions.filter((session) => session.connected || session.callsInFlight > 0).length ?? 0;
  const agents = here > 0 ? `${here} connected` : known > 0 ? `${known} known` : state ? "none yet" : "—";
  const others = (state?.browsers ?? []).filter((browser) => browser.connected).length;
  const hub = connected ? "good" : phase === "connecting" || !link ? "quiet" : "bad";
  const browsers = others > 1 ? `${others} browsers` : counted(link?.tabs ?? 0, "tab");
  return h(
    "ol",
    { class: "road", "aria-label": "What is connected" },
    stop("agents", "Agents", agents, known > 0 ? "good" : "quiet", known > 0),
    stop("servers", "Hub", connected ? address(link?.link.address) : wordOf(phase), hub, connected),
    stop(
      "globe",
      link?.browserName ?? "This browser",
      connected ? browsers : "not reached",
      connected ? "good" : "quiet",
      false,
    ),
    h("li", { class: "road-note" }, note(app)),
  );
}

/**
 * @param {string} picture
 * @param {string} title
 * @param {string} text
 * @param {Tone} tone
 * @param {boolean} joined whether the way to the next one is open
 */
function stop(picture, title, text, tone, joined) {
  return h(
    "li",
    { class: `stop ${tone}${joined ? " joined" : ""}` },
    h("span", { class: "stop-picture" }, glyph(picture, 20)),
    h("span", { class: "stop-title" }, title),
    h("span", { class: "stop-text" }, dot(tone), text),
  );
}

/** @param {string | null | undefined} url */
function address(url) {
  return (url ?? "").replace(/^\w+:\/\//, "").replace(/\/.*$/, "");
}

/** @param {string | undefined} phase */
function wordOf(phase) {
  return phase === "connecting" || phase === undefined
    ? "connecting…"
    : phase === "setup"
      ? "waiting for setup"
      : "not running";
}

/** @param {App} app */
function note({ state, link }) {
  if (!link) return "Asking the extension…";
  if (link.link.phase !== "connected") {
    const { retryAt } = link.link;
    const next = retryAt === null ? null : h("span", { "data-retry": retryAt }, nextAttempt(retryAt, Date.now()));
    return [explanation(link.link), next && [" Next try ", next, "."]];
  }
  if (!state) return "Reading the hub's state…";
  const debugged = link.debugged
    ? `An agent's tools are attached to ${counted(link.debugged, "tab")}.`
    : "No tab is under an agent's control.";
  return link.lastError ? `${debugged} Last error: ${link.lastError}` : debugged;
}

/** @param {App} app */
function steps(app) {
  const connected = app.link?.link.phase === "connected";
  const number = (/** @type {boolean} */ done, /** @type {number} */ n) =>
    h("span", { class: `step-mark${done ? " done" : ""}` }, done ? glyph("check", 14) : String(n));
  return section(
    "Get going",
    null,
    h(
      "ol",
      { class: "steps" },
      h(
        "li",
        { class: connected ? "done" : "" },
        number(connected, 1),
        h(
          "div",
          null,
          h("h3", null, "Start the hub"),
          connected
            ? h("p", null, "It runs, and this browser is connected to it.")
            : [
                h("p", null, "The hub is the program on this computer that agents talk to. In a terminal:"),
                command(app, "tabhub start"),
              ],
        ),
      ),
      h(
        "li",
        null,
        number(false, 2),
        h(
          "div",
          null,
          h("h3", null, "Connect an agent"),
          h("p", null, "Claude Code, Cursor, VS Code and others: this writes what they need into their settings."),
          command(app, "tabhub setup claude-code --write"),
        ),
      ),
      h(
        "li",
        null,
        number(false, 3),
        h(
          "div",
          null,
          h("h3", null, "Ask it for something"),
          h(
            "p",
            null,
            "“Open example.com and tell me what is on it.” What it does appears here. What needs your consent waits here.",
          ),
        ),
      ),
    ),
  );
}

/** @param {App} app */
function working(app) {
  const calls = [...app.running.values()];
  if (calls.length === 0) return null;
  return section(
    "At work",
    null,
    h(
      "ul",
      { class: "rows" },
      calls
        .slice(0, 6)
        .map((call) =>
          h(
            "li",
            { key: call.callId, class: "call running" },
            dot("live"),
            h("span", { class: "call-what" }, toolTitle(app.state, call.tool)),
            h("span", { class: "call-who" }, agentName(call.client)),
            h("span", { class: "call-time", "data-since": call.at }, duration(Date.now() - call.at)),
          ),
        ),
    ),
  );
}

/** @param {App} app */
function recent(app) {
  const last = (app.state?.activity ?? []).slice(0, 5);
  if (last.length === 0) return null;
  return section(
    "Lately",
    h("a", { href: "#activity" }, "All activity"),
    h(
      "ul",
      { class: "rows" },
      last.map((entry) => row(app, entry)),
    ),
  );
}

/** @type {View} */
export const home = { id: "home", title: "Home", glyph: "home", draw };
