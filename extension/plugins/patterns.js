/**
 * The browser's match patterns, such as `https://*.example.com/app/*`. Pure.
 *
 * As in the browser, a host without a port matches any port, a path includes the query but not the fragment, and
 * `*.example.com` also matches example.com.
 */

const WEB = ["http", "https"];

/**
 * Whether a URL matches a pattern; an invalid pattern matches nothing.
 * @param {string} pattern
 * @param {string} url
 */
export function matches(pattern, url) {
  const parsed = URL.parse(url);
  if (!parsed) return false;
  const scheme = parsed.protocol.slice(0, -1);
  if (pattern === "<all_urls>") return WEB.includes(scheme);
  const found = /^(\*|https?):\/\/(\*|(?:\*\.)?[^/*:[]+|\[[^\]/]+\])(?::(\*|\d+))?(\/.*)$/.exec(pattern);
  if (!found) return false;
  const [, wantedScheme = "", host = "", port = "*", path = ""] = found;
  if (wantedScheme === "*" ? !WEB.includes(scheme) : wantedScheme !== scheme) return false;
  const here = parsed.port || (scheme === "https" ? "443" : "80");
  return (port === "*" || port === here) && hostMatches(host.toLowerCase(), parsed.hostname) && globMatches(path, parsed);
}

/**
 * Whether a URL matches any of the patterns.
 * @param {readonly string[]} patterns
 * @param {string} url
 */
export function matchesAny(patterns, url) {
  return patterns.some((pattern) => matches(pattern, url));
}

/**
 * @param {string} wanted
 * @param {string} host
 */
function hostMatches(wanted, host) {
  if (wanted === "*" || wanted === host) return true;
  if (!wanted.startsWith("*.")) return false;
  const below = wanted.slice(2);
  return host === below || host.endsWith(`.${below}`);
}

/**
 * Literal parts are searched from left to right, so that no pattern needs backtracking.
 * @param {string} pattern
 * @param {URL} url
 */
function globMatches(pattern, { pathname, search }) {
  const text = pathname + search;
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const piece of others) {
    const found = text.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return text.length - at >= last.length && text.endsWith(last);
}
