/**
 * The chat: the conversation with the assistant, and the approvals it needs. Without a model it explains how to set one.
 */

import { h } from "../dom.js";
import { ago } from "../format.js";
import { button, command, dot, empty, iconButton, confirmButton } from "../components.js";
import { card } from "./approvals.js";
import { items } from "./steps.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").Conversation} Conversation */
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
  const listing = app.ui["conversations"] === true;
  return [
    head(app, listing),
    listing ? conversationList(app) : h("div", { class: "conversation", key: "conversation" }, body(app, ready)),
    transcript(app),
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
  if (chat.items.length > 0) return [items(app), chatApprovals(app), thinking(app)];
  return ready ? beginning(app) : setup(app);
}

/**
 * @param {App} app
 * @param {boolean} listing
 */
function head(app, listing) {
  const { chat } = app;
  const list = () => {
    app.ui["conversations"] = !listing;
    app.changed();
  };
  const startNew = () => {
    app.ui["conversations"] = false;
    chat.startNew();
    focusComposer();
  };
  const title = listing ? "Conversations" : chat.title || "New conversation";
  return h(
    "div",
    { class: "conversation-head", key: "head" },
    h("h2", null, title),
    chat.conversations.length > 0
      ? button(listing ? "Back" : "All", {
          small: true,
          glyph: listing ? "reset" : "clock",
          onclick: list,
          name: listing ? "Back to the conversation" : "All conversations",
          key: "all",
        })
      : null,
    chat.items.length > 0 || listing
      ? button("New", { small: true, glyph: "plus", onclick: startNew, name: "New conversation", key: "new" })
      : null,
  );
}

/** @param {App} app */
function conversationList(app) {
  const { chat } = app;
  const now = Date.now();
  const open = async (/** @type {string} */ id) => {
    await chat.choose(id);
    app.ui["conversations"] = false;
    app.changed();
    focusComposer();
  };
  return h(
    "ul",
    { class: "rows conversations", key: "conversations" },
    chat.conversations.map(({ id, title, changed, running }) =>
      h(
        "li",
        { key: id, class: id === chat.id ? "current" : "" },
        h(
          "button",
          {
            type: "button",
            class: "conversation-open",
            "aria-current": id === chat.id ? "true" : undefined,
            onclick: () => void open(id),
          },
          h("span", { class: "conversation-title" }, title || "New conversation"),
          running
            ? h("span", { class: "conversation-time" }, dot("live"), "running")
            : h("span", { class: "conversation-time", "data-ago": changed * 1000 }, ago(changed * 1000, now)),
        ),
        running ? null : confirmButton(app, `forget ${id}`, "Delete", "Delete now?", () => void chat.remove(id)),
      ),
    ),
  );
}

/** @param {App} app */
function beginning(app) {
  const useIdea = (/** @type {string} */ idea) => {
    app.ui["message"] = idea;
    app.changed();
    focusComposer();
  };
  return empty(
    "assistant",
    "What can the assistant do for you?",
    h(
      "p",
      null,
      "It works in your tabs with the same tools, permissions and log as every other agent. Approvals appear here.",
    ),
    h(
      "ul",
      { class: "ideas" },
      IDEAS.map((idea) => h("li", null, button(idea, { onclick: () => useIdea(idea) }))),
    ),
  );
}

/** @param {App} app */
function setup(app) {
  const missing = app.state?.assistant?.missing ?? [];
  return h(
    "div",
    { class: "card setup", key: "setup" },
    h("h2", null, "Set a model"),
    h(
      "p",
      { class: "quiet" },
      "The assistant uses a model of your choice, local or remote, with an API in the format of OpenAI or Anthropic. The rest of Tabhub works without one. In a terminal:",
    ),
    missing.includes("agent.baseUrl")
      ? command(app, "tabhub config set agent.baseUrl http://127.0.0.1:11434/v1")
      : null,
    missing.includes("agent.model") ? command(app, "tabhub config set agent.model NAME") : null,
    h(
      "p",
      { class: "quiet" },
      "If it needs an API key, name the environment variable that contains it:",
    ),
    command(app, "tabhub config set agent.key '${MODEL_KEY}'"),
    h("p", { class: "quiet" }, "For an API in Anthropic's format:"),
    command(app, "tabhub config set agent.provider anthropic"),
  );
}

/** Approvals of this conversation. @param {App} app */
function chatApprovals(app) {
  const own = app.waiting.filter((approval) => belongsToChat(app, approval));
  if (own.length === 0) return null;
  return h(
    "div",
    { class: "approvals", key: "approvals", "data-settling": app.settling },
    own.map((approval) => card(app, approval, 3)),
  );
}

/**
 * Whether an approval belongs to the open conversation.
 * @param {App} app
 * @param {import("../types.js").Approval} approval
 */
export function belongsToChat({ chat }, { session, token }) {
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

/** For screen readers: whole sentences instead of pieces. @param {App} app */
function transcript({ chat }) {
  return h(
    "div",
    { class: "unseen", role: "log", "aria-live": "polite", "aria-label": "Messages of the assistant", key: "transcript" },
    chat.announcements.map(({ id, text }) => h("p", { key: `read ${id}` }, text)),
  );
}

/** @param {App} app */
function composer(app) {
  const { chat, state } = app;
  const text = String(app.ui["message"] ?? "");
  const busy = chat.running || chat.sending !== null;
  const send = async () => {
    // The current text: Enter may be pressed before the last letter is drawn.
    const now = String(app.ui["message"] ?? "");
    if (chat.running || chat.sending !== null || now.trim() === "") return;
    app.ui["message"] = app.ui["unsent"] = "";
    const refused = await chat.send(now);
    if (refused === null) return;
    app.ui["unsent"] = refused;
    app.ui["message"] ||= now;
    app.changed();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && chat.running) void chat.stop();
    // During input method composition, Enter belongs to the input method.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void send();
  };
  const { model, steps = 0, tokens = 0 } = state?.assistant ?? { model: null };
  const limits = `up to ${steps} steps and ${SHORT.format(tokens)} tokens per message`;
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
        placeholder: chat.items.length > 0 ? "Reply" : "Describe a task",
        value: text,
        onkeydown: onKey,
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
      button("Permissions", { kind: "link", onclick: () => app.go("tools") }),
    ),
  );
}

/** Focus the message field, once it is drawn. */
function focusComposer() {
  requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("message")?.focus()));
}

/** @type {View} */
export const chat = {
  id: "chat",
  title: "Chat",
  glyph: "assistant",
  follows: (app) => app.ui["conversations"] !== true, // a list starts at its top
  draw,
};
