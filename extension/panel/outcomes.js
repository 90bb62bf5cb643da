/**
 * How calls in the audit log ended, each with its own word and shape, and who let them run. Pure. The command line has the
 * same in trust/sentences/outcomes.py.
 */

/** @typedef {import("./types.js").Entry} Entry */
/** @typedef {"done" | "denied" | "failed" | "timed out" | "cancelled"} Outcome */

/** The icon and tone of each outcome. @type {Readonly<Record<Outcome, { glyph: string, tone: "good" | "warn" | "bad" | "quiet" }>>} */
export const OUTCOMES = {
  done: { glyph: "check", tone: "good" },
  denied: { glyph: "denied", tone: "warn" },
  failed: { glyph: "close", tone: "bad" },
  "timed out": { glyph: "clock", tone: "bad" },
  cancelled: { glyph: "stop", tone: "quiet" },
};
/** @type {Readonly<Record<string, string>>} */
const DECISIONS = {
  allow_once: "allowed once",
  allow_session: "allowed for the session",
  allow_always: "always allowed",
  deny: "denied",
  none: "nobody answered",
};
/** @type {Readonly<Record<string, string>>} */
const WHERE = {
  panel: "in the panel",
  terminal: "in a terminal",
  notification: "in a notification",
  elicitation: "through the agent's client",
};

/**
 * @param {Entry} entry
 * @returns {Outcome}
 */
export function outcome({ success, error, approval }) {
  if (success) return "done";
  if (approval?.decision === "none" || error?.category === "timeout") return "timed out";
  if (approval?.decision === "deny" || error?.category === "permission") return "denied";
  return error?.category === "cancelled" ? "cancelled" : "failed";
}

/**
 * Who let the call run, or did not; empty if nobody was asked.
 * @param {Entry} entry
 */
export function approvedBy({ approval }) {
  if (!approval || typeof approval !== "object") return "";
  const { decision, by } = approval;
  const shown = DECISIONS[decision] ?? String(decision ?? "decided");
  return by in WHERE ? `${shown} ${WHERE[by]}` : shown;
}
