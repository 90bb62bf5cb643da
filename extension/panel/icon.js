/**
 * The toolbar button: its icon, badge and tooltip show whether the hub is connected.
 */

import { tooltip } from "./connection_text.js";

/** @typedef {import("../link/socket.js").LinkState} LinkState */

/** @type {string | null} */
let shown = null;

/**
 * Show the state of the link.
 * @param {LinkState} link
 */
export function showIcon(link) {
  const picture = link.phase === "connected" ? "connected" : "disconnected";
  void chrome.action.setTitle({ title: tooltip(link) });
  const badge = link.phase === "connected" || link.reason === null ? "" : "!";
  const look = picture + badge;
  if (look === shown) return;
  shown = look;
  /** @type {Record<string, string>} */
  const path = {};
  for (const size of [16, 32, 48, 128]) path[size] = `/icons/${picture}-${size}.png`;
  void chrome.action.setIcon({ path });
  void chrome.action.setBadgeText({ text: badge });
  if (badge) void chrome.action.setBadgeBackgroundColor({ color: "#b45309" });
}
