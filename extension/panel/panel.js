/**
 * The panel, beside a page or as a page of its own (`?full`): the frame around the views, and which one is shown.
 */

import { h, show } from "./dom.js";
import { ago, clock, counted, duration } from "./format.js";
import { glyph } from "./glyphs.js";
import { button, dot, iconButton } from "./components.js";
import { Store } from "./store.js";
import { headline, nextAttempt } from "./connection_text.js";
import { activity } from "./views/activity.js";
import { agents } from "./views/agents.js";
import { approvals } from "./views/approvals.js";
import { asksHere, chat } from "./views/chat.js";
import { home } from "./views/home.js";
import { plugins } from "./views/plugins.js";
import { servers } from "./views/servers.js";
import { settings } from "./views/settings.js";
import { tools } from "./views/tools.js";

/** @typedef {import("./types.js").View} View */

const FULL = new URLSearchParams(location.search).has("full");
/** @type {readonly View[]} */
const VIEWS = [home, chat, approvals, agents, activity, tools, plugins, servers, settings];
/** Where tools come from: shown below Tools where there is little room. */
const OF_TOOLS = ["tools", "plugins", "servers"];

/** What the number beside a view counts. @type {Record<string, string>} */
const COUNTED = { approvals: "waiting", plugins: "failed to load" };

/** Time left to decide that is worth a warning. */
const SOON_MS = 20_000;
/** Pixels from the end of a view at which one still counts as being there. */
const AT_END = 40;

const store = new Store(draw);

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The panel has no element ${id}.`);
  return found;
}

const offered = () => VIEWS.filter(({ id }) => id !== "chat" || !store.state || store.state.assistant !== undefined);

function current() {
  const wanted = location.hash.slice(1);
  return offered().find(({ id }) => id === wanted) ?? home;
}

function bar() {
  const { link, state } = store;
  const phase = link?.link.phase;
  const words = state?.paused ? "Paused" : link ? headline(link.link) : "Starting…";
  const tone = state?.paused
    ? "warn"
    : phase === "connected"
      ? "good"
      : phase === "connecting" || !link
        ? "quiet"
        : "bad";
  return [
    h("img", {
      src: `../icons/${phase === "connected" ? "connected" : "disconnected"}-48.png`,
      width: 24,
      height: 24,
      alt: "",
    }),
    h("span", { class: "brand" }, "Tabhub"),
    h("span", { class: `link-state ${tone}`, role: "status" }, dot(tone), words),
    h("span", { class: "room" }),
    state ? pauseButton() : null,
    // Where there is little room, the settings are up here.
    h(
      "a",
      {
        class: "button icon only-narrow",
        href: "#settings",
        title: "Settings",
        "aria-label": "Settings",
        "aria-current": current().id === "settings" ? "page" : undefined,
      },
      glyph("settings"),
    ),
    FULL
      ? null
      : iconButton(
          "Open as a page",
          "expand",
          () => void chrome.tabs.create({ url: "panel/panel.html?full" + location.hash }),
        ),
  ];
}

function pauseButton() {
  const paused = Boolean(store.state?.paused);
  return button(paused ? "Resume" : "Pause", {
    kind: paused ? "primary" : "plain",
    small: true,
    glyph: paused ? "play" : "pause",
    name: paused ? "Resume the agents" : "Pause the agents",
    key: "pause",
    onclick: () => void store.act(paused ? "hub.resume" : "hub.pause", paused ? {} : { mode: "wait" }),
  });
}

function nav() {
  const shown = current().id;
  const waiting = store.waiting.length;
  /** @type {Record<string, number>} */
  const counts = { approvals: waiting, plugins: store.state?.failedPlugins?.length ?? 0 };
  const items = offered().flatMap((view) => {
    const own = entry(view.id, view.title, view.glyph, view.id === shown, counts[view.id] ?? 0);
    const top = !OF_TOOLS.includes(view.id);
    const look = view.id === "settings" ? "top only-wide" : top ? "top" : "sub";
    if (view.id !== "tools") return [h("li", { key: view.id, class: look }, own)];
    const inside = OF_TOOLS.includes(shown);
    own.classList.toggle("inside", inside);
    return [
      h("li", { key: "tools", class: "top" }, own),
      h(
        "li",
        { key: "permissions", class: "sub only-narrow" },
        entry("tools", "Permissions", "tools", shown === "tools", 0),
      ),
    ];
  });
  return h("ul", { class: OF_TOOLS.includes(shown) ? "with-sub" : "" }, items);
}

/**
 * @param {string} id
 * @param {string} title
 * @param {string} picture
 * @param {boolean} active
 * @param {number} count
 */
function entry(id, title, picture, active, count) {
  return h(
    "a",
    { href: `#${id}`, "aria-current": active ? "page" : undefined, onkeydown: step },
    glyph(picture),
    h("span", { class: "label" }, title),
    count > 0 ? h("span", { class: "count", "aria-label": `${count} ${COUNTED[id] ?? ""}` }, count) : null,
  );
}

/** Arrow keys go from view to view. @param {KeyboardEvent} event */
function step(event) {
  const forward = ["ArrowRight", "ArrowDown"].includes(event.key);
  const edge = { Home: 0, End: -1 }[event.key];
  if (!forward && !["ArrowLeft", "ArrowUp"].includes(event.key) && edge === undefined) return;
  const links = [...element("nav").querySelectorAll("a")].filter((link) => link.checkVisibility());
  const here = links.indexOf(/** @type {HTMLAnchorElement} */ (event.currentTarget));
  const next = edge ?? (here + (forward ? 1 : -1)) % links.length;
  links.at(next)?.focus();
  event.preventDefault();
}

function banners() {
  const view = current().id;
  // What is asked on this very view needs no banner.
  const asked = store.waiting.filter((each) => view !== "chat" || !asksHere(store, each)).length;
  const review = () => store.go("approvals");
  return [
    hubBanners(store.state),
    asked > 0 && view !== "approvals" && view !== "home"
      ? banner("waiting", "accent", "approvals", `${counted(asked, "approval")} waiting for you.`, "Review", review)
      : null,
  ];
}

/** @param {import("./types.js").HubState | null} state */
function hubBanners(state) {
  if (!state) return null;
  return [
    state.skipPermissions
      ? banner(
          "skip",
          "bad",
          "alert",
          "Nobody is asked. Every tool that should ask runs at once.",
          "Ask again",
          () => void store.act("config.setSkipPermissions", { skip: false }),
        )
      : null,
    state.paused
      ? banner("paused", "warn", "pause", pausedWords(state.paused), "Resume", () => void store.act("hub.resume"))
      : null,
    (state.problems ?? []).map((problem) =>
      h("div", { class: "banner bad", key: problem }, glyph("alert"), h("p", null, problem)),
    ),
  ];
}

/** @param {NonNullable<import("./types.js").HubState["paused"]>} paused */
function pausedWords({ by, reason, callsWaiting }) {
  const why = reason ? ` (${reason})` : "";
  const held = callsWaiting ? ` ${counted(callsWaiting, "call waits", "calls wait")}.` : "";
  return `Paused by ${by || "you"}${why}. Agents can look, but not act.${held}`;
}

/**
 * @param {string} key
 * @param {string} tone
 * @param {string} picture
 * @param {string} text
 * @param {string} label
 * @param {() => void} onclick
 */
function banner(key, tone, picture, text, label, onclick) {
  return h(
    "div",
    { class: `banner ${tone}`, key },
    glyph(picture),
    h("p", null, text),
    button(label, { onclick, small: true }),
  );
}

function notice() {
  const said = store.notice;
  if (!said) return null;
  return h(
    "div",
    { class: `notice ${said.tone}`, key: String(said.id) },
    glyph(said.tone === "bad" ? "alert" : "check"),
    h("p", null, said.text),
    iconButton("Close", "close", () => store.hush(said.id)),
  );
}

let drawn = "";

function draw() {
  const view = current();
  document.body.dataset["view"] = view.id;
  document.body.classList.toggle("full", FULL);
  document.title = view.id === "home" ? "Tabhub" : `${view.title} · Tabhub`;
  show(element("bar"), bar());
  show(element("nav"), nav());
  const alone =
    view.id === "home" ||
    (view.id === "settings" && store.relay !== null) ||
    (view.id === "approvals" && store.waiting.length > 0);
  const body = store.state || alone ? view.draw(store) : home.draw(store);
  const main = element("main");
  const follows = view.follows?.(store) === true;
  const showing = follows ? `${view.id} following` : view.id;
  const atEnd = drawn !== showing || main.scrollHeight - main.scrollTop - main.clientHeight < AT_END;
  show(main, h("div", { class: "view", key: view.id }, banners(), h("h1", { key: "title" }, view.title), body));
  show(element("notice"), notice());
  const spoken = element("spoken");
  if (spoken.textContent !== store.spoken) spoken.textContent = store.spoken;
  if (follows && atEnd) main.scrollTop = main.scrollHeight;
  else if (drawn !== showing) main.scrollTop = 0;
  drawn = showing;
  tick();
}

/** What changes by itself: how long ago, how long yet. */
function tick() {
  const now = Date.now();
  for (const [name, words] of /** @type {const} */ ([
    ["until", (/** @type {number} */ at) => clock(at - now)],
    ["ago", (/** @type {number} */ at) => ago(at, now)],
    ["since", (/** @type {number} */ at) => duration(now - at)],
    ["retry", (/** @type {number} */ at) => nextAttempt(at, now)],
  ])) {
    for (const each of document.querySelectorAll(`[data-${name}]`)) {
      const text = words(Number(each.getAttribute(`data-${name}`)));
      if (each.textContent !== text) each.textContent = text;
    }
  }
  for (const each of document.querySelectorAll(".countdown [data-until]")) {
    each.parentElement?.classList.toggle("soon", Number(each.getAttribute("data-until")) - now < SOON_MS);
  }
}

window.addEventListener("hashchange", () => {
  store.ui["armed"] = null;
  draw();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) tick();
});
element("skip").addEventListener("click", () => element("main").focus());
setInterval(tick, 500);
draw();
store.open();
