/**
 * The popup of the toolbar button: it shows the state of the connection and opens the panel.
 */

import { counted, explanation, headline, nextAttempt } from "./connection_text.js";

/** @typedef {import("./connection_text.js").PanelState} PanelState */

/** @type {PanelState | null} */
let state = null;

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The popup has no element ${id}.`);
  return found;
}

function show() {
  if (!state) return;
  const { link, tabs, debugged, browserName, lastError } = state;
  document.body.dataset["phase"] = link.phase;
  const picture = /** @type {HTMLImageElement} */ (element("picture"));
  picture.src = `../icons/${link.phase === "connected" ? "connected" : "disconnected"}-48.png`;
  element("headline").textContent = headline(link);
  element("explanation").textContent = explanation(link);
  element("address").textContent = link.address ?? "unknown";
  element("browser").textContent = `${browserName}, ${counted(tabs, "tab")}`;
  element("debugger").textContent = debugged ? `attached to ${counted(debugged, "tab")}` : "not attached";
  element("retry").textContent = link.retryAt === null ? "" : nextAttempt(link.retryAt, Date.now());
  element("retry").hidden = element("retry-label").hidden = link.retryAt === null;
  element("error").hidden = lastError === null;
  element("error").textContent = lastError === null ? "" : `Last error: ${lastError}`;
}

function connect() {
  const port = chrome.runtime.connect({ name: "panel" });
  port.onMessage.addListener((message) => {
    state = message;
    show();
  });
  // The worker was stopped; connecting starts it.
  port.onDisconnect.addListener(connect);
}

// Known before the click: the side panel can only be opened synchronously in a click handler.
const here = chrome.windows.getCurrent();
/** @type {number | undefined} */
let windowId;
void here.then(({ id }) => (windowId = id));

element("side").addEventListener("click", () => {
  if (windowId === undefined) return;
  chrome.sidePanel.open({ windowId }).then(
    () => window.close(),
    () => openPage(),
  );
});
element("page").addEventListener("click", openPage);

/** Open the panel in a tab, also for browsers without a side panel. */
function openPage() {
  void chrome.tabs.create({ url: "panel/panel.html?full" }).then(() => window.close());
}

connect();
setInterval(show, 1000);
