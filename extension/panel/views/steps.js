/**
 * The items of a conversation in order: messages of the person and the assistant, tool calls with parameters and results,
 * and how each run ended.
 */

import { h, lazy } from "../dom.js";
import { counted, duration, toolTitle } from "../format.js";
import { glyph } from "../glyphs.js";
import { markdown } from "../markdown.js";
import { button, dot, iconButton } from "../components.js";
import { values, visible } from "./values.js";

/** @typedef {import("../types.js").App} App */
/** @typedef {import("../types.js").ChatItem} ChatItem */
/** @typedef {import("../types.js").End} End */
/** @typedef {import("../types.js").Step} Step */

const MOST = 150;
/** @type {Record<Step["state"], string>} */
const STATES = { running: "running", done: "done", failed: "failed", denied: "not allowed", stopped: "stopped" };
/** @type {Record<Step["state"], string>} */
const MARKS = { running: "", done: "check", failed: "alert", denied: "denied", stopped: "stop" };

/**
 * The newest items of a conversation; earlier ones are shown on request.
 * @param {App} app
 */
export function items(app) {
  const { chat } = app;
  const from = app.ui["whole"] === chat.id ? 0 : Math.max(0, chat.items.length - MOST);
  const all = () => {
    app.ui["whole"] = chat.id;
    app.changed();
  };
  const title = (/** @type {string} */ name) => toolTitle(app.state, name);
  const last = chat.items.at(-1);
  return [
    chat.earlier > 0
      ? h("p", { class: "quiet", key: "cut" }, `${counted(chat.earlier, "earlier message")} not shown.`)
      : null,
    from > 0 ? button(`Show ${from} earlier`, { small: true, onclick: all, key: "before" }) : null,
    chat.items.slice(from).map((item) => one(app, item, title, item === last)),
  ];
}

/**
 * @param {App} app
 * @param {ChatItem} item
 * @param {(name: string) => string} title
 * @param {boolean} last
 */
function one(app, item, title, last) {
  const key = `item ${item.id}`;
  if (item.kind === "person")
    return lazy("div", { class: "message person", key }, "", () => [
      h("h3", { class: "unseen" }, "You"),
      h("p", null, item.text),
    ]);
  if (item.kind === "model") {
    const stamp = `${item.text.length} ${item.done}`;
    return lazy("div", { class: "message model", key }, stamp, () => [
      h("h3", { class: "unseen" }, "Assistant"),
      markdown(item.text),
    ]);
  }
  if (item.kind === "end") return end(app, item, key, last);
  const name = title(item.name);
  return lazy("details", { class: `step ${item.state}`, key, "data-step": item.name }, `${item.state} ${name}`, () =>
    step(item, name),
  );
}

/**
 * @param {Step} item
 * @param {string} title
 */
function step({ name, given, problem, state, result, seconds, at }, title) {
  return [
    h(
      "summary",
      null,
      state === "running" ? dot("live") : glyph(MARKS[state], 14),
      h("span", { class: "step-title" }, title),
      state === "done" || state === "running" ? null : h("span", { class: "step-state" }, STATES[state]),
      h("span", { class: "unseen" }, state === "done" || state === "running" ? `, ${STATES[state]}` : ""),
      state === "running"
        ? h("span", { class: "step-time", "data-since": at }, duration(Date.now() - at))
        : h("span", { class: "step-time" }, seconds === null ? "" : duration(seconds * 1000)),
      glyph("chevron", 12),
    ),
    h(
      "div",
      { class: "step-more" },
      h("p", { class: "step-name" }, h("code", null, name)),
      problem ? h("p", { class: "problem" }, visible(problem)) : null,
      h("h4", null, "Parameters"),
      values(given, "No parameters."),
      state === "running" ? null : h("h4", null, "Result"),
      state === "running"
        ? null
        : h("pre", { tabindex: "0", role: "group", "aria-label": `Result of ${title}` }, visible(result) || "Empty."),
    ),
  ];
}

/**
 * @param {App} app
 * @param {End} item
 * @param {string} key
 * @param {boolean} last whether it is the last item
 */
function end(app, { why, explanation, steps, tokens }, key, last) {
  const spent = [steps > 1 ? counted(steps, "step") : "", tokens > 0 ? `${tokens.toLocaleString("en")} tokens` : ""];
  const about = spent.filter(Boolean).join(" · ");
  if (why === "done") return finished(app, about, key);
  const message = app.chat.items.findLast((item) => item.kind === "person");
  const text = why === "failed" && message?.kind === "person" ? message.text : "Continue";
  return h(
    "div",
    { class: `ended box ${why}`, key },
    glyph(why === "failed" ? "alert" : why === "stopped" ? "stop" : "clock"),
    h("div", null, markdown(explanation), about ? h("p", { class: "quiet" }, about) : null),
    last && !app.chat.running
      ? button(why === "failed" ? "Try again" : "Continue", { small: true, onclick: () => void app.chat.send(text) })
      : null,
  );
}

/**
 * @param {App} app
 * @param {string} about
 * @param {string} key
 */
function finished(app, about, key) {
  const at = app.chat.items.findIndex((item) => `item ${item.id}` === key);
  const answer = app.chat.items.slice(0, at).findLast((item) => item.kind === "model");
  const copy = async () => {
    await navigator.clipboard.writeText(answer?.kind === "model" ? answer.text : "");
    app.say("Copied.");
  };
  return h(
    "p",
    { class: "ended quiet", key },
    about,
    answer ? iconButton("Copy the answer", "copy", () => void copy()) : null,
  );
}
