/**
 * The panel's state: the hub's state as last read, the running calls, the person's changes that are not confirmed yet,
 * and what views store. It turns events into changes of these and requests redraws. It draws nothing itself.
 */

import { Chat } from "./chat.js";
import { HIGHLIGHT_MS, agentName } from "./format.js";
import { WorkerClient, errorText } from "./worker_client.js";

/** @typedef {import("./types.js").App} App */
/** @typedef {import("./types.js").Approval} Approval */
/** @typedef {import("./types.js").Decision} Decision */
/** @typedef {import("./types.js").HubState} HubState */
/** @typedef {import("./types.js").WiderScope} WiderScope */
/** @typedef {import("./types.js").RelayFacts} RelayFacts */
/** @typedef {import("./types.js").Running} Running */
/** @typedef {(state: HubState) => void} Change */
/** @typedef {{ text: string, tone: "good" | "bad", id: number }} Notice */

const MOST_ACTIVITY = 50;
const MOST_RUNNING = 200;
/** Hundreds of calls may end in a second; the log is read at most this often. */
const LOG_MS = 150;
const NOTICE_MS = 6_000;
/** Cards move up when one is answered; a click meant for the previous card must not answer the next. */
const SETTLE_MS = 600;

/** @implements {App} */
export class Store {
  /** @type {HubState | null} */
  state = null;
  /** Why the state could not be read. @type {string | null} */
  failed = null;
  /** @type {import("./connection_text.js").PanelState | null} */
  link = null;
  /** @type {RelayFacts | null} */
  relay = null;
  /** @type {string | null} */
  page = null;
  /** @type {Map<string, Running>} */
  running = new Map();
  /** @type {Record<string, any>} */
  ui = {};
  /** Whether cards have just moved, so that clicks on them are ignored. */
  settling = false;
  /** @type {Notice | null} */
  notice = null;
  /** Announced by screen readers. */
  announcement = "";
  #draw;
  #drawing = false;
  #reading = false;
  #readAgain = false;
  /** Changes that are shown before the hub has confirmed them: they are applied to every state that is read. @type {Set<Change>} */
  #pending = new Set();
  /** Pending changes that the hub has answered: the next state to be requested reflects them. @type {Set<Change>} */
  #answered = new Set();
  /** Changes of the relay's settings that the worker has not answered. @type {Set<Partial<RelayFacts>>} */
  #relayChanges = new Set();
  #notices = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #settleTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #logTimer;
  #worker;
  /** Approvals that were answered here; the hub may still list them for a moment. @type {Set<string>} */
  #decided = new Set();

  /** @param {() => void} draw */
  constructor(draw) {
    this.#draw = draw;
    this.#worker = new WorkerClient((method, params) => this.#receive(method, params));
    this.chat = new Chat({ ask: this.ask, changed: this.changed, say: this.say });
  }

  /** Pending approvals: the hub's first, then the relay's. @returns {readonly Approval[]} */
  get waiting() {
    const remote = (this.relay?.questions ?? []).filter(({ id }) => !this.#decided.has(id)).map(relayApproval);
    return [...(this.state?.approvals ?? []), ...remote];
  }

  open() {
    this.#worker.open();
  }

  /** Request a redraw; several requests in one frame draw once. */
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
  ask = (method, params) => this.#worker.ask(method, params);

  /** @type {App["act"]} */
  act = async (method, params, success, change) => {
    if (change) {
      this.#pending.add(change);
      if (this.state) change(this.state);
      this.changed();
    }
    try {
      const result = await this.ask(method, params);
      if (success) this.say(success);
      return result ?? {};
    } catch (error) {
      this.say(errorText(error), "bad");
      return undefined;
    } finally {
      if (change) this.#answered.add(change);
      void this.read();
    }
  };

  /** @type {App["changeRelay"]} */
  changeRelay = async (changes, success) => {
    const { token: _, ...shown } = changes;
    this.#relayChanges.add(shown);
    if (this.relay) this.#showRelay(this.relay);
    try {
      const relay = await this.ask("relay.set", changes);
      this.#relayChanges.delete(shown);
      this.#showRelay(relay);
      if (success) this.say(success);
      return true;
    } catch (error) {
      this.#relayChanges.delete(shown);
      this.say(errorText(error), "bad");
      const relay = await this.ask("relay.state").catch(() => null);
      if (relay) this.#showRelay(relay);
      return false;
    }
  };

  /** @type {App["say"]} */
  say = (text, tone = "good") => {
    const id = ++this.#notices;
    this.notice = { text, tone, id };
    this.changed();
    if (tone === "good") setTimeout(() => this.closeNotice(id), NOTICE_MS);
  };

  /** @param {number} id */
  closeNotice(id) {
    if (this.notice?.id !== id) return;
    this.notice = null;
    this.changed();
  }

  /** @type {App["decide"]} */
  decide = (approval, decision, reason, wider) => {
    if (!this.settling) this.#decide(approval, decision, reason, wider);
  };

  /** @type {App["decideAll"]} */
  decideAll = (approvals, decision) => {
    if (!this.settling) for (const approval of approvals) this.#decide(approval, decision);
  };

  /**
   * @param {Approval} approval
   * @param {Decision} decision
   * @param {string} [reason]
   * @param {WiderScope[]} [wider]
   */
  #decide(approval, decision, reason, wider = []) {
    if (this.#decided.has(approval.id)) return;
    this.#decided.add(approval.id);
    this.#removeApproval(approval.id);
    const answered = approval.relay
      ? this.ask("relay.answer", { id: approval.id, allow: decision !== "deny" })
      : this.ask("confirmation.response", {
          id: approval.id,
          decision,
          ...(reason ? { reason } : {}),
          ...(wider.length > 0 ? { wider } : {}),
        });
    if (decision === "allow_always") {
      void answered.then(() => this.say("Always allowed from now on. You can undo it under Sites."), () => {});
    }
    answered.catch((error) => {
      this.#decided.delete(approval.id);
      this.say(`Your decision did not reach the hub: ${errorText(error)}`, "bad");
      void this.read();
    });
  }

  /** Read the state; a request during a read causes one more read after it. */
  async read() {
    if (this.#reading) {
      this.#readAgain = true;
      return;
    }
    this.#reading = true;
    try {
      do {
        this.#readAgain = false;
        const answered = [...this.#answered];
        const [state, link] = await Promise.all([this.ask("config.getState"), this.ask("link.state")]);
        this.link = link;
        for (const change of answered) {
          this.#answered.delete(change);
          this.#pending.delete(change);
        }
        this.#replaceState(state);
      } while (this.#readAgain);
      this.failed = null;
    } catch (error) {
      this.failed = errorText(error);
    } finally {
      this.#reading = false;
      this.changed();
    }
  }

  /** @param {HubState} state */
  #replaceState(state) {
    for (const change of this.#pending) change(state);
    const before = (this.state?.approvals ?? []).map(({ id }) => id).join();
    state.approvals = (state.approvals ?? []).filter(({ id }) => !this.#decided.has(id));
    if (before !== state.approvals.map(({ id }) => id).join()) this.#settle();
    this.state = state;
  }

  #settle() {
    this.settling = true;
    clearTimeout(this.#settleTimer);
    this.#settleTimer = setTimeout(() => {
      this.settling = false;
      this.changed();
    }, SETTLE_MS);
  }

  /**
   * @param {string} method
   * @param {any} params
   */
  #receive(method, params) {
    if (method === "panel.opened") void this.#initialize();
    else if (method === "link.state") this.#updateLink(params);
    else if (method === "panel.changed" || method === "plugins.changed") void this.read();
    else if (method === "tool.invocationStart") this.#callStarted(params);
    else if (method === "tool.invocationEnd") this.#callEnded(params);
    else if (method === "confirmation.request") this.#addApproval(params);
    else if (method === "confirmation.done") this.#removeApproval(params.id);
    else if (method === "relay.changed") this.#updateRelay(params);
    else if (method === "agent.event") this.chat.receive(params);
    this.changed();
  }

  async #initialize() {
    const relay = this.ask("relay.state").catch(() => null);
    this.#updateLink(await this.ask("link.state").catch(() => this.link));
    this.relay = await relay;
    this.changed();
  }

  /** @param {any} link */
  #updateLink(link) {
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
  #callStarted(call) {
    if (this.running.size >= MOST_RUNNING) this.running.delete(this.running.keys().next().value ?? "");
    this.running.set(call.callId, { ...call, at: Date.now() });
  }

  /** @param {any} end */
  #callEnded(end) {
    if (this.running.delete(end.callId)) this.#logTimer ??= setTimeout(() => void this.#readLog(), LOG_MS);
  }

  async #readLog() {
    this.#logTimer = undefined;
    const { entries } = await this.ask("audit.list", { limit: MOST_ACTIVITY }).catch(() => ({ entries: null }));
    if (this.state && entries) this.state.activity = entries;
    this.changed();
    // Redraw once their highlight has expired.
    setTimeout(this.changed, HIGHLIGHT_MS);
  }

  /** @param {Approval} approval */
  #addApproval(approval) {
    this.announcement = `${agentName(approval.client, approval.token)} asks for your approval.`;
    if (!this.state) return void this.read();
    if (this.state.approvals.some(({ id }) => id === approval.id)) return;
    // At the end, so that the card a person is about to click stays in place.
    this.state.approvals = [...this.state.approvals, approval];
    if (this.state.approvals.length === 1) this.#settle();
  }

  /** @param {RelayFacts} relay */
  #updateRelay(relay) {
    const before = (this.relay?.questions ?? []).map(({ id }) => id);
    const fresh = relay.questions.find(({ id }) => !before.includes(id));
    if (fresh) this.announcement = `An agent over ${fresh.place} asks for your approval.`;
    // When one is removed, others move up; a new one is added at the end.
    if (before.some((id) => relay.questions.every((each) => each.id !== id)) || this.waiting.length === 0)
      this.#settle();
    this.#showRelay(relay);
  }

  /** @param {RelayFacts} relay */
  #showRelay(relay) {
    this.relay = Object.assign({ ...relay }, ...this.#relayChanges);
    this.changed();
  }

  /** @param {string} id */
  #removeApproval(id) {
    const known = [...(this.state?.approvals ?? []), ...(this.relay?.questions ?? [])];
    if (known.every((each) => each.id !== id)) return;
    if (this.state) this.state.approvals = this.state.approvals.filter((approval) => approval.id !== id);
    this.#settle();
    this.changed();
  }
}

/**
 * A question of an agent over a relay, in the form of the hub's approvals.
 * @param {RelayFacts["questions"][number]} question
 * @returns {Approval}
 */
function relayApproval({ id, what, site, place, expiresAt, once }) {
  const tool = `${what[0]?.toUpperCase() ?? ""}${what.slice(1)}`;
  const choices = /** @type {Decision[]} */ ([once ? "allow_once" : "allow_session", "deny"]);
  return { id, tool, params: {}, client: `An agent over ${place}`, origin: site, choices, expiresAt, relay: true };
}
