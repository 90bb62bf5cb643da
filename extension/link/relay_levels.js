/**
 * What agents over a relay may do on each site, as the person has set it. Pure.
 *
 * Owns the form of a site in these settings and which rule applies: the one with the longest host, and of two for one host
 * the one for an exact origin. `bank.example` covers its subdomains, every scheme and port; `https://bank.example` is that
 * origin alone; `https://*.bank.example` adds its subdomains.
 */

/** @typedef {"nothing" | "off" | "ask" | "auto"} Level */
/** @typedef {{ site: string, level: Level }} SiteLevel */
/** @typedef {{ scheme: string, wide: boolean, host: string, port: string, level: Level }} Rule */

/** From the strictest: no access, looking, asking, acting. @type {readonly Level[]} */
export const LEVELS = ["nothing", "off", "ask", "auto"];
const MAX_SITES = 500;
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/;
const SITE = /^(?:(https?):\/\/)?(\*\.)?([^/?#@\s:[\]]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?\/?$/i;

export class Levels {
  /** The level of sites without a rule, and of the browser itself. @type {Level} */
  fallback;
  /** Whether anything is hidden from agents. */
  hides;
  /** Whether agents may act everywhere without being asked. */
  unrestricted;
  /** Whether agents may act anywhere, asked or not. */
  mayAct;
  /** @type {Rule[]} */
  #rules;

  /**
   * @param {Level} fallback
   * @param {readonly SiteLevel[]} sites
   */
  constructor(fallback, sites) {
    const all = [fallback, ...sites.map(({ level }) => level)];
    this.fallback = fallback;
    this.hides = all.includes("nothing");
    this.unrestricted = all.every((level) => level === "auto");
    this.mayAct = all.some((level) => level === "ask" || level === "auto");
    this.#rules = sites.map(({ site, level }) => ({ ...readSite(site), level }));
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
   * @returns {Level | undefined}
   */
  rule(origin) {
    if (this.#rules.length === 0 || !URL.canParse(origin)) return undefined;
    const { protocol, hostname, port } = new URL(origin.replace(/^ws/, "http"));
    const [scheme, host] = [protocol.slice(0, -1), hostname.replace(/\.$/, "")];
    const found = this.#rules.filter(
      (rule) =>
        (host === rule.host || (rule.wide && host.endsWith(`.${rule.host}`))) &&
        (rule.scheme === "" ? rule.port === "" || rule.port === (port || standardPort(scheme)) : rule.scheme === scheme && rule.port === port),
    );
    return found.sort((one, other) => rank(other) - rank(one) || LEVELS.indexOf(one.level) - LEVELS.indexOf(other.level))[0]?.level;
  }
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
      const known = LEVELS.find((name) => name === level);
      if (!known) throw new Error(`The level of a site must be ${LEVELS.join(", ")}.`);
      return [siteText(readSite(site)), known];
    }),
  );
  return [...sites].map(([site, level]) => ({ site, level }));
}

/**
 * @param {unknown} text
 * @returns {Omit<Rule, "level">}
 */
function readSite(text) {
  const [, scheme = "", star, name = "", port = ""] = (typeof text === "string" && SITE.exec(text.trim())) || [];
  const url = URL.parse(`${scheme || "https"}://${name}${port && `:${port}`}`);
  const host = url?.hostname.replace(/\.$/, "");
  if (!url || !host || !HOST.test(host)) throw new Error("Enter a site like bank.example or https://bank.example");
  return { scheme: scheme.toLowerCase(), wide: star !== undefined || scheme === "", host, port: scheme ? url.port : port };
}

/** @param {Omit<Rule, "level">} site */
function siteText({ scheme, wide, host, port }) {
  return `${scheme && `${scheme}://${wide ? "*." : ""}`}${host}${port && `:${port}`}`;
}

/** @param {Rule} rule */
function rank({ host, wide, port, scheme }) {
  return host.length * 8 + (wide ? 0 : 4) + (port ? 2 : 0) + (scheme ? 1 : 0);
}

/** @param {string} scheme */
function standardPort(scheme) {
  return scheme === "https" ? "443" : scheme === "http" ? "80" : "";
}
