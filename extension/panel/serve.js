/**
 * The worker's side of the panel: an open panel is sent the state, and again whenever it changes.
 */

/** @typedef {import("./words.js").PanelState} PanelState */

/**
 * Answer panels; call this while the worker starts.
 * @param {{ state: () => Promise<PanelState>, opened: () => void }} wiring
 */
export function servePanel({ state, opened }) {
  /** @type {Set<chrome.runtime.Port>} */
  const panels = new Set();

  async function refresh() {
    if (panels.size === 0) return;
    const current = await state();
    for (const port of panels) port.postMessage(current);
  }

  chrome.runtime.onConnect.addListener((port) => {
    if (port.name !== "panel") return;
    // Only pages of ours: a frame of a web page has a port of its own kind.
    if (!port.sender?.url?.startsWith(chrome.runtime.getURL("panel/"))) return port.disconnect();
    panels.add(port);
    port.onDisconnect.addListener(() => panels.delete(port));
    // A person who looks is a reason to try again now.
    opened();
    void refresh();
  });

  return { refresh: () => void refresh() };
}
