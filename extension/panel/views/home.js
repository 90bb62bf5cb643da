/**
 * The first view: connections, pending approvals, running and recent calls. Until an agent has connected, it shows the
 * steps to set up.
 */

import { h } from "../dom.js";
import { agentName, counted, duration } from "../format.js";
import { glyph } from "../glyphs.js";
import { command, dot, section } from "../components.js";
import { explanation, nextAttempt } from "../connection_text.js";
import { cards } from "./approvals.js";
import { row, whatOf } from "./activity.js";
import { suggestion } from "./sites.js";
import { stoppedTabs } from "./stopped.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").View} View */
/** @typedef {import("../components.js").Tone} Tone */

/** @param {App} app */
function draw(app) {
  const { state } = app;
  const first = !state || state.sessions.length === 0;
  return [
    connections(app),
    app.waiting.length > 0 ? section("Pending approvals", null, cards(app)) : null,
    stoppedTabs(app),
    first ? steps(app) : null,
    suggestion(app),
    state && !first ? working(app) : null,
    state && !first ? recent(app) : null,
  ];
}

/**
 * The connections from agents over the hub to this browser, each with its state.
 * @param {App} app
 */
function connections(app) {
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
    { class: "connections", "aria-label": "Connections" },
    part("agents", "Agents", agents, known > 0 ? "good" : "quiet", known > 0),
    part("servers", "Hub", connected ? address(link?.link.address) : phaseText(phase), hub, connected),
    part(
      "globe",
      link?.browserName ?? "This browser",
      connected ? browsers : "not connected",
      connected ? "good" : "quiet",
      false,
    ),
    h("li", { class: "connections-note" }, note(app)),
  );
}

/**
 * @param {string} picture
 * @param {string} title
 * @param {string} text
 * @param {Tone} tone
 * @param {boolean} joined whether it is connected to the next part
 */
function part(picture, title, text, tone, joined) {
  return h(
    "li",
    { class: `connection ${tone}${joined ? " joined" : ""}` },
    h("span", { class: "connection-icon" }, glyph(picture, 20)),
    h("span", { class: "connection-title" }, title),
    h("span", { class: "connection-text" }, dot(tone), text),
  );
}

/** @param {string | null | undefined} url */
function address(url) {
  return (url ?? "").replace(/^\w+:\/\//, "").replace(/\/.*$/, "");
}

/** @param {string | undefined} phase */
function phaseText(phase) {
  return phase === "connecting" || phase === undefined
    ? "connecting…"
    : phase === "setup"
      ? "waiting for setup"
      : "not running";
}

/** @param {App} app */
function note({ state, link }) {
  if (!link) return "Waiting for the extension…";
  if (link.link.phase !== "connected") {
    const { retryAt } = link.link;
    const next = retryAt === null ? null : h("span", { "data-retry": retryAt }, nextAttempt(retryAt, Date.now()));
    return [explanation(link.link), next && [" Next attempt ", next, "."]];
  }
  if (!state) return "Reading the hub's state…";
  const debugged = link.debugged
    ? `The debugger is attached to ${counted(link.debugged, "tab")}.`
    : "The debugger is not attached to any tab.";
  return link.lastError ? `${debugged} Last error: ${link.lastError}` : debugged;
}

/** @param {App} app */
function steps(app) {
  const connected = app.link?.link.phase === "connected";
  const number = (/** @type {boolean} */ done, /** @type {number} */ n) =>
    h("span", { class: `step-mark${done ? " done" : ""}` }, done ? glyph("check", 14) : String(n));
  return section(
    "Get started",
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
            ? h("p", null, "It is running, and this browser is connected to it.")
            : [
                h("p", null, "The hub is the program on this computer that agents connect to. In a terminal:"),
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
          h("p", null, "Works with Claude Code, Cursor, VS Code and others. This adds the hub to the client's settings:"),
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
          h("h3", null, "Give it a task"),
          h(
            "p",
            null,
            "“Open example.com and tell me what is on it.” Its calls and the approvals it needs appear here.",
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
    "Running",
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
            h("span", { class: "call-what", dir: "auto" }, whatOf(app, call)),
            h("span", { class: "call-who" }, agentName(call.client, call.token)),
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
    "Recent",
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
