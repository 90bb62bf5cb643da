/**
 * The conversation with the assistant that the panel shows: its items, built from the hub's messages and events, and what
 * the person can do with it. The hub stores conversations. It draws nothing itself.
 */

import { toolLabel } from "./format.js";
import { errorText } from "./worker_client.js";

/** @typedef {import("./types.js").ChatItem} ChatItem */
/** @typedef {import("./types.js").Step} Step */
/** @typedef {import("./types.js").Conversation} Conversation */
/** @typedef {{ ask: (method: string, params?: Record<string, unknown>) => Promise<any>, changed: () => void, say: (text: string, tone?: "good" | "bad") => void }} Wiring */

const LAST = "conversation";
const MAX_ANNOUNCEMENTS = 20;
const MAX_ANNOUNCEMENT_LENGTH = 1_000;

export class Chat {
  /** @type {string | null} */
  id = null;
  title = "";
  /** @type {ChatItem[]} */
  items = [];
  /** How many earlier messages are not shown. */
  earlier = 0;
  running = false;
  /** The assistant's session with the hub, as approvals name it. @type {string | null} */
  session = null;
  /** All conversations, newest first. @type {Conversation[]} */
  conversations = [];
  /** For screen readers, whole sentences at a time. @type {{ id: number, text: string }[]} */
  announcements = [];
  /** The message that is being sent. @type {string | null} */
  sending = null;
  #wiring;
  #count = 0;
  /** Counts choices of a conversation: answers to earlier ones are dropped. */
  #choice = 0;

  /** @param {Wiring} wiring */
  constructor(wiring) {
    this.#wiring = wiring;
  }

  /** Once the hub is connected: list the conversations, and show the last one. */
  async open() {
    await this.#list();
    if (this.sending !== null) return; // the person has already sent a message
    const last = this.id ?? localStorage.getItem(LAST);
    if (last && this.conversations.some(({ id }) => id === last)) await this.choose(last);
    else if (this.id) this.startNew();
  }

  /**
   * Show another conversation.
   * @param {string} id
   */
  async choose(id) {
    const choice = ++this.#choice;
    try {
      const shown = await this.#wiring.ask("agent.resume", { conversation: id });
      // Another conversation was chosen in the meantime.
      if (choice !== this.#choice) return;
      this.#reset(id);
      ({ title: this.title, running: this.running, session: this.session } = shown);
      this.earlier = shown.earlier ?? 0;
      for (const message of shown.messages) this.#addMessage(message);
      this.#stopSteps();
      if (shown.why) this.#addEnd(shown);
      for (const event of shown.events ?? []) this.#apply(event, event.secondsAgo);
      this.announcements = [];
    } catch (error) {
      this.#wiring.say(errorText(error), "bad");
    }
    this.#wiring.changed();
  }

  /** Start a new conversation. */
  startNew() {
    this.#choice += 1;
    this.#reset(null);
    this.#wiring.changed();
  }

  /**
   * Send a message. Returns the error if it was refused.
   * @param {string} text
   * @returns {Promise<string | null>}
   */
  async send(text) {
    if (this.running || this.sending !== null || text.trim() === "") return null;
    this.#choice += 1;
    this.sending = text;
    this.#wiring.changed();
    try {
      const { conversation } = await this.#wiring.ask("agent.send", {
        text,
        ...(this.id ? { conversation: this.id } : {}),
      });
      if (this.sending === text && this.id === null) this.#setId(conversation);
      return null;
    } catch (error) {
      return errorText(error);
    } finally {
      this.sending = null;
      this.#wiring.changed();
    }
  }

  /** Stop the current run. */
  async stop() {
    if (!this.id) return;
    try {
      await this.#wiring.ask("agent.stop", { conversation: this.id });
    } catch (error) {
      this.#wiring.say(errorText(error), "bad");
    }
  }

  /**
   * Delete a conversation.
   * @param {string} id
   */
  async remove(id) {
    try {
      await this.#wiring.ask("agent.remove", { conversation: id });
      if (this.id === id) this.#reset(null);
    } catch (error) {
      this.#wiring.say(errorText(error), "bad");
    }
    await this.#list();
  }

  /**
   * Receive an event of a conversation.
   * @param {any} event
   */
  receive(event) {
    // The answer to a sent message, which has the id of a new conversation, may come after its first event.
    if (this.id === null && this.sending !== null && event.event === "message" && event.text === this.sending) {
      this.#setId(event.conversation);
    }
    if (event.event === "message" || event.event === "ended") void this.#list();
    if (event.conversation !== this.id) return;
    this.session = event.session ?? this.session;
    this.#apply(event, 0);
  }

  /** @param {string | null} id */
  #reset(id) {
    this.id = id;
    this.items = [];
    this.announcements = [];
    this.title = "";
    this.earlier = 0;
    this.running = false;
    this.session = null;
    if (id) localStorage.setItem(LAST, id);
    else localStorage.removeItem(LAST);
  }

  /** @param {string} id */
  #setId(id) {
    this.id = id;
    localStorage.setItem(LAST, id);
  }

  async #list() {
    try {
      this.conversations = (await this.#wiring.ask("agent.list")).conversations ?? [];
    } catch {
      return; // the hub is disconnected: the panel shows it
    }
    this.title = this.conversations.find(({ id }) => id === this.id)?.title || this.title;
    this.#wiring.changed();
  }

  /**
   * Add a message of an earlier run.
   * @param {{ role: string, text: string, calls?: any[], results?: any[] }} message
   */
  #addMessage({ role, text, calls = [], results = [] }) {
    if (role === "user") this.#add({ kind: "person", text });
    if (role === "assistant" && text.trim()) this.#add({ kind: "model", text, done: true });
    for (const call of calls) this.#add(newStep(call, 0));
    for (const result of results) this.#finishStep(result);
  }

  /**
   * @param {any} event
   * @param {number} ago seconds
   */
  #apply(event, ago) {
    if (event.event === "message") {
      this.running = true;
      this.title ||= event.text;
      this.#add({ kind: "person", text: event.text });
    } else if (event.event === "text") this.#appendText(event.text);
    else if (event.event === "started") {
      this.#completeText();
      this.#announce(`Using ${toolLabel(event.call.name)}.`);
      this.#add(newStep(event.call, Date.now() - ago * 1000));
    } else if (event.event === "finished") this.#finishStep({ ...event.result, seconds: event.seconds }, true);
    else if (event.event === "ended") this.#addEnd(event);
  }

  /** @param {string} text */
  #appendText(text) {
    const last = this.items.at(-1);
    if (last?.kind === "model" && !last.done) last.text += text;
    else if (text.trim()) this.#add({ kind: "model", text, done: false });
  }

  /**
   * @param {any} result
   * @param {boolean} [live]
   */
  #finishStep({ call, text, failed, denied, seconds }, live) {
    const step = /** @type {Step | undefined} */ (
      this.items.findLast((item) => item.kind === "step" && item.call === call && item.state === "running")
    );
    if (!step) return;
    step.state = denied ? "denied" : failed ? "failed" : "done";
    step.result = text;
    step.seconds = seconds || null;
    if (failed && live) this.#announce(`${toolLabel(step.name)}: ${denied ? "not allowed" : "failed"}.`);
  }

  /** @param {any} ended */
  #addEnd({ why, explanation = "", steps = 0, tokens = 0 }) {
    this.running = false;
    this.#completeText();
    this.#stopSteps();
    this.#add({ kind: "end", why, explanation, steps, tokens });
    this.#announce(explanation || (why === "done" ? "The assistant has finished." : "The assistant has stopped."));
  }

  /** Steps without a result will not get one. */
  #stopSteps() {
    for (const item of this.items) if (item.kind === "step" && item.state === "running") item.state = "stopped";
  }

  /** Mark the text that was being received as complete. */
  #completeText() {
    const last = this.items.at(-1);
    if (last?.kind !== "model" || last.done) return;
    last.done = true;
    this.#announce(last.text.replace(/[*`#]+/g, ""));
  }

  /** @param {string} text */
  #announce(text) {
    const cut = text.length > MAX_ANNOUNCEMENT_LENGTH ? `${text.slice(0, MAX_ANNOUNCEMENT_LENGTH)}…` : text;
    this.announcements = [...this.announcements, { id: ++this.#count, text: cut }].slice(-MAX_ANNOUNCEMENTS);
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
function newStep({ id, name, arguments: given = {}, problem = "" }, at) {
  return { kind: "step", call: id, name, given, problem, at, state: "running", result: "", seconds: null };
}
