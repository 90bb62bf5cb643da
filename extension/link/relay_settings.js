/**
 * The relay's settings: their form, and the URL they lead to. Pure.
 */

import { readLevel, readSites } from "./relay_levels.js";

/** @typedef {import("./rpc.js").Params} Params */
/** @typedef {import("./relay_levels.js").Level} Level */
/** @typedef {import("./relay_levels.js").SiteLevel} SiteLevel */
/**
 * `level` is that of sites that are not in `sites`; `migrated` is whether the person has not seen yet that settings of version 0.1
 * were rewritten.
 * @typedef {{ url: string, token: string, level: Level, sites: SiteLevel[], instead: boolean, migrated: boolean }} Settings
 */

const MAX_TOKEN_LENGTH = 8192;
/** @type {Settings} */
export const UNSET = { url: "", token: "", level: "ask", sites: [], instead: false, migrated: false };

/**
 * @param {Params} given
 * @param {Settings} before
 * @returns {Settings}
 */
export function readSettings(given, before) {
  const { url = before.url, token = before.token, instead = before.instead } = given;
  const sites = readSites(given["sites"] ?? before.sites);
  if (typeof url !== "string" || typeof token !== "string") throw new Error("The relay's URL and token must be strings.");
  const level = readLevel(given["level"] ?? before.level);
  const [address, secret] = [url.trim().replace(/\/+(extension|mcp)?$/, ""), token.trim()];
  if (secret.length > MAX_TOKEN_LENGTH || /[^A-Za-z0-9._-]/.test(secret)) throw new Error("This is not a relay token.");
  const next = { url: address, token: secret, level, sites, instead: instead === true, migrated: given["migrated"] === true };
  if (address) checkUrl(address);
  if (secret) checkUrl(urlOf({ ...next, url: address || "wss://relay.invalid" }));
  return next;
}

/**
 * The URL to connect to; the token may name another one.
 * @param {Settings} settings
 */
export function urlOf({ url, token }) {
  try {
    const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const { connection_url: named } = JSON.parse(atob(payload));
    return typeof named === "string" && named && url ? named.replace(/\/+(extension|mcp)?$/, "") : url;
  } catch {
    return url; // not a JWT: the relay will refuse it
  }
}

/** @param {string} url */
function checkUrl(url) {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const here = ["127.0.0.1", "localhost"].includes(parsed?.hostname ?? "");
  if (!parsed || !["ws:", "wss:"].includes(parsed.protocol) || parsed.username || parsed.search || parsed.hash) {
    throw new Error("Enter a URL like wss://relay.example.com");
  }
  if (parsed.protocol === "ws:" && !here) throw new Error("Without TLS the token could be intercepted. Use wss://");
}
