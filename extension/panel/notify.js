/**
 * A question on the desktop, for when no panel is open: who wants what, with “Allow once” and “Deny”. Everything else,
 * and the parameters in full, is in the panel, which a click on the notification opens.
 */

import { textOf } from "../link/rpc.js";

/** @typedef {Record<string, unknown>} Params */

const PREFIX = "approval:";
const PAGE = "panel/panel.html?full#approvals";
const LONGEST = 180;
/** In the order of the buttons. */
const DECISIONS = ["allow_once", "deny"];

/**
 * Listen to its buttons; call this while the worker starts, so that one can wake it.
 * @param {{ answer: (params: Params) => boolean, note: (message: string) => void }} wiring `answer` says whether the hub was reached
 */
export function approvalNotices({ answer, note }) {
  /** Those on their way to the desktop, by their question. @type {Map<string, Promise<unknown>>} */
  const onTheWay = new Map();
  /** @param {Promise<unknown>} work */
  const noted = (work) => void work.catch((error) => note(`A notification failed: ${textOf(error)}`));

  /** @param {string} notice */
  function review(notice) {
    noted(Promise.all([chrome.notifications.clear(notice), openPanel()]));
  }

  chrome.notifications.onButtonClicked.addListener((notice, button) => {
    if (!notice.startsWith(PREFIX)) return;
    const decision = DECISIONS[button];
    const told = answer({ id: notice.slice(PREFIX.length), decision, by: "notification" });
    // The hub is not there: the panel says so, and shows what still waits.
    if (told) noted(chrome.notifications.clear(notice));
    else review(notice);
  });
  chrome.notifications.onClicked.addListener((notice) => {
    if (notice.startsWith(PREFIX)) review(notice);
  });

  return {
    /** An agent wants something. @param {Params} params */
    asked(params) {
      const { id, client, tool, origin, title, notify } = params;
      if (notify !== true || typeof id !== "string") return;
      const where = [title, origin].filter((text) => typeof text === "string" && text).join(", ");
      const coming = chrome.notifications.create(PREFIX + id, {
        type: "basic",
        iconUrl: chrome.runtime.getURL("icons/connected-128.png"),
        title: cut(`${client || "An agent"} wants to use ${tool}`),
        message: cut(where || "Not in a page."),
        contextMessage: "Click to see what exactly",
        buttons: [{ title: "Allow once" }, { title: "Deny" }],
        requireInteraction: true,
        priority: 2,
      });
      onTheWay.set(id, coming);
      noted(coming.finally(() => onTheWay.delete(id)));
    },
    /** It was decided, here or elsewhere, or nobody waits any more. @param {Params} params */
    done({ id }) {
      if (typeof id !== "string") return;
      // One that is not there yet cannot be taken away, and would stay.
      const coming = onTheWay.get(id) ?? Promise.resolve();
      noted(coming.then(() => chrome.notifications.clear(PREFIX + id)));
    },
  };
}

async function openPanel() {
  const windows = await chrome.windows.getAll({ windowTypes: ["normal"] });
  if (windows.length === 0) return void (await chrome.windows.create({ url: PAGE, focused: true }));
  const tab = await chrome.tabs.create({ url: PAGE, active: true });
  await chrome.windows.update(tab.windowId, { focused: true });
}

/** @param {string} text */
function cut(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
