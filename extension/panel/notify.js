/**
 * Approvals as desktop notifications while no panel is open: who wants to do what, and where. “Review” opens the panel,
 * which shows everything; only what is harmless can be allowed right there.
 */

import { textOf } from "../link/rpc.js";
import { host, sentenceOf } from "./format.js";
import { openPanel } from "./open_panel.js";

/** @typedef {Record<string, unknown>} Params */

const PREFIX = "approval:";
const LONGEST = 180;
const REVIEW = "Review";
/** What each button decides; the others review. @type {Readonly<Record<string, string>>} */
const DECISIONS = { "Allow once": "allow_once", Deny: "deny" };
/** @param {boolean} harmless */
const buttonsOf = (harmless) => (harmless ? ["Allow once", REVIEW] : [REVIEW, "Deny"]);
/** In the id of the notification of something harmless, which outlasts the worker. */
const HARMLESS = "harmless:";

/**
 * Listen for clicks; call this while the worker starts, so that a click can wake it.
 * @param {{ answer: (params: Params) => boolean, note: (message: string) => void }} wiring `answer` returns whether the hub was reached
 */
export function approvalNotices({ answer, note }) {
  /** Notifications that are being created, by approval. @type {Map<string, Promise<unknown>>} */
  const creating = new Map();
  /** @param {Promise<unknown>} work */
  const logFailure = (work) => void work.catch((error) => note(`A notification failed: ${textOf(error)}`));

  /** @param {string} notice */
  function review(notice) {
    logFailure(Promise.all([openPanel("approvals"), chrome.notifications.clear(notice)]));
  }

  chrome.notifications.onButtonClicked.addListener((notice, button) => {
    if (!notice.startsWith(PREFIX)) return;
    const rest = notice.slice(PREFIX.length);
    const harmless = rest.startsWith(HARMLESS);
    const decision = DECISIONS[buttonsOf(harmless)[button] ?? REVIEW];
    if (!decision) return review(notice);
    const sent = answer({ id: harmless ? rest.slice(HARMLESS.length) : rest, decision, by: "notification" });
    // The hub is not connected: the panel shows that, and what is pending.
    if (sent) logFailure(chrome.notifications.clear(notice));
    else review(notice);
  });
  chrome.notifications.onClicked.addListener((notice) => {
    if (notice.startsWith(PREFIX)) review(notice);
  });

  return {
    /** @param {Params} params */
    show(params) {
      const { id, client, token, tool, origin, title, notify, sentence, harmless, steps } = params;
      if (notify !== true || typeof id !== "string") return;
      const site = typeof origin === "string" ? host(origin) : "";
      const where = [title, site].filter((text) => typeof text === "string" && text).join(" · ");
      const listed = Array.isArray(steps) ? steps.map((step, at) => `${at + 1}. ${step}`) : [];
      const said = { sentence: optional(sentence), client: String(client ?? ""), token: optional(token), tool: String(tool) };
      const created = chrome.notifications.create(noticeOf(id, harmless === true), {
        type: "basic",
        iconUrl: chrome.runtime.getURL("icons/connected-128.png"),
        title: cut(sentenceOf(/** @type {import("./types.js").Approval} */ (said))),
        message: cut([where, ...listed].filter(Boolean).join("\n") || "Not in a page"),
        contextMessage: "Tabhub",
        buttons: buttonsOf(harmless === true).map((label) => ({ title: label })),
        requireInteraction: true,
        priority: 2,
      });
      creating.set(id, created);
      logFailure(created.finally(() => creating.delete(id)));
    },
    /** Remove the notification of an approval that is no longer pending. @param {Params} params */
    remove({ id }) {
      if (typeof id !== "string") return;
      // One that is still being created cannot be removed yet, and would stay.
      const created = creating.get(id) ?? Promise.resolve();
      logFailure(
        created.then(() => Promise.all([true, false].map((harmless) => chrome.notifications.clear(noticeOf(id, harmless))))),
      );
    },
  };
}

/**
 * @param {string} id of the approval
 * @param {boolean} harmless
 */
function noticeOf(id, harmless) {
  return `${PREFIX}${harmless ? HARMLESS : ""}${id}`;
}

/** @param {unknown} value */
function optional(value) {
  return typeof value === "string" ? value : undefined;
}

/** @param {string} text */
function cut(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
