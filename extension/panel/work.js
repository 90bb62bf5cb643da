/**
 * The state of agents' work in the worker: pending approvals, paused or working, and which agents there are. It keeps the
 * toolbar button and the context menu up to date.
 */

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {{ session: string, name: string }} ActiveAgent */

const MAX_AGENTS = 8;
const GIVE = "give:";
const KEEP_OFF = "keep-off";

export class AgentWork {
  /** @type {Set<string>} */
  #pending = new Set();
  #remote = 0;
  /** @type {readonly ActiveAgent[]} */
  #agents = [];
  #menu = Promise.resolve();
  #connected = false;
  #changed;
  #note;
  paused = false;
  working = 0;

  /** @param {{ changed: () => void, note: (message: string) => void }} wiring */
  constructor({ changed, note }) {
    this.#changed = changed;
    this.#note = note;
  }

  get pending() {
    return this.#pending.size + this.#remote;
  }

  /** @param {Params} params of `confirmation.request` */
  asked({ id }) {
    this.#pending.add(String(id));
    this.#changed();
  }

  /** @param {Params} params of `confirmation.done` */
  answered({ id }) {
    this.#pending.delete(String(id));
    this.#changed();
  }

  /** Approvals of agents over a relay. @param {number} count */
  askedRemotely(count) {
    if (count === this.#remote) return;
    this.#remote = count;
    this.#changed();
  }

  /** @param {Params} params of `agents.work` */
  change({ paused, working, agents }) {
    this.paused = paused === true;
    this.working = typeof working === "number" ? working : 0;
    const listed = /** @type {ActiveAgent[]} */ (Array.isArray(agents) ? agents.slice(0, MAX_AGENTS) : []);
    const known = listed.filter(({ session, name }) => typeof session === "string" && typeof name === "string");
    const same = this.#connected && JSON.stringify(known) === JSON.stringify(this.#agents);
    this.#agents = known;
    this.#connected = true;
    if (!same) this.#drawMenu();
    this.#changed();
  }

  /** The hub is not connected. */
  forget() {
    this.#pending.clear();
    this.#agents = [];
    this.#connected = this.paused = false;
    this.working = 0;
    this.#drawMenu();
  }

  #drawMenu() {
    const [agents, connected] = [this.#agents, this.#connected];
    this.#menu = this.#menu.then(async () => {
      await chrome.contextMenus.removeAll();
      if (!connected) return;
      const page = { contexts: /** @type {["page"]} */ (["page"]), documentUrlPatterns: ["http://*/*", "https://*/*"] };
      const create = (/** @type {string} */ id, /** @type {string} */ title) =>
        chrome.contextMenus.create({ id, title, ...page }, () => {
          const { lastError } = chrome.runtime;
          if (lastError) this.#note(`The context menu could not be changed: ${lastError.message}`);
        });
      // "&" would underline the next letter.
      for (const { session, name } of agents) create(GIVE + session, `Give this tab to ${name.replaceAll("&", "&&")}`);
      create(KEEP_OFF, "Keep agents off this site");
    });
  }
}

/**
 * Listen for choices in the context menu; call this while the worker starts.
 * @param {{ request: (method: string, params: Params) => Promise<unknown>, say: (title: string, message: string) => void }} wiring
 */
export function watchMenu({ request, say }) {
  /**
   * @param {chrome.contextMenus.OnClickData} info
   * @param {chrome.tabs.Tab | undefined} tab
   */
  async function choose({ menuItemId, pageUrl }, tab) {
    const id = String(menuItemId);
    if (id.startsWith(GIVE)) {
      const given = /** @type {{ agent: string, title: string }} */ (
        await request("sessions.give", { session: id.slice(GIVE.length), tabId: tab?.id })
      );
      say(`${given.agent} has this tab now`, "It acts here when you ask it to work in “its tab”. Release it under Agents.");
    } else if (id === KEEP_OFF) {
      const { pattern } = /** @type {{ pattern: string | null }} */ (await request("sites.page", { url: pageUrl ?? tab?.url ?? "" }));
      if (!pattern) throw new Error("This page has no site that a rule could name.");
      await request("sites.set", { pattern, level: "block" });
      say("Agents are kept off this site", `${pattern}: they neither see nor use its pages. Undo it under Sites.`);
    }
  }
  chrome.contextMenus.onClicked.addListener((info, tab) => {
    choose(info, tab).catch((error) => say("That did not work", error instanceof Error ? error.message : String(error)));
  });
}
