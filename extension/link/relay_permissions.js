/**
 * What agents over a relay may do in this browser: looking is allowed, acting is as the person set it: off, ask, auto.
 *
 * Owns the list of what is looking (everything else is acting), the questions that wait for the person, and what was
 * granted: to one connection of the relay, for one site, until that connection's end.
 */

import { ownerOf } from "./recipients.js";
import { FAILED, METHOD_NOT_FOUND, RpcError, isObject, textOf } from "./rpc.js";
import { aboutOf, wordsFor } from "./command_sites.js";
import { ownPage } from "../tabs/errors.js";

/** @typedef {import("./rpc.js").Params} Params */
/** @typedef {import("./rpc.js").Handler} Handler */
/** @typedef {"off" | "ask" | "auto"} Level */
/** @typedef {{ id: string, key: string, what: string, site: string, place: string, at: number, once: boolean, decide: (allowed: boolean) => void }} Question */

const ANSWER_MS = 120_000;
/** After a refusal the same is refused for this long without asking again. */
const REFUSED_MS = 60_000;
/** Questions that may wait at once, of one agent and of all. */
const OF_ONE = 5;
const MOST_QUESTIONS = 20;
/** After so many refusals in a minute nothing is asked for the rest of it: a new site or connection is found easily. */
const PATIENCE = 10;
const PREFIX = "relay:";
const LONGEST_SITE = 80;

const LOOKING = new Set(["screenshot", "getState", "getTabs", "getGroups", "getWindows", "getPanels", "getAdapters"]);
const LOOKING_CDP = new Set([
  ...["enable", "disable", "getFullAXTree", "getPartialAXTree", "getRootAXNode", "queryAXTree"].map(
    (name) => `Accessibility.${name}`,
  ),
  ...["enable", "disable", "getDocument", "describeNode", "getBoxModel", "getContentQuads", "querySelector"].map(
    (name) => `DOM.${name}`,
  ),
  ...["querySelectorAll", "getOuterHTML", "getAttributes", "getFrameOwner", "resolveNode"].map((name) => `DOM.${name}`),
  ...["enable", "disable", "captureScreenshot", "getLayoutMetrics", "getFrameTree", "getNavigationHistory"].map(
    (name) => `Page.${name}`,
  ),
  ...["CSS.enable", "CSS.disable", "CSS.getComputedStyleForNode", "DOMSnapshot.captureSnapshot", "Log.enable"],
  ...["Page.setLifecycleEventsEnabled", "Performance.enable", "Performance.getMetrics", "Runtime.releaseObject"],
]);
/** Scripts are acting, unless the browser itself sees to it that they change nothing. */
const SCRIPTS = ["Runtime.evaluate", "Runtime.callFunctionOn"];
const LOOKING_EVENTS = /^(Page|DOM|Accessibility|Inspector|Target|Log)\./;

const FILES =
  "Agents over a relay get no files of this machine: neither can they name any for a field, nor open file: addresses. " +
  "Send what a file holds instead; browser_upload_file of a hub does that.";

export class Gate {
  /** @type {Level} */
  level = "ask";
  /** Which relay, in words. */
  place = "";
  /** @type {Map<string, Promise<boolean>>} */
  #granted = new Map();
  /** @type {Map<string, number>} */
  #refused = new Map();
  /** @type {Map<string, Question>} */
  #questions = new Map();
  #wiring;

  /** @param {{ changed: () => void, watched: () => boolean, note: (message: string) => void }} wiring `watched` says whether a panel is open, which asks by itself */
  constructor(wiring) {
    this.#wiring = wiring;
    chrome.notifications.onButtonClicked.addListener((notice, button) => {
      if (notice.startsWith(PREFIX)) this.answer({ id: notice.slice(PREFIX.length), allow: button === 0 });
    });
  }

  /**
   * The same commands, behind the gate.
   * @param {ReadonlyMap<string, Handler>} methods
   * @returns {Map<string, Handler>}
   */
  guard(methods) {
    return new Map([...methods].map(([name, run]) => [name, (params, call) => this.#pass(name, run, params, call)]));
  }

  /**
   * @param {string} name
   * @param {Handler} run
   * @param {Params} params
   * @param {import("./rpc.js").Call} call
   */
  async #pass(name, run, params, call) {
    const owner = ownerOf(call.id);
    if (!owner.startsWith("conn-")) throw new RpcError(METHOD_NOT_FOUND, "Only forwarded requests run here.");
    await keepOffFileTabs(params);
    if (isActing(name, params)) {
      keepOffFiles(params);
      const asked = new Set();
      for (;;) {
        // A person takes their time, and tabs move on: what they allowed for one site holds for no other.
        const { sites, page } = await aboutOf(name, params);
        const site = sites.find((each) => !asked.has(each));
        call.site = this.level === "auto" ? undefined : page;
        await keepOffPanel(params);
        if (site === undefined) break;
        if (!(await this.may(owner, site, wordsFor(name, params, site)))) throw new RpcError(FAILED, this.#refusal());
        if (call.cancelled) return {};
        asked.add(site);
      }
    }
    return run(params, call);
  }

  #refusal() {
    const off = "Agents over a relay may only look in this browser: acting is off in its Tabhub settings.";
    return this.level === "off" ? off : "The person at the browser did not allow it.";
  }

  /**
   * Whether something that acts is allowed; the person is asked if it is to be asked.
   * @param {string} owner
   * @param {string} site "" is the browser itself
   * @param {string} what
   * @returns {Promise<boolean>}
   */
  async may(owner, site, what) {
    if (this.level !== "ask") return this.level === "auto";
    const key = `${owner} ${site}`;
    const known = this.#granted.get(key);
    if (known) return known;
    if ((this.#refused.get(key) ?? 0) > Date.now()) return false;
    this.#spare(owner);
    const asking = this.#ask(key, site, what);
    this.#granted.set(key, asking);
    const allowed = await asking;
    if (!allowed) {
      this.#granted.delete(key);
      this.#refused.set(key, Date.now() + REFUSED_MS);
    }
    return allowed;
  }

  /**
   * A page's own question, in a call over the relay.
   * @param {Params} question
   */
  async asked({ message, toolName, callId }) {
    const what = `confirm “${plain(message, 200)}” for the page's tool ${plain(toolName, 100)}`;
    if (this.level !== "off") this.#spare(ownerOf(callId));
    const key = `${ownerOf(callId)} ${what}`;
    const confirmed = this.level !== "off" && (await this.#ask(key, "", what, true));
    if (!confirmed && this.level !== "off") this.#refused.set(key, Date.now() + REFUSED_MS);
    return { confirmed, reason: confirmed ? "" : "The person at the browser did not confirm it." };
  }

  /**
   * Put no more questions to a person than one can answer.
   * @param {string} owner
   */
  #spare(owner) {
    const now = Date.now();
    for (const [key, until] of this.#refused) if (until <= now) this.#refused.delete(key);
    const again = "Repeat the command in a minute, if it is still wanted.";
    if (this.#refused.size >= PATIENCE) {
      throw new RpcError(FAILED, `The person at the browser refused ${this.#refused.size} times in the last minute, and is not asked now. ${again}`);
    }
    const waiting = [...this.#questions.values()];
    const own = waiting.filter(({ key }) => key.startsWith(`${owner} `));
    if (waiting.length >= MOST_QUESTIONS || own.length >= OF_ONE) {
      throw new RpcError(FAILED, `${waiting.length} questions wait for the person at the browser already. ${again}`);
    }
  }

  /** What waits for the person. */
  questions() {
    return [...this.#questions.values()].map(({ id, what, site, place, at, once }) => {
      return { id, what, site, place, at, once, expiresAt: at + ANSWER_MS };
    });
  }

  /** @param {Params} params */
  answer({ id, allow }) {
    const question = this.#questions.get(String(id));
    question?.decide(allow === true);
    return { known: question !== undefined };
  }

  /** Nobody is connected any more: nothing is granted. What was refused stays so: whoever asks can come back at once. */
  forget() {
    for (const question of [...this.#questions.values()]) question.decide(false);
    this.#granted.clear();
  }

  /** The person has set it anew: questions may be put as before. */
  forgive() {
    this.#refused.clear();
  }

  /**
   * @param {string} key
   * @param {string} site
   * @param {string} what
   * @param {boolean} [once] whether the answer holds for this question alone
   * @returns {Promise<boolean>}
   */
  #ask(key, site, what, once = false) {
    return new Promise((resolve) => {
      const id = crypto.randomUUID();
      const decide = (/** @type {boolean} */ allowed) => {
        clearTimeout(timer);
        if (!this.#questions.delete(id)) return;
        chrome.notifications.clear(PREFIX + id).catch((error) => this.#wiring.note(textOf(error)));
        this.#wiring.changed();
        resolve(allowed);
      };
      const timer = setTimeout(() => decide(false), ANSWER_MS);
      this.#questions.set(id, { id, key, what, site, place: this.place, at: Date.now(), once, decide });
      this.#wiring.changed();
      if (this.#wiring.watched()) return;
      chrome.notifications
        .create(PREFIX + id, {
          type: "basic",
          iconUrl: chrome.runtime.getURL("icons/connected-128.png"),
          title: `An agent over ${this.place} wants to ${what}`.slice(0, 180),
          // The end of a long name is what says whose it is.
          message: site.length > LONGEST_SITE ? `…${site.slice(-LONGEST_SITE)}` : site || "In this browser",
          contextMessage: once ? "Allowed this once" : "Allowed until it disconnects",
          buttons: [{ title: "Allow" }, { title: "Deny" }],
          requireInteraction: true,
          priority: 2,
        })
        .catch((error) => this.#wiring.note(`A notification failed: ${textOf(error)}`));
    });
  }
}

/**
 * What a page says, on one line, without quotes that would end ours or characters that turn text around.
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
  if (LOOKING.has(name)) return false;
  if (name === "subscribeCDPEvents") {
    const { events, children } = params;
    if (children !== undefined) return true;
    return !Array.isArray(events) || events.some((event) => typeof event !== "string" || !LOOKING_EVENTS.test(event));
  }
  if (name !== "forwardCDPCommand" || params["ahead"] !== undefined || params["follow"] !== undefined) return true;
  const { method, params: given } = params;
  if (typeof method !== "string") return true;
  if (SCRIPTS.includes(method)) return !(isObject(given) && given["throwOnSideEffect"] === true);
  return !LOOKING_CDP.has(method);
}

/**
 * No agent acts in the extension's own pages, whatever is set: it would answer its own questions there.
 * @param {Params} params
 */
async function keepOffPanel({ tabId }) {
  if (!Number.isSafeInteger(tabId)) return;
  const tab = await chrome.tabs.get(/** @type {number} */ (tabId)).catch(() => null);
  const own = chrome.runtime.getURL("");
  if (!tab?.url?.startsWith(own) && !tab?.pendingUrl?.startsWith(own)) return;
  throw ownPage(/** @type {number} */ (tabId));
}

/**
 * No agent is given files of the person's machine, whatever is set: neither into a field nor as a page.
 * @param {Params} params
 */
function keepOffFiles(params) {
  const { ahead, follow } = params;
  for (const wish of [params, ...[ahead, follow].flat().filter(isObject)]) {
    const own = isObject(wish["params"]) ? wish["params"] : {};
    const dropped = isObject(own["data"]) ? own["data"]["files"] : undefined;
    const named = wish["method"] === "DOM.setFileInputFiles" || (Array.isArray(dropped) && dropped.length > 0);
    if (named || isFile(wish["url"]) || isFile(own["url"])) throw new RpcError(FAILED, FILES);
  }
}

/**
 * Nor does one see a file that the person has open.
 * @param {Params} params
 */
async function keepOffFileTabs({ tabId }) {
  if (!Number.isSafeInteger(tabId)) return;
  const tab = await chrome.tabs.get(/** @type {number} */ (tabId)).catch(() => null);
  if (!isFile(tab?.url || tab?.pendingUrl)) return;
  throw new RpcError(FAILED, `Tab ${tabId} shows a file of this machine, and agents over a relay get none. Use another tab.`);
}

/** @param {unknown} url */
function isFile(url) {
  if (typeof url !== "string") return false;
  const shown = url.replace(/^[\s\0-\x1f]*view-source:/i, "");
  return URL.canParse(shown) && new URL(shown).protocol === "file:";
}
