/**
 * The conversation with the assistant that the panel has open: what was said and done, as the hub tells it, and what the
 * person may do with it. The hub keeps conversations; here is the picture of one. It draws nothing itself.
 */

import { words } from "./format.js";
import { errorText } from "./worker_client.js";

/** @typedef {import("./types.js").ChatItem} ChatItem */
/** @typedef {import("./types.js").Step} Step */
/** @typedef {import("./types.js").Talk} Talk */
/** @typedef {{ ask: (method: string, params?: Record<string, unknown>) => Promise<any>, changed: () => void, say: (text: string, tone?: "good" | "bad") => void }} Wiring */

const LAST = "conversation";
const MOST_READ = 20;
const LONGEST_READ = 1_000;

export class Chat {
  /** @type {string | null} */
  id = null;
  title = "";
  /** @type {ChatItem[]} */
  items = [];
  /** Messages before these, which are not shown. */
  earlier = 0;
  running = false;
  /** The assistant's session with the hub, as approvals name it. @type {string | null} */
  session = null;
  /** Every conversation there is, the newest first. @type {Talk[]} */
  talks = [];
  /** What people who cannot see it are told, whole sentences at a time. @type {{ id: number, text: string }[]} */
  read = [];
  /** What is on its way to the hub. @type {string | null} */
  sending = null;
  #wiring;
  #count = 0;
  /** What was chosen last: an answer that comes late changes nothing. */
  #turn = 0;

  /** @param {Wiring} wiring */
  constructor(wiring) {
    this.#wiring = wiring;
  }

  /** The hub is there: what there is, and the conversation that was open last. */
  async open() {
    await this.#listed();
    if (this.sending !== null) return; // the person was quicker
    const last = this.id ?? localStorage.getItem(LAST);
    if (last && this.talks.some(({ id }) => id === last)) await this.choose(last);
    else if (this.id) this.fresh();
  }

  /**
   * Show another conversation.
   * @param {string} id
   */
  async choose(id) {
    const turn = ++this.#turn;
    try {
      const shown = await this.#wiring.ask("agent.resume", { conversation: id });
      // The person has gone elsewhere meanwhile.
      if (turn !== this.#turn) return;
      this.#begin(id);
      ({ title: this.title, running: this.running, session: this.session } = shown);
      this.earlier = shown.earlier ?? 0;
      for (const message of shown.messages) this.#kept(message);
      this.#halt();
      if (shown.why) this.#ended(shown);
      for (const event of shown.events ?? []) this.#happened(event, event.secondsAgo);
      this.read = [];
    } catch (error) {
      this.#wiring.say(errorText(error), "bad");
    }
    this.#wiring.changed();
  }

  /** Begin a new one. */
  fresh() {
    this.#turn += 1;
    this.#begin(null);
    this.#wiring.changed();
  }

  /**
   * Say something; gives why not, if it was refused.
   * @param {string} text
   * @returns {Promise<string | null>}
   */
  async send(text) {
    if (this.running || this.sending !== null || text.trim() === "") return null;
    this.#turn += 1;
    this.sending = text;
    this.#wiring.changed();
    try {
      const { conversation } = await this.#wiring.ask("agent.send", {
        text,
        ...(this.id ? { conversation: this.id } : {}),
      });
      if (this.sending === text && this.id === null) this.#named(conversation);
      return null;
    } catch (error) {
      return errorText(error);
    } finally {
      this.sending = null;
      this.#wiring.changed();
    }
  }

  /** End what it does. */
  async stop() {
    if (!this.id) return;
    try {
      await this.#wiring.ask("agent.stop", { conversation: this.id });
    } catch (error) {
      this.#wiring.say(errorText(error), "bad");
    }
  }

  /**
   * Forget a conversation for good.
   * @param {string} id
   */
  async remove(id) {
    try {
      await this.#wiring.ask("agent.remove", { conversation: id });
      if (this.id === id) this.#begin(null);
    } catch (error) {
      this.#wiring.say(errorText(error), "bad");
    }
    await this.#listed();
  }

  /**
   * Something happened in a conversation.
   * @param {any} event
   */
  heard(event) {
    // The answer to what was sent, which names a new conversation, may come after its first event.
    if (this.id === null && this.sending !== null && event.event === "heard" && event.text === this.sending) {
      this.#named(event.conversation);
    }
    if (event.event === "heard" || event.event === "ended") void this.#listed();
    if (event.conversation !== this.id) return;
    this.session = event.session ?? this.session;
    this.#happened(event, 0);
  }

  /** @param {string | null} id */
  #begin(id) {
    this.id = id;
    this.items = [];
    this.read = [];
    this.title = "";
    this.earlier = 0;
    this.running = false;
    this.session = null;
    if (id) localStorage.setItem(LAST, id);
    else localStorage.removeItem(LAST);
  }

  /** @param {string} id */
  #named(id) {
    this.id = id;
    localStorage.setItem(LAST, id);
  }

  async #listed() {
    try {
      this.talks = (await this.#wiring.ask("agent.list")).conversations ?? [];
    } catch {
      return; // the hub has gone: the panel says so
    }
    this.title = this.talks.find(({ id }) => id === this.id)?.title || this.title;
    this.#wiring.changed();
  }

  /**
   * A message of before.
   * @param {{ role: string, text: string, calls?: any[], results?: any[] }} message
   */
  #kept({ role, text, calls = [], results = [] }) {
    if (role === "user") this.#add({ kind: "person", text });
    if (role === "assistant" && text.trim()) this.#add({ kind: "model", text, done: true });
    for (const call of calls) this.#add(begun(call, 0));
    for (const result of results) this.#finished(result);
  }

  /**
   * @param {any} event
   * @param {number} ago seconds
   */
  #happened(event, ago) {
    if (event.event === "heard") {
      this.running = true;
      this.title ||= event.text;
      this.#add({ kind: "person", text: event.text });
    } else if (event.event === "spoke") this.#spoke(event.text);
    else if (event.event === "started") {
      this.#whole();
      this.#tell(`Uses ${words(event.call.name)}.`);
      this.#add(begun(event.call, Date.now() - ago * 1000));
    } else if (event.event === "finished") this.#finished({ ...event.result, seconds: event.seconds }, true);
    else if (event.event === "ended") this.#ended(event);
  }

  /** @param {string} text */
  #spoke(text) {
    const last = this.items.at(-1);
    if (last?.kind === "model" && !last.done) last.text += text;
    else if (text.trim()) this.#add({ kind: "model", text, done: false });
  }

  /**
   * @param {any} result
   * @param {boolean} [live]
   */
  #finished({ call, text, failed, denied, seconds }, live) {
    const step = /** @type {Step | undefined} */ (
      this.items.findLast((item) => item.kind === "step" && item.call === call && item.state === "running")
    );
    if (!step) return;
    step.state = denied ? "denied" : failed ? "failed" : "done";
    step.result = text;
    step.seconds = seconds || null;
    if (failed && live) this.#tell(`${words(step.name)}: ${denied ? "not allowed" : "failed"}.`);
  }

  /** @param {any} ended */
  #ended({ why, words: said, steps = 0, tokens = 0 }) {
    this.running = false;
    this.#whole();
    this.#halt();
    this.#add({ kind: "end", why, words: said ?? "", steps, tokens });
    this.#tell(said || (why === "done" ? "The assistant is done." : "The assistant has stopped."));
  }

  /** What still runs never came to an end. */
  #halt() {
    for (const item of this.items) if (item.kind === "step" && item.state === "running") item.state = "stopped";
  }

  /** The text that was being said is complete. */
  #whole() {
    const last = this.items.at(-1);
    if (last?.kind !== "model" || last.done) return;
    last.done = true;
    this.#tell(last.text.replace(/[*`#]+/g, ""));
  }

  /** @param {string} text */
  #tell(text) {
    const cut = text.length > LONGEST_READ ? `${text.slice(0, LONGEST_READ)}…` : text;
    this.read = [...this.read, { id: ++this.#count, text: cut }].slice(-MOST_READ);
  }

  /** @param {any} item */
  #add(item) {
    this.items.push({ ...item, id: ++this.#count });
  }
}

/**
 * @param {any} call
 * @param {number} at
 */
function begun({ id, name, arguments: given = {}, problem = "" }, at) {
  return { kind: "step", call: id, name, given, problem, at, state: "running", result: "", seconds: null };
}
