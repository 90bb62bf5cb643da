/**
 * Values as text: durations, times, URLs, names of tools and agents. Pure.
 */

/** @typedef {import("./types.js").HubState} HubState */
/** @typedef {import("./types.js").ToolFacts} ToolFacts */

/** How long an ended call stays highlighted. */
export const HIGHLIGHT_MS = 1_500;

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1) return "< 1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return span(ms / 1000);
}

/**
 * A duration, rounded.
 * @param {number} seconds
 */
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86_400)} d`;
}

/**
 * Remaining time as minutes and seconds.
 * @param {number} ms
 */
export function clock(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/**
 * The time since a moment.
 * @param {number} then
 * @param {number} now
 */
export function ago(then, now) {
  const seconds = (now - then) / 1000;
  if (seconds < 5) return "now";
  if (seconds < 86_400) return `${span(seconds).replace(/ \d+ min$/, "")} ago`;
  return new Date(then).toLocaleDateString(undefined, { month: "short", day: "numeric" });
}

/** @param {string | undefined} url */
export function host(url) {
  const parsed = URL.parse(url ?? "");
  return parsed?.host || (url ?? "");
}

/**
 * A readable label of a name such as `browser_click_element`.
 * @param {string} name
 * @param {string} [source] its source's name, which is left out
 */
export function toolLabel(name, source) {
  const own = source && name.startsWith(`${source}_`) ? name.slice(source.length + 1) : name;
  const plain = own.replace(/^(browser|extension|plugin)_|^mcp__[^_]+__|^website_tool_.*?_tab\d+_/, "");
  const spaced = plain
    .replace(/[_-]+/g, " ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .trim();
  return spaced ? (spaced[0] ?? "").toUpperCase() + spaced.slice(1) : name;
}

/**
 * All tools of the hub by name.
 * @param {HubState} state
 * @returns {Map<string, ToolFacts>}
 */
export function toolsByName(state) {
  const all = [
    ...(state.browserTools?.families ?? []).flatMap(({ tools }) => tools),
    ...(state.pages ?? []).flatMap(({ tools }) => tools),
    ...(state.plugins ?? []).flatMap(({ tools }) => tools),
    ...(state.upstream ?? []).flatMap(({ tools }) => tools ?? []),
  ];
  return new Map(all.map((tool) => [tool.name, tool]));
}

/**
 * The title of a tool.
 * @param {HubState | null} state
 * @param {string} name
 */
export function toolTitle(state, name) {
  const known = state && toolsByName(state).get(name);
  return known?.title || toolLabel(known?.tool ?? name);
}

const VERSION = /\s+v?\d[\w.+-]*$/;
/** Agents of the hub itself. @type {Readonly<Record<string, string>>} */
const OWN = { "tabhub-panel": "The assistant", "tabhub-cli": "Command line" };
/** Names that clients and their tokens have, and what people call them; see trust/sentences/agents.py. @type {Readonly<Record<string, string>>} */
const TITLES = {
  "claude-code": "Claude Code",
  "claude-ai": "Claude Desktop",
  cursor: "Cursor",
  "cursor-vscode": "Cursor",
  codex: "Codex",
  "codex-mcp-client": "Codex",
  "gemini-cli-mcp-client": "Gemini CLI",
  opencode: "OpenCode",
  vscode: "VS Code",
  "visual studio code": "VS Code",
  windsurf: "Windsurf",
  "windsurf-client": "Windsurf",
};

/**
 * The name of an agent: that of its token, which identifies it, and the one it gives itself where that differs.
 * @param {string | undefined} client
 * @param {string} [token]
 */
export function agentName(client = "", token) {
  const own = OWN[token ?? ""];
  if (own) return own;
  const claimed = titleOf(client.replace(VERSION, ""));
  if (!token) return claimed || "An agent";
  const known = titleOf(token);
  const plain = (/** @type {string} */ text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  return !claimed || plain(known) === plain(claimed) ? known : `${known} (${claimed})`;
}

/** @param {string} name */
function titleOf(name) {
  const trimmed = name.trim();
  return TITLES[trimmed.toLowerCase()] ?? trimmed;
}

/**
 * What an agent wants to do, as the hub words it.
 * @param {import("./types.js").Approval} approval
 */
export function sentenceOf({ sentence, client, token, tool }) {
  return sentence ?? `${agentName(client, token)} wants to ${tool[0]?.toLowerCase() ?? ""}${tool.slice(1)}`;
}

/**
 * The text with a capital first letter.
 * @param {string} text
 */
export function capital(text) {
  return (text[0] ?? "").toUpperCase() + text.slice(1);
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many) {
  return `${count} ${count === 1 ? one : (many ?? `${one}s`)}`;
}
