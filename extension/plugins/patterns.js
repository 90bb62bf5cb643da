/**
 * The browser's match patterns, such as `https://*.example.com/app/*`: which addresses they mean. Pure.
 *
 * As the browser has it: a host without a port means any port, a path covers the query and not the fragment, and
 * `*.example.com` means example.com too.
 */

const WEB = ["http", "https"];

/**
 * Whether an address fits a pattern; one that is no pattern fits nothing.
 * @param {string} pattern
 * @param {string} url
 */
export function fits(pattern, url) {
  const parsed = URL.parse(url);
  if (!parsed) return false;
  const scheme = parsed.protocol.slice(0, -1);
  if (pattern === "<all_urls>") return WEB.includes(scheme);
  const found = /^(\*|https?):\/\/(\*|(?:\*\.)?[^/*:[]+|\[[^\]/]+\])(?::(\*|\d+))?(\/.*)$/.exec(pattern);
  if (!found) return false;
  const [, wantedScheme = "", host = "", port = "*", path = ""] = found;
  if (wantedScheme === "*" ? !WEB.includes(scheme) : wantedScheme !== scheme) return false;
  const here = parsed.port || (scheme === "https" ? "443" : "80");
  return (port === "*" || port === here) && hostFits(host.toLowerCase(), parsed.hostname) && globFits(path, parsed);
}

/**
 * Whether an address fits any of some patterns.
 * @param {readonly string[]} patterns
 * @param {string} url
 */
export function fitsAny(patterns, url) {
  return patterns.some((pattern) => fits(pattern, url));
}

/**
 * @param {string} wanted
 * @param {string} host
 */
function hostFits(wanted, host) {
  if (wanted === "*" || wanted === host) return true;
  if (!wanted.startsWith("*.")) return false;
  const below = wanted.slice(2);
  return host === below || host.endsWith(`.${below}`);
}

/**
 * Piece by piece from the left, so that no pattern takes long.
 * @param {string} pattern
 * @param {URL} url
 */
function globFits(pattern, { pathname, search }) {
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
