/**
 * The chat: what a person asks the assistant, what it says and does, and what it may not do without them. Where no model
 * is set it says how to set one.
 */

import { h } from "../dom.js";
import { ago } from "../format.js";
import { button, command, dot, empty, iconButton, sureButton } from "../components.js";
import { card } from "./approvals.js";
import { items } from "./steps.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").Talk} Talk */
/** @typedef {import("../types.js").View} View */

const LONGEST = 20_000;
const SHORT = new Intl.NumberFormat("en", { notation: "compact" });
const IDEAS = [
  "What is on the page I am looking at?",
  "Sort my open tabs by topic.",
  "Find the opening hours of the nearest library.",
];

/** @param {App} app */
function draw(app) {
  const { chat, state } = app;
  const ready = (state?.assistant?.missing ?? []).length === 0;
  const listing = app.ui["talks"] === true;
  return [
    head(app, listing),
    listing ? talks(app) : h("div", { class: "talk", key: "talk" }, body(app, ready)),
    heardOnly(app),
    !listing && ready ? composer(app) : null,
    !listing && !ready && chat.items.length > 0 ? setup(app) : null,
  ];
}

/**
 * @param {App} app
 * @param {boolean} ready
 */
function body(app, ready) {
  const { chat } = app;
  if (chat.items.length > 0) return [items(app), questions(app), thinking(app)];
  return ready ? beginning(app) : setup(app);
}

/**
 * @param {App} app
 * @param {boolean} listing
 */
function head(app, listing) {
  const { chat } = app;
  const list = () => {
    app.ui["talks"] = !listing;
    app.changed();
  };
  const fresh = () => {
    app.ui["talks"] = false;
    chat.fresh();
    focusComposer();
  };
  const title = listing ? "Conversations" : chat.title || "New conversation";
  return h(
    "div",
    { class: "talk-head", key: "head" },
    h("h2", null, title),
    chat.talks.length > 0
      ? button(listing ? "Back" : "All", {
          small: true,
          glyph: listing ? "reset" : "clock",
          onclick: list,
          name: listing ? "Back to the conversation" : "All conversations",
          key: "all",
        })
      : null,
    chat.items.length > 0 || listing
      ? button("New", { small: true, glyph: "plus", onclick: fresh, name: "New conversation", key: "new" })
      : null,
  );
}

/** @param {App} app */
function talks(app) {
  const { chat } = app;
  const now = Date.now();
  const open = async (/** @type {string} */ id) => {
    await chat.choose(id);
    app.ui["talks"] = false;
    app.changed();
    focusComposer();
  };
  return h(
    "ul",
    { class: "rows talks", key: "talks" },
    chat.talks.map(({ id, title, changed, running }) =>
      h(
        "li",
        { key: id, class: id === chat.id ? "current" : "" },
        h(
          "button",
          {
            type: "button",
            class: "talk-open",
            "aria-current": id === chat.id ? "true" : undefined,
            onclick: () => void open(id),
          },
          h("span", { class: "talk-title" }, title || "New conversation"),
          running
            ? h("span", { class: "talk-when" }, dot("live"), "at work")
            : h("span", { class: "talk-when", "data-ago": changed * 1000 }, ago(changed * 1000, now)),
        ),
        running ? null : sureButton(app, `forget ${id}`, "Delete", "Delete it now?", () => void chat.remove(id)),
      ),
    ),
  );
}

/** @param {App} app */
function beginning(app) {
  const take = (/** @type {string} */ idea) => {
    app.ui["message"] = idea;
    app.changed();
    focusComposer();
  };
  return empty(
    "assistant",
    "What should be done?",
    h(
      "p",
      null,
      "The assistant works in your tabs with the same tools, permissions and log as every other agent. What needs your consent is asked here.",
    ),
    h(
      "ul",
      { class: "ideas" },
      IDEAS.map((idea) => h("li", null, button(idea, { onclick: () => take(idea) }))),
    ),
  );
}

/** @param {App} app */
function setup(app) {
  const missing = app.state?.assistant?.missing ?? [];
  return h(
    "div",
    { class: "card setup", key: "setup" },
    h("h2", null, "Give it a model"),
    h(
      "p",
      { class: "quiet" },
      "The assistant thinks with a model of your choice: on this computer, or anyone's that speaks the protocol of OpenAI or Anthropic. Nothing else in Tabhub needs one. In a terminal:",
    ),
    missing.includes("agent.baseUrl")
      ? command(app, "tabhub config set agent.baseUrl http://127.0.0.1:11434/v1")
      : null,
    missing.includes("agent.model") ? command(app, "tabhub config set agent.model NAME") : null,
    h(
      "p",
      { class: "quiet" },
      "If it wants a key, name the variable that holds it, and start the hub where it is set:",
    ),
    command(app, "tabhub config set agent.key '${MODEL_KEY}'"),
    h("p", { class: "quiet" }, "For an API in Anthropic's form:"),
    command(app, "tabhub config set agent.provider anthropic"),
  );
}

/** What it wants to do, and may not without the person. @param {App} app */
function questions(app) {
  const own = app.waiting.filter((approval) => asksHere(app, approval));
  if (own.length === 0) return null;
  return h(
    "div",
    { class: "approvals", key: "questions", "data-settling": app.settling },
    own.map((approval) => card(app, approval, 3)),
  );
}

/**
 * Whether a question is the open conversation's.
 * @param {App} app
 * @param {import("../types.js").Approval} approval
 */
export function asksHere({ chat }, { session, token }) {
  return chat.running && token === "tabhub-panel" && session !== undefined && session === chat.session;
}

/** @param {App} app */
function thinking({ chat, waiting }) {
  const last = chat.items.at(-1);
  const busy = last?.kind === "step" && last.state === "running";
  const speaks = last?.kind === "model" && !last.done;
  if (!chat.running || busy || speaks || waiting.some((each) => each.session === chat.session)) return null;
  return h("p", { class: "thinking quiet", key: "thinking" }, dot("live"), "Thinking…");
}

/** For ears: whole sentences, and not every piece of one. @param {App} app */
function heardOnly({ chat }) {
  return h(
    "div",
    { class: "unseen", role: "log", "aria-live": "polite", "aria-label": "What the assistant says", key: "heard" },
    chat.read.map(({ id, text }) => h("p", { key: `read ${id}` }, text)),
  );
}

/** @param {App} app */
function composer(app) {
  const { chat, state } = app;
  const text = String(app.ui["message"] ?? "");
  const busy = chat.running || chat.sending !== null;
  const send = async () => {
    // What stands there now: a key may come before the last letter was drawn.
    const now = String(app.ui["message"] ?? "");
    if (chat.running || chat.sending !== null || now.trim() === "") return;
    app.ui["message"] = app.ui["unsent"] = "";
    const refused = await chat.send(now);
    if (refused === null) return;
    app.ui["unsent"] = refused;
    app.ui["message"] ||= now;
    app.changed();
  };
  const typed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && chat.running) void chat.stop();
    // While a word is being put together by an input method, Enter belongs to that.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void send();
  };
  const { model, steps = 0, tokens = 0 } = state?.assistant ?? { model: null };
  const limits = `at most ${steps} steps and ${SHORT.format(tokens)} tokens a message`;
  const unsent = String(app.ui["unsent"] ?? "");
  return h(
    "form",
    {
      class: "composer",
      key: "composer",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        void send();
      },
    },
    unsent ? h("p", { class: "problem", role: "alert", id: "unsent" }, unsent) : null,
    h(
      "div",
      { class: "composer-field" },
      h("textarea", {
        id: "message",
        rows: 1,
        maxlength: String(LONGEST),
        "aria-label": "Message to the assistant",
        "aria-describedby": unsent ? "unsent composer-about" : "composer-about",
        placeholder: chat.items.length > 0 ? "Say more" : "Ask for something",
        value: text,
        onkeydown: typed,
        oninput: (/** @type {Event} */ event) => {
          app.ui["message"] = /** @type {HTMLTextAreaElement} */ (event.target).value;
          app.changed();
        },
      }),
      chat.running
        ? button("Stop", {
            kind: "danger",
            glyph: "stop",
            name: "Stop the assistant",
            onclick: () => void chat.stop(),
            key: "stop",
          })
        : iconButton("Send", "send", () => void send(), { disabled: text.trim() === "" || busy, key: "send" }),
    ),
    h(
      "p",
      { class: "composer-about quiet", id: "composer-about" },
      `${model ?? ""} · ${limits} · `,
      button("What it may do", { kind: "link", onclick: () => app.go("tools") }),
    ),
  );
}

/** Put the cursor where one writes, once that is there. */
function focusComposer() {
  requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("message")?.focus()));
}

/** @type {View} */
export const chat = {
  id: "chat",
  title: "Chat",
  glyph: "assistant",
  follows: (app) => app.ui["talks"] !== true, // a list is read from its top
  draw,
};
