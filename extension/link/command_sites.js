/**
 * Which sites a command of an agent over a relay is about: those the person is asked for.
 *
 * Owns what commands act on: the page of a tab, an address they name, or the browser itself, which is "". An agent says
 * itself what it sends along: a tab that a command does not act in says nothing about it.
 */

import { isObject } from "./rpc.js";

/** @typedef {import("./rpc.js").Params} Params */
/** @typedef {{ sites: string[], page: string | undefined }} About what is asked for, and the site of the page that is acted in */

/** Commands that lead to an address: that site is the one meant. */
const LEADING = ["createTab", "browser_navigate", "createWindow", "downloadFile"];
/** Commands on what the browser keeps for a site, and what names the site. */
const KEPT = new Map([
  ["getCookies", "url"],
  ["setCookie", "url"],
  ["deleteCookies", "url"],
  ["clearSiteData", "origin"],
]);
/** Commands in the page of the tab they name. */
const IN_PAGE = ["forwardCDPCommand", "subscribeCDPEvents", "click", "hover", "type"];
/** Commands on a tab itself, and those of the tools its page has. */
const IN_TAB = ["selectTab", "activateTab", "closeTab", "goBack", "goForward", "reloadTab", "tool.dispatch", "browser/executeTool"];
/**
 * Of the DevTools Protocol, what reaches further than the page it is sent to: the traffic of the page that comes next,
 * cookies and storage of every site, other targets, and code that waits for scripts by their number.
 */
const WIDE =
  /^(Fetch|Storage|DOMStorage|IndexedDB|CacheStorage|Database|ServiceWorker|BackgroundService|Target|Browser|Tracing|WebAuthn|Security|Autofill|Debugger|FedCm|Extensions)\./;
const WIDE_METHODS = new Set([
  ...["getAllCookies", "setCookie", "setCookies", "deleteCookies", "clearBrowserCookies", "clearBrowserCache"].map(
    (name) => `Network.${name}`,
  ),
  ...["Network.loadNetworkResource", "Page.setDocumentContent"],
]);

/**
 * @param {string} name
 * @param {Params} params
 * @returns {Promise<About>}
 */
export async function aboutOf(name, params) {
  const kept = KEPT.get(name) ?? (LEADING.includes(name) ? "url" : undefined);
  if (kept !== undefined) {
    const address = params[kept];
    return { sites: [typeof address === "string" ? originOf(address) : ""], page: undefined };
  }
  const { tabId } = params;
  if (!(IN_PAGE.includes(name) || IN_TAB.includes(name)) || !Number.isSafeInteger(tabId)) return { sites: [""], page: undefined };
  // A tab that is not there is refused by the command itself.
  const tab = await chrome.tabs.get(/** @type {number} */ (tabId)).catch(() => null);
  // One that is just opened has no address yet, only one it goes to.
  const site = originOf(tab?.url || tab?.pendingUrl || "");
  return { sites: isWide(name, params) ? [site, ""] : [site], page: IN_PAGE.includes(name) ? site : undefined };
}

/**
 * @param {string} name
 * @param {Params} params
 */
function isWide(name, params) {
  if (name === "subscribeCDPEvents") {
    const { events, children } = params;
    const told = (Array.isArray(children) ? children : []).filter(isObject).map(({ method }) => String(method));
    // What frames are told before they run is told to those of the next page, too.
    return String(events).includes("Fetch.") || told.some((method) => !/^Emulation\.|\.(enable|set\w+Enabled|setAutoAttach)$/.test(method));
  }
  if (name !== "forwardCDPCommand") return false;
  return [params, ...[params["ahead"], params["follow"]].flat().filter(isObject)].some((command) => {
    const given = isObject(command["params"]) ? command["params"] : {};
    // Without addresses they are those of the page, and see site_guard.js.
    return reaches(command["method"]) || (command["method"] === "Network.getCookies" && given["urls"] !== undefined);
  });
}

/** @param {unknown} method */
function reaches(method) {
  return typeof method === "string" && (WIDE.test(method) || WIDE_METHODS.has(method));
}

/**
 * The origin of an address, or its scheme if it has none.
 * @param {string} url
 */
export function originOf(url) {
  if (!URL.canParse(url)) return "";
  const { origin, protocol } = new URL(url);
  return origin === "null" ? protocol : origin;
}

/**
 * What a command does, in words for the person who is asked.
 * @param {string} name
 * @param {Params} params
 * @param {string} site
 */
export function wordsFor(name, params, site) {
  if (LEADING.includes(name)) return "open pages";
  if (name === "tool.dispatch" || name === "browser/executeTool") return "use the page's tools";
  if (!IN_PAGE.includes(name)) return `use ${name}`;
  if (site !== "") return "act in the page";
  return /^\w+\.\w+$/.test(String(params["method"])) ? `reach beyond the page with ${params["method"]}` : "reach beyond the page";
}
