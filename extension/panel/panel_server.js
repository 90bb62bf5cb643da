/**
 * The worker's side of the panel. The popup receives the state of the link. The panel, in the side panel or in a tab,
 * receives events and sends requests: which requests it may send to the hub is in one list, and each has one answer.
 *
 *   worker to panel   { type: "event", method, params }, { type: "answer", id, result } or { type: "answer", id, error }
 *   panel to worker   { type: "ask", id, method, params }
 *
 * `link.state` is both an event and a request: the state of the worker's connection, also without one.
 */

import { RpcError, isObject, textOf } from "../link/rpc.js";

/** @typedef {import("./connection_text.js").PanelState} PanelState */
/** @typedef {Record<string, unknown>} Params */
/** @typedef {{ notify: (method: string, params: Params) => unknown, request: (method: string, params: Params) => Promise<unknown> }} Hub */

/** Requests that a panel may send to the hub. @type {ReadonlySet<string>} */
const REQUESTS = new Set([
  ...["getState", "setToolPermission", "setPluginPermission", "setSkipPermissions", "setPluginSettings", "set"].map(
    (name) => `config.${name}`,
  ),
  ...["search", "install", "updateFromRegistry", "remove", "checkUpdates", "removeBySpecifier"].map(
    (name) => `plugin.${name}`,
  ),
  ...["add", "set", "refresh", "remove"].map((name) => `upstream.${name}`),
  ...["send", "stop", "list", "resume", "remove"].map((name) => `agent.${name}`),
  ...["set", "page", "suggestion"].map((name) => `sites.${name}`),
  "grants.revoke",
  "folder.open",
  "sessions.end",
  "sessions.release",
  "approvals.picture",
  "approvals.show",
  "hub.pause",
  "hub.resume",
  "audit.list",
]);
/** Notifications that it may send to the hub. @type {ReadonlySet<string>} */
const NOTIFICATIONS = new Set(["confirmation.response"]);

/**
 * Answer panels; call this while the worker starts.
 * @param {{ state: () => Promise<PanelState>, hub: () => Hub | null, opened: () => void, own: ReadonlyMap<string, (params: Params) => unknown> }} wiring `own` are requests that the worker answers itself
 */
export function servePanel({ state, hub, opened, own }) {
  const home = chrome.runtime.getURL("panel/");
  /** @type {Set<chrome.runtime.Port>} */
  const popups = new Set();
  /** @type {Set<chrome.runtime.Port>} */
  const panels = new Set();

  /** @param {Set<chrome.runtime.Port>} [only] */
  async function refresh(only) {
    if (popups.size + panels.size === 0) return;
    const current = await state();
    for (const port of only ?? popups) if (popups.has(port)) send(port, current);
    for (const port of only ?? panels) {
      if (panels.has(port)) send(port, { type: "event", method: "link.state", params: current });
    }
  }

  /**
   * Send an event to open panels. Returns whether one is open.
   * @param {string} method
   * @param {Params} params
   */
  function event(method, params) {
    for (const port of panels) send(port, { type: "event", method, params });
    return panels.size > 0;
  }

  /** Tell a newly connected hub whether a panel is open. */
  function introduce() {
    if (panels.size > 0) hub()?.notify("panel.watch", { open: true });
  }

  /**
   * @param {string} method
   * @param {Params} params
   */
  async function ask(method, params) {
    if (method === "link.state") return state();
    const answer = own.get(method);
    if (answer) return answer(params);
    const connected = hub();
    const [isRequest, isNotification] = [REQUESTS.has(method), NOTIFICATIONS.has(method)];
    if (!isRequest && !isNotification) throw new Error(`A panel may not ask for ${method.slice(0, 100)}.`);
    if (!connected) throw new Error("The hub is not connected. Start it with \"tabhub start\".");
    if (isRequest) return connected.request(method, params);
    connected.notify(method, params);
    return {};
  }

  /**
   * @param {chrome.runtime.Port} port
   * @param {unknown} message
   */
  async function received(port, message) {
    if (!isObject(message) || message["type"] !== "ask") return;
    const { id, method, params } = message;
    try {
      if (typeof method !== "string") throw new Error("method must be a string");
      const result = await ask(method, isObject(params) ? params : {});
      send(port, { type: "answer", id, result: result ?? {} });
    } catch (error) {
      const known = error instanceof RpcError ? { code: error.code, ...(error.data ? { data: error.data } : {}) } : {};
      send(port, { type: "answer", id, error: { message: textOf(error), ...known } });
    }
  }

  chrome.runtime.onConnect.addListener((port) => {
    if (port.name !== "panel") return;
    // Only the extension's own pages.
    const { url, origin, id } = port.sender ?? {};
    const known = id === chrome.runtime.id && (!origin || home.startsWith(`${origin}/`));
    if (!known || !url?.startsWith(home)) return port.disconnect();
    const kind = url.startsWith(`${home}popup.html`) ? popups : panels;
    kind.add(port);
    if (kind === panels && panels.size === 1) introduce();
    port.onMessage.addListener((message) => void received(port, message));
    port.onDisconnect.addListener(() => {
      kind.delete(port);
      if (kind === panels && panels.size === 0) hub()?.notify("panel.watch", { open: false });
    });
    // An opened panel is a reason to reconnect now.
    opened();
    void refresh(new Set([port]));
  });

  return { refresh: () => void refresh(), event, introduce, open: () => panels.size > 0 };
}

/**
 * @param {chrome.runtime.Port} port
 * @param {unknown} message
 */
function send(port, message) {
  try {
    port.postMessage(message);
  } catch {
    // The page was closed: onDisconnect follows.
  }
}
