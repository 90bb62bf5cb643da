/**
 * What the panel knows: the hub's state as last read, the calls that run, and what views keep. It turns events into
 * changes of these, and tells when to draw again. It draws nothing itself.
 */

import { Chat } from "./chat.js";
import { FRESH_MS, agentName } from "./format.js";
import { Source, errorText } from "./worker_client.js";

/** @typedef {import("./types.js").App} App */
/** @typedef {import("./types.js").Approval} Approval */
/** @typedef {import("./types.js").Decision} Decision */
/** @typedef {import("./types.js").HubState} HubState */
/** @typedef {import("./types.js").Running} Running */
/** @typedef {{ text: string, tone: "good" | "bad", id: number }} Notice */

const MOST_ACTIVITY = 50;
const MOST_RUNNING = 200;
/** Calls may end by the hundred in a second; the log is read at most this often. */
const LOG_MS = 150;
const NOTICE_MS = 6_000;
/** Changes that are shown before the hub has made them. */
const AT_ONCE = /^config\.|\.set$/;
/** Cards move up when one is answered; a click meant for the one before must not answer the next. */
const SETTLE_MS = 600;

/** @implements {App} */
export class Store {
  /** @type {HubState | null} */
  state = null;
  /** Why the state could not be read. @type {string | null} */
  failed = null;
  /** @type {import("./connection_text.js").PanelState | null} */
  link = null;
  /** @type {import("./types.js").RelayFacts | null} */
  relay = null;
  /** @type {Map<string, Running>} */
  running = new Map();
  /** @type {Record<string, any>} */
  ui = {};
  /** Whether cards have just moved, and no click on one counts. */
  settling = false;
  /** @type {Notice | null} */
  notice = null;
  /** Told to people who cannot see it. */
  spoken = "";
  #draw;
  #drawing = false;
  #reading = false;
  #again = false;
  /** Changes of settings under way, and how many there were. */
  #changing = 0;
  #changes = 0;
  #notices = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #settled;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #log;
  #source;
  /** What was decided here; the hub may still list it for a moment. @type {Set<string>} */
  #decided = new Set();

  /** @param {() => void} draw */
  constructor(draw) {
    this.#draw = draw;
    this.#source = new Source((method, params) => this.#heard(method, params));
    this.chat = new Chat({ ask: this.ask, changed: this.changed, say: this.say });
  }

  /** All that waits for the person, the hub's first. @returns {readonly Approval[]} */
  get waiting() {
    const over = (this.relay?.questions ?? []).filter(({ id }) => !this.#decided.has(id)).map(relayed);
    return [...(this.state?.approvals ?? []), ...over];
  }

  /** Begin. */
  open() {
    this.#source.open();
  }

  /** Draw again, once however often it is asked for. */
  changed = () => {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#draw();
    });
  };

  /** @type {App["go"]} */
  go = (view) => {
    location.hash = view;
  };

  /** @type {App["ask"]} */
  ask = (method, params) => this.#source.ask(method, params);

  /** @type {App["act"]} */
  act = async (method, params, said) => {
    const change = AT_ONCE.test(method) ? 1 : 0;
    this.#changing += change;
    this.#changes += change;
    try {
      const result = await this.ask(method, params);
      if (said) this.say(said);
      return result ?? {};
    } catch (error) {
      this.say(errorText(error), "bad");
      return undefined;
    } finally {
      this.#changing -= change;
      void this.read();
    }
  };

  /** @type {App["say"]} */
  say = (text, tone = "good") => {
    const id = ++this.#notices;
    this.notice = { text, tone, id };
    this.changed();
    if (tone === "good") setTimeout(() => this.hush(id), NOTICE_MS);
  };

  /**
   * Take a notice away.
   * @param {number} id
   */
  hush(id) {
    if (this.notice?.id !== id) return;
    this.notice = null;
    this.changed();
  }

  /** @type {App["decide"]} */
  decide = (approval, decision, reason) => {
    if (!this.settling) this.#decide(approval, decision, reason);
  };

  /** @type {App["decideAll"]} */
  decideAll = (approvals, decision) => {
    if (!this.settling) for (const approval of approvals) this.#decide(approval, decision);
  };

  /**
   * @param {Approval} approval
   * @param {Decision} decision
   * @param {string} [reason]
   */
  #decide(approval, decision, reason) {
    if (this.#decided.has(approval.id)) return;
    this.#decided.add(approval.id);
    this.#without(approval.id);
    const told = approval.relay
      ? this.ask("relay.answer", { id: approval.id, allow: decision !== "deny" })
      : this.ask("confirmation.response", { id: approval.id, decision, ...(reason ? { reason } : {}) });
    told.catch((error) => {
      this.#decided.delete(approval.id);
      this.say(`Your decision did not reach the hub: ${errorText(error)}`, "bad");
      void this.read();
    });
  }

  /** Read the state; asked for while it is being read, it is read once more. */
  async read() {
    if (this.#reading) {
      this.#again = true;
      return;
    }
    this.#reading = true;
    try {
      do {
        this.#again = false;
        const changes = this.#changes;
        const [state, link] = await Promise.all([this.ask("config.getState"), this.ask("link.state")]);
        this.link = link;
        // Read before a change that is shown already, it would undo that for a moment; it is read again after it.
        if (this.#changing === 0 && changes === this.#changes) this.#took(state);
      } while (this.#again);
      this.failed = null;
    } catch (error) {
      this.failed = errorText(error);
    } finally {
      this.#reading = false;
      this.changed();
    }
  }

  /** @param {HubState} state */
  #took(state) {
    const before = (this.state?.approvals ?? []).map(({ id }) => id).join();
    state.approvals = (state.approvals ?? []).filter(({ id }) => !this.#decided.has(id));
    if (before !== state.approvals.map(({ id }) => id).join()) this.#settle();
    this.state = state;
  }

  #settle() {
    this.settling = true;
    clearTimeout(this.#settled);
    this.#settled = setTimeout(() => {
      this.settling = false;
      this.changed();
    }, SETTLE_MS);
  }

  /**
   * @param {string} method
   * @param {any} params
   */
  #heard(method, params) {
    if (method === "panel.opened") void this.#opened();
    else if (method === "link.state") this.#linked(params);
    else if (method === "panel.changed" || method === "plugins.changed") void this.read();
    else if (method === "tool.invocationStart") this.#started(params);
    else if (method === "tool.invocationEnd") this.#ended(params);
    else if (method === "confirmation.request") this.#asked(params);
    else if (method === "confirmation.done") this.#without(params.id);
    else if (method === "relay.changed") this.#relayed(params);
    else if (method === "agent.event") this.chat.heard(params);
    this.changed();
  }

  async #opened() {
    const relay = this.ask("relay.state").catch(() => null);
    this.#linked(await this.ask("link.state").catch(() => this.link));
    this.relay = await relay;
    this.changed();
  }

  /** @param {any} link */
  #linked(link) {
    const was = this.link?.link.phase;
    this.link = link;
    if (link?.link.phase === "connected") {
      if (was !== "connected" || !this.state) {
        void this.read();
        void this.chat.open();
      }
    } else {
      this.state = null;
      this.running.clear();
    }
    this.changed();
  }

  /** @param {any} call */
  #started(call) {
    if (this.running.size >= MOST_RUNNING) this.running.delete(this.running.keys().next().value ?? "");
    this.running.set(call.callId, { ...call, at: Date.now() });
  }

  /** @param {any} end */
  #ended(end) {
    if (this.running.delete(end.callId)) this.#log ??= setTimeout(() => void this.#readLog(), LOG_MS);
  }

  /** What the calls that ended left in the log. */
  async #readLog() {
    this.#log = undefined;
    const { entries } = await this.ask("audit.list", { limit: MOST_ACTIVITY }).catch(() => ({ entries: null }));
    if (this.state && entries) this.state.activity = entries;
    this.changed();
    // Once more when they are not new any longer.
    setTimeout(this.changed, FRESH_MS);
  }

  /** @param {Approval} approval */
  #asked(approval) {
    this.spoken = `${agentName(approval.client, approval.token)} asks for your approval.`;
    if (!this.state) return void this.read();
    if (this.state.approvals.some(({ id }) => id === approval.id)) return;
    // At the end: what a person is about to click stays where it is.
    this.state.approvals = [...this.state.approvals, approval];
    if (this.state.approvals.length === 1) this.#settle();
  }

  /** @param {import("./types.js").RelayFacts} relay */
  #relayed(relay) {
    const before = (this.relay?.questions ?? []).map(({ id }) => id);
    const fresh = relay.questions.find(({ id }) => !before.includes(id));
    if (fresh) this.spoken = `An agent over ${fresh.place} asks for your approval.`;
    // Those that went let others move up; a new one comes last.
    if (before.some((id) => relay.questions.every((each) => each.id !== id)) || this.waiting.length === 0)
      this.#settle();
    this.relay = relay;
  }

  /** @param {string} id */
  #without(id) {
    const known = [...(this.state?.approvals ?? []), ...(this.relay?.questions ?? [])];
    if (known.every((each) => each.id !== id)) return;
    if (this.state) this.state.approvals = this.state.approvals.filter((approval) => approval.id !== id);
    this.#settle();
    this.changed();
  }
}

/**
 * A question of an agent over a relay, as all questions are.
 * @param {import("./types.js").RelayFacts["questions"][number]} question
 * @returns {Approval}
 */
function relayed({ id, what, site, place, expiresAt, once }) {
  const tool = `${what[0]?.toUpperCase() ?? ""}${what.slice(1)}`;
  const choices = /** @type {Decision[]} */ ([once ? "allow_once" : "allow_session", "deny"]);
  return { id, tool, params: {}, client: `An agent over ${place}`, origin: site, choices, expiresAt, relay: true };
}
