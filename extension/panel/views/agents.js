/**
 * The agents' sessions: which tabs each one holds, and ways to end a session or release a tab.
 */

import { h } from "../dom.js";
import { agentName, counted, duration, host, span } from "../format.js";
import { glyph } from "../glyphs.js";
import { badge, button, command, dot, empty, confirmButton } from "../components.js";
import { whatOf } from "./activity.js";
import { stoppedTabs } from "./stopped.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").SessionFacts} SessionFacts */
/** @typedef {import("../types.js").View} View */

/** @type {Record<string, string>} */
const KINDS = { mcp: "MCP", bridge: "MCP on stdio", rest: "script", cli: "command line", relay: "remote", stateless: "MCP" };

/** @param {App} app */
function draw(app) {
  const sessions = app.state?.sessions ?? [];
  if (sessions.length === 0) {
    return empty(
      "agents",
      "No agents connected",
      h("p", null, "An agent is a program that uses your tabs for you, such as Claude Code or Cursor. Connect one:"),
      command(app, "tabhub setup claude-code --write"),
    );
  }
  const ordered = sessions.toSorted(
    (one, other) => other.callsInFlight - one.callsInFlight || one.idleSeconds - other.idleSeconds,
  );
  return [
    stoppedTabs(app),
    h("p", { class: "lead" }, "Each agent works in its own tabs. No other agent can act in a tab that an agent holds."),
    h(
      "div",
      { class: "cards" },
      ordered.map((session) => card(app, session)),
    ),
  ];
}

/**
 * @param {App} app
 * @param {SessionFacts} session
 */
function card(app, session) {
  const { id, client, kind, token, leases, callsInFlight, connected, idleSeconds } = session;
  const name = session.agent ?? agentName(client, token);
  const calls = [...app.running.values()].filter((call) => belongsTo(call.session, id));
  const busy = callsInFlight > 0 || calls.length > 0;
  const state = busy ? "working" : idleText(connected, idleSeconds);
  return h(
    "article",
    { class: "card", key: id, "aria-label": client, "data-session": id },
    h(
      "div",
      { class: "card-head" },
      h(
        "span",
        { class: `avatar${session.color ? " painted" : ""}`, "aria-hidden": "true", paint: session.color },
        initial(name.replace(/^The /, "")),
      ),
      h(
        "div",
        { class: "card-title" },
        h("h2", { title: `${client}, since ${since(session.openSeconds)}`, dir: "auto" }, name),
        h(
          "p",
          { class: "quiet" },
          dot(busy ? "live" : connected ? "good" : "quiet"),
          state,
          " · ",
          KINDS[kind] ?? kind,
          kind === "rest" ? sessionName(id, client) : null,
        ),
      ),
      confirmButton(
        app,
        `end ${id}`,
        "End",
        "End now?",
        () => void app.act("sessions.end", { id }, `The session of ${client} was ended. Its tabs are closing.`),
        name,
      ),
    ),
    leftover(app, session, name),
    calls.map((call) =>
      h(
        "p",
        { key: call.callId, class: "call running" },
        h("span", { class: "call-what", dir: "auto" }, whatOf(app, call)),
        h("span", { class: "call-time", "data-since": call.at }, duration(Date.now() - call.at)),
      ),
    ),
    leases.length === 0
      ? h("p", { class: "quiet none" }, "Holds no tabs.")
      : h(
          "ul",
          { class: "tabs", "aria-label": `Tabs of ${client}` },
          leases.map((lease) => heldTab(app, session, lease)),
        ),
    calls.length === 0 && callsInFlight > 0
      ? h("p", { class: "quiet" }, `${counted(callsInFlight, "call")} running.`)
      : null,
  );
}

/**
 * An agent that is gone leaves its tabs behind until its session ends: they can be closed at once.
 * @param {App} app
 * @param {SessionFacts} session
 * @param {string} name
 */
function leftover(app, { id, gone, ownTabs = [] }, name) {
  if (!gone || ownTabs.length === 0) return null;
  const tabs = counted(ownTabs.length, "tab");
  return h(
    "p",
    { class: "leftover" },
    h("span", null, `${name} has disconnected and left ${tabs} open.`),
    button(`Close ${tabs}`, {
      small: true,
      name: `Close ${tabs} that ${name} left open`,
      onclick: () => void app.act("sessions.end", { id }, `The tabs of ${name} are closing.`),
    }),
  );
}

/**
 * @param {App} app
 * @param {SessionFacts} session
 * @param {SessionFacts["leases"][number]} lease
 */
function heldTab(app, session, { tabId, title, url, heldSeconds }) {
  return h(
    "li",
    { key: tabId },
    glyph("tab", 14),
    h(
      "span",
      { class: "tab" },
      h("span", { class: "tab-title", dir: "auto" }, title || "Untitled"),
      h("span", { class: "quiet" }, `${host(url) || "no page"} · held for ${span(heldSeconds)}`),
    ),
    tabId === session.tabId ? badge("current", "accent") : null,
    button("Release", {
      small: true,
      name: `Release ${title || `tab ${tabId}`}, held by ${agentName(session.client, session.token)}`,
      onclick: () => void app.act("sessions.release", { tabId }, "The tab was released."),
    }),
  );
}

/**
 * The name that a script gave its session, unless it is the client's name.
 * @param {string} id
 * @param {string} client
 */
function sessionName(id, client) {
  const name = id.replace(/^rest:/, "");
  const plain = (/** @type {string} */ text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  return plain(name) === plain(client) ? null : ` ${name}`;
}

/**
 * @param {boolean} connected
 * @param {number} seconds since its last call
 */
function idleText(connected, seconds) {
  if (connected) return seconds < 10 ? "idle" : `idle for ${span(seconds)}`;
  return seconds < 60 ? "seen just now" : `last seen ${span(seconds)} ago`;
}

/**
 * Whether a call belongs to a session; calls have the beginning of its id.
 * @param {string | undefined} short
 * @param {string} id
 */
function belongsTo(short, id) {
  return short === id || (short?.endsWith("…") === true && id.startsWith(short.slice(0, -1)));
}

/**
 * The time of day at which a session began, which tells several of one agent apart.
 * @param {number} seconds
 */
function since(seconds) {
  const at = new Date(Date.now() - seconds * 1000);
  const today = at.toDateString() === new Date().toDateString();
  const time = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  return today ? time : `${at.toLocaleDateString(undefined, { month: "short", day: "numeric" })}, ${time}`;
}

/** @param {string} name */
function initial(name) {
  return (name.trim()[0] ?? "?").toUpperCase();
}

/** @type {View} */
export const agents = { id: "agents", title: "Agents", glyph: "agents", draw };
