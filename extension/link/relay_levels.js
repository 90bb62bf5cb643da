/**
 * What agents over a relay may do on each site, as the person has set it, in the words of the hub's site rules. Pure.
 *
 * Owns the levels of sites in the relay's settings, and how settings of version 0.1 are read. Which pattern decides belongs to
 * site_rules.js; what each level allows, to relay_permissions.js.
 */

import { SiteRules, parsePattern, patternText } from "./site_rules.js";

/** @typedef {"block" | "read" | "ask" | "act"} Level */
/** @typedef {{ site: string, level: Level }} SiteLevel */

/** From the strictest. @type {readonly Level[]} */
export const LEVELS = ["block", "read", "ask", "act"];
const MAX_SITES = 500;
/** @type {ReadonlyMap<unknown, Level>} */
const OLD_LEVELS = new Map([
  ["nothing", "block"],
  ["off", "read"],
  ["ask", "ask"],
  ["auto", "act"],
]);
const OLD_SITE = /^(?:(https?):\/\/)?(\*\.)?(\[[^\]]*\]|[^:]*)(?::([0-9]+))?$/;

export class Levels {
  /** The level of sites without a rule, and of the browser itself. @type {Level} */
  fallback;
  /** Whether anything is hidden from agents. */
  hides;
  /** Whether agents may act everywhere without being asked. */
  unrestricted;
  /** Whether agents may act anywhere, asked or not. */
  mayAct;
  /** @type {SiteRules<Level>} */
  #rules;
  /** The domains of hidden sites, "" for every site. @type {Set<string>} */
  #hiddenDomains;

  /**
   * @param {Level} fallback
   * @param {readonly SiteLevel[]} sites
   */
  constructor(fallback, sites) {
    const all = [fallback, ...sites.map(({ level }) => level)];
    this.fallback = fallback;
    this.hides = all.includes("block");
    this.unrestricted = all.every((level) => level === "act");
    this.mayAct = all.some((level) => level === "ask" || level === "act");
    const rules = sites.map(({ site, level }) => ({ pattern: parsePattern(site), level }));
    this.#rules = new SiteRules(rules);
    this.#hiddenDomains = new Set(rules.filter(({ level }) => level === "block").map(({ pattern }) => domainOf(pattern.host)));
  }

  /**
   * The level of a site.
   * @param {string} origin "" for the browser itself
   */
  of(origin) {
    return this.rule(origin) ?? this.fallback;
  }

  /**
   * The level that a rule gives a site, if one does.
   * @param {string} origin
   */
  rule(origin) {
    return this.#rules.level(origin);
  }

  /**
   * Whether a hidden site may be of the same domain as a URL, and so share cookies with it.
   * @param {string} url
   */
  hidesNear(url) {
    return this.#hiddenDomains.has("") || this.#hiddenDomains.has(domainOf(URL.parse(url)?.hostname ?? ""));
  }
}

/**
 * The last two labels; a domain may have more, then hosts of several count as one.
 * @param {string} host
 */
function domainOf(host) {
  return host.split(".").slice(-2).join(".");
}

/**
 * The level of sites in settings; throws if they are not valid.
 * @param {unknown} given
 * @returns {SiteLevel[]}
 */
export function readSites(given) {
  if (!Array.isArray(given) || given.length > MAX_SITES) throw new Error(`sites must be a list of at most ${MAX_SITES} sites.`);
  const sites = new Map(
    given.map((each) => {
      const { site, level } = /** @type {{ site?: unknown, level?: unknown }} */ (each ?? {});
      return [patternText(parsePattern(typeof site === "string" ? site.trim() : site)), readLevel(level)];
    }),
  );
  return [...sites].map(([site, level]) => ({ site, level }));
}

/**
 * @param {unknown} given
 * @returns {Level}
 */
export function readLevel(given) {
  const level = LEVELS.find((each) => each === given);
  if (!level) throw new Error(`A level must be ${LEVELS.join(", ")}.`);
  return level;
}

/**
 * Stored settings, with the levels and patterns of version 0.1 rewritten. There `bank.example` covered subdomains too, and
 * `https://bank.example` its standard port only; `acting` was the level of all other sites.
 * @param {Record<string, unknown>} stored
 * @returns {{ settings: Record<string, unknown>, migrated: boolean }}
 */
export function migrate(stored) {
  const { acting, sites, ...others } = stored;
  if (acting === undefined) return { settings: stored, migrated: false };
  const listed = Array.isArray(sites) ? sites : [];
  const rewritten = listed.map(({ site, level }) => ({ site: oldPattern(String(site)), level: OLD_LEVELS.get(level) }));
  return { settings: { ...others, level: OLD_LEVELS.get(acting), sites: rewritten }, migrated: true };
}

/** @param {string} site */
function oldPattern(site) {
  const [, scheme, star = "", host = "", port] = OLD_SITE.exec(site) ?? [];
  if (scheme) return `${scheme}://${star}${host}:${port ?? (scheme === "https" ? 443 : 80)}`;
  const address = host.startsWith("[") || /(?:^|\.)[0-9]+$/.test(host);
  return `${address ? "" : "*."}${host}${port ? `:${port}` : ""}`;
}
