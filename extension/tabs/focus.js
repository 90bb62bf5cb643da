/**
 * Restoring the focus when a window takes it because of an agent.
 *
 * A browser raises the window in which a page opens something, and the window of a page that gets a mouse press, also when
 * an agent caused it and the person works elsewhere. It does not always report that another program has the focus, so it
 * is polled.
 */

/** @typedef {{ method: string, params: Record<string, unknown> }} Command */

const { WINDOW_ID_NONE } = chrome.windows;
/** How long a window may take to come to the front after a page has opened something in it. */
const OPENED_MS = 1_000;
/** The same after a mouse press; short, since the person may switch to that window themselves. */
const PRESSED_MS = 300;
const POLL_MS = 20;
/** How long a reading is valid: focus changes to another program are not always reported. */
const VALID_MS = 250;
/** How long after an agent's input a page's popup is attributed to it. */
const ATTRIBUTION_MS = 1_000;
const PRESSES = ["mousePressed", "touchStart"];
/** Closing a dialog also raises its window. */
const DIALOG = "Page.handleJavaScriptDialog";

/** @typedef {{ focused: number, minimized: (number | undefined)[] }} WindowState */

/** The windows when an agent last used the mouse or the keyboard. @type {{ at: number, before: Promise<WindowState> }} */
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

/** The last reading: keys and clicks are frequent, and windows seldom change. */
let reading = { at: 0, windows: input.before };
chrome.windows.onFocusChanged.addListener(() => {
  reading.at = 0;
});

/** The windows now, or a moment ago. */
function recentWindows() {
  if (Date.now() - reading.at > VALID_MS) reading = { at: Date.now(), windows: readWindows() };
  return reading.windows;
}

/** @returns {Promise<WindowState>} */
async function readWindows() {
  const [focused, windows] = await Promise.all([focusedNow(), chrome.windows.getAll()]);
  return { focused, minimized: windows.filter(({ state }) => state === "minimized").map(({ id }) => id) };
}

/**
 * Call before commands are sent to a tab: if a mouse press raises its window, the previous focus is restored.
 * @param {number} tabId
 * @param {readonly Command[]} commands
 */
export function keepFocus(tabId, commands) {
  if (!commands.some(({ method, params }) => method.startsWith("Input.") || method === DIALOG || params["userGesture"])) return;
  // Queried before the input is sent, so that the answer is from before the input.
  const { before } = (input = { at: Date.now(), before: recentWindows() });
  if (!commands.some(({ method, params }) => method === DIALOG || PRESSES.includes(String(params["type"])))) return;
  /** @param {chrome.tabs.Tab} tab */
  const restore = async ({ windowId, active }) => {
    if (active) await restoreFocus(await before, windowId, PRESSED_MS);
  };
  chrome.tabs.get(tabId).then(restore).catch(() => null); // the tab or a window was closed
}

/**
 * Call when a page has opened something in a window: if that raises the window, the previous focus is restored.
 * @param {number} windowId
 * @param {(before: number) => boolean} allowed whether the window may have the focus
 */
export async function restoreFocusAfterPopup(windowId, allowed) {
  const before = await (Date.now() - input.at < ATTRIBUTION_MS ? input.before : readWindows());
  if (!allowed(before.focused)) await restoreFocus(before, windowId, OPENED_MS);
}

/**
 * If a window takes the focus in time, restore the previous focus.
 * @param {WindowState} before
 * @param {number} windowId
 * @param {number} within
 */
async function restoreFocus({ focused, minimized }, windowId, within) {
  if (focused === windowId) return;
  const end = Date.now() + within;
  while ((await focusedNow()) !== windowId) {
    if (Date.now() > end) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  // Another program cannot be raised, but the window can give up the focus.
  if (minimized.includes(windowId)) await chrome.windows.update(windowId, { state: "minimized" });
  else if (focused === WINDOW_ID_NONE) await chrome.windows.update(windowId, { focused: false });
  if (focused !== WINDOW_ID_NONE) await chrome.windows.update(focused, { focused: true });
}
