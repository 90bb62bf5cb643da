/**
 * Which of several levels applies to a site, by patterns like those of the hub's site rules. Pure.
 *
 * Owns the form of a pattern, `[scheme://]host[:port]`, and which one decides. Both are those of
 * src/tabhub/trust/site_rules.py, and tests compare them. Only the hub has a list of public suffixes: it refuses `*.co.uk`,
 * which is accepted here.
 */

/** @typedef {{ scheme: string, host: string, below: boolean, port: number | null }} Pattern without scheme or port, of any; an empty host is every site */
/** @typedef {{ scheme: string, host: string, port: number | null }} Site */

/** The schemes of sites, and what each counts as: a WebSocket belongs to the site of its server. */
const SCHEMES = new Map([
  ["http", "http"],
  ["https", "https"],
  ["ws", "http"],
  ["wss", "https"],
]);
const PORTS = new Map([
  ["http", 80],
  ["https", 443],
]);
const PATTERN = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(.*)$/is;
const AUTHORITY = /^(\[[^\]]*\]|[^:]*)(?::([0-9]{0,5}))?$/;
const HOST = /^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*|\[[0-9a-f:.]+\])$/;
const NOT_IN_HOSTS = /[\0-\x20#%/:<>?@[\\\]^|\x7f]/;
const MAX_LENGTH = 300;
const EVERY = "*";

/**
 * @param {unknown} text
 * @returns {Pattern}
 */
export function parsePattern(text) {
  const [, given, rest = ""] = (typeof text === "string" && text.length <= MAX_LENGTH && PATTERN.exec(text)) || [];
  const scheme = given === undefined ? "" : SCHEMES.get(given.toLowerCase());
  const [, name = "", digits = ""] = AUTHORITY.exec(rest.replace(/\/$/, "")) ?? [];
  const port = digits === "" ? null : Number(digits);
  const portIsValid = port === null || (port > 0 && port < 65536);
  const below = name.startsWith("*.");
  const host = name === EVERY ? "" : hostOf(below ? name.slice(2) : name);
  if (scheme === undefined || !portIsValid || host === null || (below && isAddress(host))) {
    throw new Error("Enter a site like bank.example, *.bank.example for its subdomains too, or https://bank.example:8443");
  }
  return { scheme, host, below: below || host === "", port };
}

/** @param {Pattern} pattern */
export function patternText({ scheme, host, below, port }) {
  return `${scheme && `${scheme}://`}${host === "" ? EVERY : `${below ? "*." : ""}${host}`}${port === null ? "" : `:${port}`}`;
}

/**
 * A host as the browser writes it, without trailing dots; null if it is not valid.
 * @param {string} name
 */
function hostOf(name) {
  if (!name.startsWith("[") && NOT_IN_HOSTS.test(name)) return null;
  const host = URL.parse(`https://${name}`)?.hostname.replace(/\.+$/, "") ?? "";
  return HOST.test(host) ? host : null;
}

/** @param {string} host */
function isAddress(host) {
  return host.startsWith("[") || /(?:^|\.)[0-9]+$/.test(host);
}

/**
 * The levels of sites.
 * @template Level
 */
export class SiteRules {
  /** The most specific first. @type {{ pattern: Pattern, level: Level }[]} */
  #rules;

  /** @param {readonly { pattern: Pattern, level: Level }[]} rules */
  constructor(rules) {
    this.#rules = [...rules].sort((one, other) => compare(other.pattern, one.pattern));
  }

  /**
   * The level that the most specific pattern gives an origin, if one covers it.
   * @param {string} origin
   * @returns {Level | undefined}
   */
  level(origin) {
    const site = this.#rules.length === 0 ? null : siteOf(origin);
    return site === null ? undefined : this.#rules.find(({ pattern }) => covers(pattern, site))?.level;
  }
}

/**
 * The site of an origin; null if it has none. Files are one site without a host, which only `*` covers.
 * @param {string} origin
 * @returns {Site | null}
 */
function siteOf(origin) {
  const url = URL.parse(origin === "file:" ? "file:///" : origin);
  const scheme = SCHEMES.get(url?.protocol.slice(0, -1) ?? "");
  if (url?.protocol === "file:") return { scheme: "file", host: "", port: null };
  if (!url || scheme === undefined) return null;
  return { scheme, host: url.hostname.replace(/\.+$/, ""), port: Number(url.port) || (PORTS.get(scheme) ?? null) };
}

/**
 * @param {Pattern} pattern
 * @param {Site} site
 */
function covers({ scheme, host, below, port }, site) {
  const named = host === site.host || (below && (host === "" || site.host.endsWith(`.${host}`)));
  return named && (scheme === "" || scheme === site.scheme) && (port === null || port === site.port);
}

/**
 * Which of two patterns is more specific: an exact host, then a longer one, then one with a scheme, then one with a port.
 * @param {Pattern} one
 * @param {Pattern} other
 */
function compare(one, other) {
  const [left, right] = [one, other].map(({ below, host, scheme, port }) => [below ? 0 : 1, host.length, scheme ? 1 : 0, port === null ? 0 : 1]);
  return left?.map((each, at) => each - (right?.[at] ?? 0)).find((difference) => difference !== 0) ?? 0;
}
