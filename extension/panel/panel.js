/**
 * The panel, in the side panel or in its own tab (`?full`): the frame around the views, and which one is shown.
 */

import { h, show } from "./dom.js";
import { ago, clock, counted, duration } from "./format.js";
import { glyph } from "./glyphs.js";
import { button, dot, iconButton } from "./components.js";
import { watchPage } from "./current_page.js";
import { Store } from "./store.js";
import { headline, nextAttempt } from "./connection_text.js";
import { activity } from "./views/activity.js";
import { agents } from "./views/agents.js";
import { approvals } from "./views/approvals.js";
import { belongsToChat, chat } from "./views/chat.js";
import { home } from "./views/home.js";
import { plugins } from "./views/plugins.js";
import { servers } from "./views/servers.js";
import { settings } from "./views/settings.js";
import { sites } from "./views/sites.js";
import { tools } from "./views/tools.js";

/** @typedef {import("./types.js").View} View */

const FULL = new URLSearchParams(location.search).has("full");
/** @type {readonly View[]} */
const VIEWS = [home, chat, approvals, agents, activity, tools, sites, plugins, servers, settings];
/** Views about sources of tools: shown below Tools in a narrow panel. */
const TOOL_VIEWS = ["tools", "sites", "plugins", "servers"];

/** What the number next to a view counts. @type {Record<string, string>} */
const COUNT_LABELS = { approvals: "waiting", plugins: "failed to load" };

/** Remaining time to decide that is highlighted. */
const SOON_MS = 20_000;
/** Distance in pixels from the end of a view that still counts as its end. */
const AT_END = 40;

const store = new Store(draw);

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The panel has no element ${id}.`);
  return found;
}

const availableViews = () => VIEWS.filter(({ id }) => id !== "chat" || !store.state || store.state.assistant !== undefined);

function current() {
  const wanted = location.hash.slice(1);
  return availableViews().find(({ id }) => id === wanted) ?? home;
}

function bar() {
  const { link, state } = store;
  const phase = link?.link.phase;
  const text = state?.paused ? "Paused" : link ? headline(link.link) : "Starting…";
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
    h("span", { class: `link-state ${tone}`, role: "status" }, dot(tone), text),
    h("span", { class: "room" }),
    state ? pauseButton() : null,
    // In a narrow panel the settings are in this bar.
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
          "Open in a tab",
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
    name: paused ? "Resume agents" : "Pause agents",
    key: "pause",
    onclick: () => void store.act(paused ? "hub.resume" : "hub.pause", paused ? {} : { mode: "wait" }),
  });
}

function nav() {
  const shown = current().id;
  const waiting = store.waiting.length;
  /** @type {Record<string, number>} */
  const counts = { approvals: waiting, plugins: store.state?.failedPlugins?.length ?? 0 };
  const items = availableViews().flatMap((view) => {
    const own = entry(view.id, view.title, view.glyph, view.id === shown, counts[view.id] ?? 0);
    const top = !TOOL_VIEWS.includes(view.id);
    const look = view.id === "settings" ? "top only-wide" : top ? "top" : "sub";
    if (view.id !== "tools") return [h("li", { key: view.id, class: look }, own)];
    const inside = TOOL_VIEWS.includes(shown);
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
  return h("ul", { class: TOOL_VIEWS.includes(shown) ? "with-sub" : "" }, items);
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
    count > 0 ? h("span", { class: "count", "aria-label": `${count} ${COUNT_LABELS[id] ?? ""}` }, count) : null,
  );
}

/** Arrow keys move between views. @param {KeyboardEvent} event */
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
  // Approvals that this view shows need no banner.
  const waiting = store.waiting.filter((each) => view !== "chat" || !belongsToChat(store, each)).length;
  const review = () => store.go("approvals");
  return [
    hubBanners(store.state),
    waiting > 0 && view !== "approvals" && view !== "home"
      ? banner("waiting", "accent", "approvals", `${counted(waiting, "approval")} pending.`, "Review", review)
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
          "Approvals are skipped. Tools that are set to Ask run at once.",
          "Turn on approvals",
          () => void store.act("config.setSkipPermissions", { skip: false }),
        )
      : null,
    state.paused
      ? banner("paused", "warn", "pause", pausedText(state.paused), "Resume", () => void store.act("hub.resume"))
      : null,
    (state.problems ?? []).map((problem) =>
      h("div", { class: "banner bad", key: problem }, glyph("alert"), h("p", null, problem)),
    ),
    (state.notices ?? []).map((notice) =>
      h("div", { class: "banner warn", key: notice }, glyph("alert"), h("p", null, notice)),
    ),
  ];
}

/** @param {NonNullable<import("./types.js").HubState["paused"]>} paused */
function pausedText({ by, reason, callsWaiting }) {
  const why = reason ? ` (${reason})` : "";
  const waiting = callsWaiting ? ` ${counted(callsWaiting, "call")} waiting.` : "";
  return `Paused by ${by || "you"}${why}. Agents can read, but not act.${waiting}`;
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
  const shown = store.notice;
  if (!shown) return null;
  return h(
    "div",
    { class: `notice ${shown.tone}`, key: String(shown.id) },
    glyph(shown.tone === "bad" ? "alert" : "check"),
    h("p", null, shown.text),
    iconButton("Close", "close", () => store.closeNotice(shown.id)),
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
  const worksWithoutHub =
    view.id === "home" ||
    (view.id === "settings" && store.relay !== null) ||
    (view.id === "approvals" && store.waiting.length > 0);
  const body = store.state || worksWithoutHub ? view.draw(store) : home.draw(store);
  const main = element("main");
  const follows = view.follows?.(store) === true;
  const showing = follows ? `${view.id} following` : view.id;
  const atEnd = drawn !== showing || main.scrollHeight - main.scrollTop - main.clientHeight < AT_END;
  show(main, h("div", { class: "view", key: view.id }, banners(), h("h1", { class: "unseen", key: "title" }, view.title), body));
  show(element("notice"), notice());
  const announcement = element("announcement");
  if (announcement.textContent !== store.announcement) announcement.textContent = store.announcement;
  if (follows && atEnd) main.scrollTop = main.scrollHeight;
  else if (drawn !== showing) main.scrollTop = 0;
  drawn = showing;
  tick();
}

/** Update the texts that change with time: ages, countdowns, durations. */
function tick() {
  const now = Date.now();
  for (const [name, format] of /** @type {const} */ ([
    ["until", (/** @type {number} */ at) => clock(at - now)],
    ["ago", (/** @type {number} */ at) => ago(at, now)],
    ["since", (/** @type {number} */ at) => duration(now - at)],
    ["retry", (/** @type {number} */ at) => nextAttempt(at, now)],
  ])) {
    for (const each of document.querySelectorAll(`[data-${name}]`)) {
      const text = format(Number(each.getAttribute(`data-${name}`)));
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
watchPage((url) => {
  store.page = url;
  store.changed();
});
store.open();
