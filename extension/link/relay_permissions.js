/**
 * Permissions of agents over a relay: the level of a site (block, read, ask, act) decides whether they get nothing of it, may
 * look, may act once they are approved, or may act.
 *
 * Owns the list of commands that only look (all others act), the pending approvals, and what was approved: for one
 * connection of the relay and one site, until that connection ends. Looking shows tabs, titles, URLs and pictures, with
 * secret fields covered. Everything that gives the content of a page acts: it would also give fields and storage.
 */

import { ownerOf } from "./recipients.js";
import { FAILED, METHOD_NOT_FOUND, RpcError, isObject, textOf } from "./rpc.js";
import { describeCommand, targetsOf } from "./command_sites.js";
import { coverSecretFields } from "./relay_cover.js";
import { ownPage } from "../tabs/errors.js";

/** @typedef {import("./rpc.js").Params} Params */
/** @typedef {import("./rpc.js").Handler} Handler */
/** @typedef {import("./relay_view.js").RelayView} RelayView */
/** @typedef {{ id: string, key: string, what: string, site: string, place: string, at: number, once: boolean, decide: (allowed: boolean) => void }} Question */

const ANSWER_MS = 120_000;
/** After a denial the same request is denied for this long without asking. */
const DENIED_MS = 60_000;
/** Maximum pending approvals of one agent and of all. */
const MAX_PER_AGENT = 5;
const MAX_PENDING = 20;
/** After so many denials in a minute nothing is asked for a while: an agent can easily use a new site or connection. */
const MAX_DENIALS = 10;
const PREFIX = "relay:";
const MAX_SITE_LENGTH = 80;

const READING = new Set(["screenshot", "getState", "getTabs", "getGroups", "getWindows", "getPanels", "getAdapters"]);
/** None of these gives a value that a page or its fields contain. Scripts act, also those without side effects. */
const READING_CDP = new Set([
  ...["Accessibility", "CSS", "DOM", "Page"].flatMap((domain) => [`${domain}.enable`, `${domain}.disable`]),
  ...["DOM.getBoxModel", "DOM.getContentQuads", "DOM.getFrameOwner", "Log.enable", "Runtime.releaseObject"],
  ...["captureScreenshot", "getLayoutMetrics", "getFrameTree", "getNavigationHistory", "setLifecycleEventsEnabled"].map(
    (name) => `Page.${name}`,
  ),
  ...["Performance.enable", "Performance.getMetrics"],
]);
/** Not those of the DOM, which report what is entered in fields. */
const READING_EVENTS = /^(Page|Inspector|Target|Log)\./;

const FILES =
  "Agents over a relay have no access to files of this computer: not for file inputs, and not through file: URLs. " +
  "Send the content of a file instead; browser_upload_file of a hub does that.";

export class RelayPermissions {
  /** The relay's host, for messages. */
  place = "";
  /** @type {Map<string, Promise<boolean>>} */
  #approved = new Map();
  /** @type {Map<string, number>} */
  #denied = new Map();
  /** @type {Map<string, Question>} */
  #pending = new Map();
  #wiring;

  /** @param {{ view: RelayView, changed: () => void, watched: () => boolean, note: (message: string) => void }} wiring `watched` returns whether a panel is open, which shows approvals itself */
  constructor(wiring) {
    this.#wiring = wiring;
    chrome.notifications.onButtonClicked.addListener((notice, button) => {
      if (notice.startsWith(PREFIX)) this.answer({ id: notice.slice(PREFIX.length), allow: button === 0 });
    });
  }

  /**
   * The same commands, with permission checks.
   * @param {ReadonlyMap<string, Handler>} methods
   * @returns {Map<string, Handler>}
   */
  guard(methods) {
    return new Map([...methods].map(([name, run]) => [name, (params, call) => this.#check(name, run, params, call)]));
  }

  /**
   * @param {string} name
   * @param {Handler} run
   * @param {Params} params
   * @param {import("./rpc.js").Call} call
   */
  async #check(name, run, params, call) {
    const owner = ownerOf(call.id);
    if (!owner.startsWith("conn-")) throw new RpcError(METHOD_NOT_FOUND, "Only forwarded requests run here.");
    // Progress goes to the agent that a call is named after.
    if ("dispatchId" in params) params = { ...params, dispatchId: call.id };
    await refuseFileTab(params);
    const { view } = this.#wiring;
    await view.check(name, params);
    if (isActing(name, params)) {
      refuseFiles(params);
      const asked = new Set();
      for (;;) {
        // A tab may navigate while the person decides, and an approval is for one site only.
        const { sites, page } = await targetsOf(name, params);
        const site = sites.find((each) => !asked.has(each));
        call.site = view.levels.unrestricted ? undefined : page;
        await refuseOwnPages(params);
        if (site === undefined) break;
        if (!(await this.may(owner, site, describeCommand(name, params, site)))) throw new RpcError(FAILED, this.#denialText(site));
        if (call.cancelled) return {};
        asked.add(site);
      }
      if (asked.size > 0) await view.check(name, params);
      return view.result(name, params, await run(params, call));
    }
    const picture = name === "screenshot" || params["method"] === "Page.captureScreenshot";
    const covered = picture && !(await this.#mayAlreadyAct(owner, name, params));
    const take = async () => run(params, call);
    const result = await (covered ? coverSecretFields(/** @type {number} */ (params["tabId"]), take) : take());
    return view.result(name, params, result);
  }

  /**
   * Whether an agent may act in a page without being asked again.
   * @param {string} owner
   * @param {string} name
   * @param {Params} params
   */
  async #mayAlreadyAct(owner, name, params) {
    const { page = "" } = await targetsOf(name === "screenshot" ? "click" : name, params);
    if (this.#wiring.view.levels.of(page) === "act") return true;
    const deciding = this.#wiring.view.levels.of(page) === "ask" ? this.#approved.get(`${owner} ${page}`) : undefined;
    return Promise.race([deciding ?? false, Promise.resolve().then(() => false)]);
  }

  /** @param {string} site */
  #denialText(site) {
    const level = this.#wiring.view.levels.of(site);
    if (level === "block") return "The person keeps agents over a relay off this site.";
    const read = `Agents over a relay may only look ${site === "" ? "in this browser" : "at this site"}: its level in the settings of Tabhub is read.`;
    return level === "read" ? read : "The person at the browser did not allow it.";
  }

  /**
   * Whether an action is allowed; asks the person if the level of the site is ask.
   * @param {string} owner
   * @param {string} site "" for the browser itself
   * @param {string} what
   * @returns {Promise<boolean>}
   */
  async may(owner, site, what) {
    const level = this.#wiring.view.levels.of(site);
    if (level !== "ask") return level === "act";
    const key = `${owner} ${site}`;
    const known = this.#approved.get(key);
    if (known) return known;
    if ((this.#denied.get(key) ?? 0) > Date.now()) return false;
    this.#checkLimits(owner);
    const asking = this.#ask(key, site, what);
    this.#approved.set(key, asking);
    const allowed = await asking;
    if (!allowed) {
      this.#approved.delete(key);
      this.#denied.set(key, Date.now() + DENIED_MS);
    }
    return allowed;
  }

  /**
   * A confirmation that a page asks for, in a call over the relay.
   * @param {Params} question
   */
  async confirmForPage({ message, toolName, callId }) {
    const what = `confirm “${plain(message, 200)}” for the page's tool ${plain(toolName, 100)}`;
    const { mayAct } = this.#wiring.view.levels;
    if (mayAct) this.#checkLimits(ownerOf(callId));
    const key = `${ownerOf(callId)} ${what}`;
    const confirmed = mayAct && (await this.#ask(key, "", what, true));
    if (!confirmed && mayAct) this.#denied.set(key, Date.now() + DENIED_MS);
    return { confirmed, reason: confirmed ? "" : "The person at the browser did not confirm it." };
  }

  /**
   * Refuse more requests than a person can answer.
   * @param {string} owner
   */
  #checkLimits(owner) {
    const now = Date.now();
    for (const [key, until] of this.#denied) if (until <= now) this.#denied.delete(key);
    const hint = "Repeat the command in a minute, if it is still needed.";
    if (this.#denied.size >= MAX_DENIALS) {
      throw new RpcError(FAILED, `The person at the browser denied ${this.#denied.size} requests in the last minute, and is not asked now. ${hint}`);
    }
    const waiting = [...this.#pending.values()];
    const own = waiting.filter(({ key }) => key.startsWith(`${owner} `));
    if (waiting.length >= MAX_PENDING || own.length >= MAX_PER_AGENT) {
      throw new RpcError(FAILED, `${waiting.length} requests are already waiting for the person at the browser. ${hint}`);
    }
  }

  /** Pending approvals, as panels show them. */
  questions() {
    return [...this.#pending.values()].map(({ id, what, site, place, at, once }) => {
      return { id, what, site, place, at, once, expiresAt: at + ANSWER_MS };
    });
  }

  /** @param {Params} params */
  answer({ id, allow }) {
    const question = this.#pending.get(String(id));
    question?.decide(allow === true);
    return { known: question !== undefined };
  }

  /** No agent is connected: approvals end. Denials stay, since an agent can reconnect at once. */
  endApprovals() {
    for (const question of [...this.#pending.values()]) question.decide(false);
    this.#approved.clear();
  }

  /** The person has changed the settings: requests may be shown again. */
  clearDenials() {
    this.#denied.clear();
  }

  /**
   * @param {string} key
   * @param {string} site
   * @param {string} what
   * @param {boolean} [once] whether the decision is for this request alone
   * @returns {Promise<boolean>}
   */
  #ask(key, site, what, once = false) {
    return new Promise((resolve) => {
      const id = crypto.randomUUID();
      const decide = (/** @type {boolean} */ allowed) => {
        clearTimeout(timer);
        if (!this.#pending.delete(id)) return;
        chrome.notifications.clear(PREFIX + id).catch((error) => this.#wiring.note(textOf(error)));
        this.#wiring.changed();
        resolve(allowed);
      };
      const timer = setTimeout(() => decide(false), ANSWER_MS);
      this.#pending.set(id, { id, key, what, site, place: this.place, at: Date.now(), once, decide });
      this.#wiring.changed();
      if (this.#wiring.watched()) return;
      chrome.notifications
        .create(PREFIX + id, {
          type: "basic",
          iconUrl: chrome.runtime.getURL("icons/connected-128.png"),
          title: `An agent over ${this.place} wants to ${what}`.slice(0, 180),
          // The end of a long domain says who owns it.
          message: site.length > MAX_SITE_LENGTH ? `…${site.slice(-MAX_SITE_LENGTH)}` : site || "In this browser",
          contextMessage: once ? "Allows this once" : "Allows it until the agent disconnects",
          buttons: [{ title: "Allow" }, { title: "Deny" }],
          requireInteraction: true,
          priority: 2,
        })
        .catch((error) => this.#wiring.note(`A notification failed: ${textOf(error)}`));
    });
  }
}

/**
 * A page's text on one line, without quotes and without characters that change the direction of text.
 * @param {unknown} text
 * @param {number} most
 */
function plain(text, most) {
  return String(text).replace(/[\p{C}\p{Z}“”]+/gu, " ").trim().slice(0, most);
}

/**
 * @param {string} name
 * @param {Params} params
 */
export function isActing(name, params) {
  if (READING.has(name)) return false;
  if (name === "subscribeCDPEvents") {
    const { events, children } = params;
    if (children !== undefined) return true;
    return !Array.isArray(events) || events.some((event) => typeof event !== "string" || !READING_EVENTS.test(event));
  }
  if (name !== "forwardCDPCommand" || params["ahead"] !== undefined || params["follow"] !== undefined) return true;
  const { method } = params;
  return typeof method !== "string" || !READING_CDP.has(method);
}

/**
 * No agent acts in the extension's own pages, whatever the level: it could approve its own requests there.
 * @param {Params} params
 */
async function refuseOwnPages({ tabId }) {
  if (!Number.isSafeInteger(tabId)) return;
  const tab = await chrome.tabs.get(/** @type {number} */ (tabId)).catch(() => null);
  const own = chrome.runtime.getURL("");
  if (!tab?.url?.startsWith(own) && !tab?.pendingUrl?.startsWith(own)) return;
  throw ownPage(/** @type {number} */ (tabId));
}

/**
 * No agent gets files of this computer, whatever the level: not in a file input, and not as a page.
 * @param {Params} params
 */
function refuseFiles(params) {
  const { ahead, follow } = params;
  for (const command of [params, ...[ahead, follow].flat().filter(isObject)]) {
    const own = isObject(command["params"]) ? command["params"] : {};
    const dropped = isObject(own["data"]) ? own["data"]["files"] : undefined;
    const named = command["method"] === "DOM.setFileInputFiles" || (Array.isArray(dropped) && dropped.length > 0);
    if (named || isFile(command["url"]) || isFile(own["url"])) throw new RpcError(FAILED, FILES);
  }
}

/**
 * Nor does an agent see a file that the person has opened.
 * @param {Params} params
 */
async function refuseFileTab({ tabId }) {
  if (!Number.isSafeInteger(tabId)) return;
  const tab = await chrome.tabs.get(/** @type {number} */ (tabId)).catch(() => null);
  if (!isFile(tab?.url || tab?.pendingUrl)) return;
  throw new RpcError(FAILED, `Tab ${tabId} shows a file of this computer, to which agents over a relay have no access. Use another tab.`);
}

/** @param {unknown} url */
function isFile(url) {
  if (typeof url !== "string") return false;
  const shown = url.replace(/^[\s\0-\x1f]*view-source:/i, "");
  return URL.canParse(shown) && new URL(shown).protocol === "file:";
}
