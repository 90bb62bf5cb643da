/**
 * Texts for the state of the connection. Pure: state in, text out.
 */

/** @typedef {import("../link/socket.js").LinkState} LinkState */

/**
 * @typedef {object} PanelState
 * @property {LinkState} link
 * @property {number} tabs
 * @property {number} debugged tabs with the debugger attached
 * @property {string} browserName
 * @property {string | null} lastError
 * @property {{ tabId: number, title: string, url: string }[]} [stopped] tabs in which the person stopped the agents
 */

/** @type {Record<LinkState["phase"], string>} */
const HEADLINES = {
  connected: "Connected",
  connecting: "Connecting…",
  setup: "Waiting for setup",
  waiting: "Not connected",
};

/** @param {LinkState} link */
export function headline(link) {
  return HEADLINES[link.phase];
}

/** @param {LinkState} link */
export function explanation(link) {
  if (link.phase === "connected") return "AI agents that you connect to the hub can use this browser's tabs.";
  return link.reason ?? "Looking for the hub on this computer.";
}

/**
 * When the next connection attempt is made.
 * @param {number} at
 * @param {number} now
 */
export function nextAttempt(at, now) {
  const seconds = Math.ceil((at - now) / 1000);
  return seconds > 0 ? `in ${seconds} s` : "now";
}

/**
 * The tooltip of the toolbar button.
 * @param {LinkState} link
 */
export function tooltip(link) {
  if (link.phase === "connected") return `Tabhub: connected to ${link.address}`;
  return `Tabhub: ${headline(link).toLowerCase()}${link.reason ? `\n${link.reason}` : ""}`;
}

/**
 * @param {number} count
 * @param {string} one
 */
export function counted(count, one) {
  return `${count} ${one}${count === 1 ? "" : "s"}`;
}
