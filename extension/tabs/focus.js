/**
 * Which window has the keyboard, and how it gets it back when another one took it for no wish of the person's.
 *
 * A browser brings the window in which a page opens something to the front, and the window of a page that gets a press
 * of the mouse, also when an agent is behind it and the person works elsewhere. It does not always tell that another
 * program has the focus, so it is asked.
 */

/** @typedef {{ method: string, params: Record<string, unknown> }} Command */

const { WINDOW_ID_NONE } = chrome.windows;
/** How long a window may take to come to the front after a page has opened something in it. */
const RISES_MS = 1_000;
/** The same after a press; short, because the person may as well turn to that window. */
const PRESSED_MS = 300;
const LOOK_MS = 20;
/** How long what was seen holds: that another program got the focus is not always told. */
const FRESH_MS = 250;
/** How long after an agent's input what a page opens is taken for its doing. */
const ITS_DOING_MS = 1_000;
const PRESSES = ["mousePressed", "touchStart"];
/** Its end brings the window in front of which it was to the front, too. */
const DIALOG = "Page.handleJavaScriptDialog";

/** @typedef {{ focused: number, minimized: (number | undefined)[] }} Desk */

/** What the desk was like when an agent last used the mouse or the keyboard. @type {{ at: number, before: Promise<Desk> }} */
let input = { at: 0, before: Promise.resolve({ focused: WINDOW_ID_NONE, minimized: [] }) };

/** The window that has the focus, or WINDOW_ID_NONE for another program. */
async function focusedNow() {
  try {
    const { id, focused } = await chrome.windows.getLastFocused();
    return focused && id !== undefined ? id : WINDOW_ID_NONE;
  } catch {
    return WINDOW_ID_NONE; // no window is open
  }
}

/** The desk as it was last looked at: keys and clicks come by the dozen, and windows seldom change. */
let seen = { at: 0, desk: input.before };
chrome.windows.onFocusChanged.addListener(() => {
  seen.at = 0;
});

/** The desk as it is, or was a moment ago. */
function desk() {
  if (Date.now() - seen.at > FRESH_MS) seen = { at: Date.now(), desk: look() };
  return seen.desk;
}

/** @returns {Promise<Desk>} */
async function look() {
  const [focused, windows] = await Promise.all([focusedNow(), chrome.windows.getAll()]);
  return { focused, minimized: windows.filter(({ state }) => state === "minimized").map(({ id }) => id) };
}

/**
 * Commands are about to be sent to a tab: if a press among them brings its window to the front, what had the focus gets
 * it back.
 * @param {number} tabId
 * @param {readonly Command[]} commands
 */
export function keepFocus(tabId, commands) {
  if (!commands.some(({ method, params }) => method.startsWith("Input.") || method === DIALOG || params["userGesture"])) return;
  // Asked before the input is sent, so that it is answered before the input is felt.
  const { before } = (input = { at: Date.now(), before: desk() });
  if (!commands.some(({ method, params }) => method === DIALOG || PRESSES.includes(String(params["type"])))) return;
  /** @param {chrome.tabs.Tab} tab */
  const keep = async ({ windowId, active }) => {
    if (active) await giveBack(await before, windowId, PRESSED_MS);
  };
  chrome.tabs.get(tabId).then(keep).catch(() => null); // the tab or a window is gone, and with it what was in front
}

/**
 * A page has opened something in a window: if that brings the window to the front, what had the focus gets it back.
 * @param {number} windowId
 * @param {(before: number) => boolean} rightly whether the window may have it
 */
export async function giveFocusBack(windowId, rightly) {
  const before = await (Date.now() - input.at < ITS_DOING_MS ? input.before : look());
  if (!rightly(before.focused)) await giveBack(before, windowId, RISES_MS);
}

/**
 * Wait whether a window takes the focus, and give it back.
 * @param {Desk} before
 * @param {number} windowId
 * @param {number} within
 */
async function giveBack({ focused, minimized }, windowId, within) {
  if (focused === windowId) return;
  const end = Date.now() + within;
  while ((await focusedNow()) !== windowId) {
    if (Date.now() > end) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  // Another program cannot be asked to the front, but the window can step behind it.
  if (minimized.includes(windowId)) await chrome.windows.update(windowId, { state: "minimized" });
  else if (focused === WINDOW_ID_NONE) await chrome.windows.update(windowId, { focused: false });
  if (focused !== WINDOW_ID_NONE) await chrome.windows.update(focused, { focused: true });
}
