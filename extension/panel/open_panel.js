/**
 * Opening the panel: at the side of the window where the browser has that, otherwise in a tab.
 */

const PAGE = "panel/panel.html?full";

/** The window that was in front last. @type {number | undefined} */
let front;

/** Listen for events; call this while the worker starts. */
export function watchFront() {
  chrome.windows.onFocusChanged.addListener((windowId) => {
    if (windowId !== chrome.windows.WINDOW_ID_NONE) front = windowId;
  });
  void chrome.windows.getLastFocused({ windowTypes: ["normal"] }).then(
    ({ id }) => (front ??= id),
    () => {}, // no window is open
  );
  // A click on the toolbar button; a browser without side panels shows the popup.
  if (!chrome.sidePanel?.setPanelBehavior) return;
  void chrome.action.setPopup({ popup: "" });
  void chrome.sidePanel.setPanelBehavior({ openPanelOnActionClick: true }).catch(() => chrome.action.setPopup({ popup: "panel/popup.html" }));
}

/**
 * Open the panel. At the side it can be opened only as the direct answer to a click or key.
 * @param {string} view
 */
export async function openPanel(view) {
  const windowId = front;
  try {
    if (windowId === undefined || !chrome.sidePanel) throw new Error("there is no side panel");
    await chrome.sidePanel.open({ windowId });
    await chrome.windows.update(windowId, { focused: true });
  } catch {
    const url = `${PAGE}#${view}`;
    const windows = await chrome.windows.getAll({ windowTypes: ["normal"] });
    if (windows.length === 0) return void (await chrome.windows.create({ url, focused: true }));
    const tab = await chrome.tabs.create({ url, active: true });
    await chrome.windows.update(tab.windowId, { focused: true });
  }
}
