/**
 * Approvals as desktop notifications while no panel is open: who wants to use which tool, with “Allow once” and “Deny”.
 * A click on the notification opens the panel, which shows everything.
 */

import { textOf } from "../link/rpc.js";
import { agentName } from "./format.js";

/** @typedef {Record<string, unknown>} Params */

const PREFIX = "approval:";
const PAGE = "panel/panel.html?full#approvals";
const LONGEST = 180;
/** In the order of the buttons. */
const DECISIONS = ["allow_once", "deny"];

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
    logFailure(Promise.all([chrome.notifications.clear(notice), openPanel()]));
  }

  chrome.notifications.onButtonClicked.addListener((notice, button) => {
    if (!notice.startsWith(PREFIX)) return;
    const decision = DECISIONS[button];
    const sent = answer({ id: notice.slice(PREFIX.length), decision, by: "notification" });
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
      const { id, client, token, tool, origin, title, notify } = params;
      if (notify !== true || typeof id !== "string") return;
      const where = [title, origin].filter((text) => typeof text === "string" && text).join(", ");
      const created = chrome.notifications.create(PREFIX + id, {
        type: "basic",
        iconUrl: chrome.runtime.getURL("icons/connected-128.png"),
        title: cut(`${agentName(optional(client), optional(token))} wants to use ${tool}`),
        message: cut(where || "Not in a page"),
        contextMessage: "Click for details",
        buttons: [{ title: "Allow once" }, { title: "Deny" }],
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
      logFailure(created.then(() => chrome.notifications.clear(PREFIX + id)));
    },
  };
}

async function openPanel() {
  const windows = await chrome.windows.getAll({ windowTypes: ["normal"] });
  if (windows.length === 0) return void (await chrome.windows.create({ url: PAGE, focused: true }));
  const tab = await chrome.tabs.create({ url: PAGE, active: true });
  await chrome.windows.update(tab.windowId, { focused: true });
}

/** @param {unknown} value */
function optional(value) {
  return typeof value === "string" ? value : undefined;
}

/** @param {string} text */
function cut(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
