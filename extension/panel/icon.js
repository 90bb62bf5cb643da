/**
 * The toolbar button: its icon, badge and tooltip show whether the hub is connected, how many approvals are pending, and
 * whether agents are paused or working.
 */

import { counted, tooltip } from "./connection_text.js";

/** @typedef {import("../link/socket.js").LinkState} LinkState */
/** @typedef {{ pending: number, paused: boolean, working: number }} Work */

/** @type {string | null} */
let shown = null;

/**
 * What the badge says: what needs the person first.
 * @param {LinkState} link
 * @param {Work} work
 * @returns {{ text: string, color: string, title: string }}
 */
export function badgeOf(link, { pending, paused, working }) {
  const title = tooltip(link);
  // Approvals of agents over a relay are pending without a hub, too.
  if (pending > 0) return { text: String(pending), color: "#c5221f", title: `Tabhub: ${counted(pending, "approval")} pending` };
  if (link.phase !== "connected") return { text: link.reason === null ? "" : "!", color: "#b45309", title };
  if (paused) return { text: "II", color: "#8a4a00", title: "Tabhub: agents are paused" };
  if (working > 0) return { text: "\u25cf", color: "#18733a", title: `Tabhub: ${counted(working, "agent")} working` };
  return { text: "", color: "", title };
}

/**
 * Show the state of the link and of the agents' work.
 * @param {LinkState} link
 * @param {Work} work
 */
export function showIcon(link, work) {
  const picture = link.phase === "connected" ? "connected" : "disconnected";
  const { text, color, title } = badgeOf(link, work);
  void chrome.action.setTitle({ title });
  const look = `${picture} ${text} ${color}`;
  if (look === shown) return;
  shown = look;
  /** @type {Record<string, string>} */
  const path = {};
  for (const size of [16, 32, 48, 128]) path[size] = `/icons/${picture}-${size}.png`;
  void chrome.action.setIcon({ path });
  void chrome.action.setBadgeText({ text });
  if (!color) return;
  void chrome.action.setBadgeBackgroundColor({ color });
  void chrome.action.setBadgeTextColor({ color: "#ffffff" });
}
