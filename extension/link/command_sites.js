/**
 * The sites that a command of an agent over a relay acts on, for which the person's permission is needed.
 *
 * Owns what each command acts on: the page of a tab, a URL in its parameters, or the browser itself, written "". A
 * `tabId` counts only for commands that act in that tab, since the agent chooses the parameters.
 */

import { isObject } from "./rpc.js";

/** @typedef {import("./rpc.js").Params} Params */
/** @typedef {{ sites: string[], page: string | undefined }} Targets the sites that need permission, and the site of the page that is acted in */

/** Commands that open a URL: its site is the target. */
const OPENING = ["createTab", "browser_navigate", "createWindow", "downloadFile"];
/** Commands on a site's stored data, and the parameter that names the site. */
const STORED_DATA = new Map([
  ["getCookies", "url"],
  ["setCookie", "url"],
  ["deleteCookies", "url"],
  ["clearSiteData", "origin"],
]);
/** Commands that act in the page of their tab. */
const IN_PAGE = ["forwardCDPCommand", "subscribeCDPEvents", "click", "hover", "type"];
/** Commands on a tab itself, and on the tools of its page. */
const IN_TAB = ["selectTab", "activateTab", "closeTab", "goBack", "goForward", "reloadTab", "tool.dispatch", "browser/executeTool"];
/**
 * CDP domains that reach beyond the page: traffic of the next page, cookies and storage of every site, other targets,
 * and scripts that are addressed by id.
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
 * @returns {Promise<Targets>}
 */
export async function targetsOf(name, params) {
  const parameter = STORED_DATA.get(name) ?? (OPENING.includes(name) ? "url" : undefined);
  if (parameter !== undefined) {
    const address = params[parameter];
    return { sites: [typeof address === "string" ? originOf(address) : ""], page: undefined };
  }
  const { tabId } = params;
  if (!(IN_PAGE.includes(name) || IN_TAB.includes(name)) || !Number.isSafeInteger(tabId)) return { sites: [""], page: undefined };
  // The command itself refuses a tab that does not exist.
  const tab = await chrome.tabs.get(/** @type {number} */ (tabId)).catch(() => null);
  // A tab that was just opened has only a pending URL.
  const site = originOf(tab?.url || tab?.pendingUrl || "");
  return { sites: isWide(name, params) ? [site, ""] : [site], page: IN_PAGE.includes(name) ? site : undefined };
}

/**
 * Whether a command reaches beyond the page of its tab.
 * @param {string} name
 * @param {Params} params
 */
export function isWide(name, params) {
  if (name === "subscribeCDPEvents") {
    const { events, children } = params;
    const commands = (Array.isArray(children) ? children : []).filter(isObject).map(({ method }) => String(method));
    // Commands for new frames are also sent to frames of the next page.
    return String(events).includes("Fetch.") || commands.some((method) => !/^Emulation\.|\.(enable|set\w+Enabled|setAutoAttach)$/.test(method));
  }
  if (name !== "forwardCDPCommand") return false;
  return [params, ...[params["ahead"], params["follow"]].flat().filter(isObject)].some((command) => {
    const given = isObject(command["params"]) ? command["params"] : {};
    // Without URLs these are the cookies of the page; see site_guard.js.
    return isWideMethod(command["method"]) || (command["method"] === "Network.getCookies" && given["urls"] !== undefined);
  });
}

/** @param {unknown} method */
function isWideMethod(method) {
  return typeof method === "string" && (WIDE.test(method) || WIDE_METHODS.has(method));
}

/**
 * The origin of a URL, or its scheme if it has none.
 * @param {string} url
 */
export function originOf(url) {
  if (!URL.canParse(url)) return "";
  const { origin, protocol } = new URL(url);
  return origin === "null" ? protocol : origin;
}

/**
 * A description of a command, for the person who decides.
 * @param {string} name
 * @param {Params} params
 * @param {string} site
 */
export function describeCommand(name, params, site) {
  if (OPENING.includes(name)) return "open pages";
  if (name === "tool.dispatch" || name === "browser/executeTool") return "use the page's tools";
  if (!IN_PAGE.includes(name)) return `use ${name}`;
  if (site !== "") return "act in the page";
  return /^\w+\.\w+$/.test(String(params["method"])) ? `reach beyond the page with ${params["method"]}` : "reach beyond the page";
}
