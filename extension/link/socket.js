/**
 * The WebSocket to the hub: never more than one, reconnecting by itself for as long as the worker lives.
 *
 * Owns when to connect and why the connection is down, in words. It knows nothing of what the messages mean.
 */

import { isHub, readAuth } from "./auth.js";
import { Pulse } from "./keepalive.js";

/** @typedef {import("./auth.js").Auth} Auth */

/**
 * @typedef {object} LinkState
 * @property {"setup" | "connecting" | "connected" | "waiting"} phase
 * @property {string | null} address where the hub is expected
 * @property {string | null} reason why there is no connection
 * @property {number | null} retryAt when the next attempt is made
 * @property {number | null} since when the connection was made
 */

/**
 * What one connection is used for. `opened` gives back who takes its messages.
 * @typedef {object} Wiring
 * @property {() => Promise<string>} browserId
 * @property {(auth: Auth, send: (text: string) => void) => Session} opened
 * @property {(state: LinkState) => void} changed
 * @property {(message: string) => void} note
 */
/** @typedef {{ receive: (data: unknown) => void, ping: () => void, closed: () => void }} Session */

const FIRST_DELAY = 500;
const LONGEST_DELAY = 30_000;
const HANDSHAKE_MS = 10_000;
/** A connection that lasted this long was a good one: the next attempt starts with the shortest delay. */
const GOOD_MS = 5_000;
/** Bytes that may wait for a hub that does not read. */
const MAX_UNSENT = 32 * 1024 * 1024;

const RESTING = "This browser is set to be reached over its relay only.";
const REPLACED = 4000;
const SHUTTING_DOWN = 4004;
const RECONNECT = 4006;
/** @type {ReadonlyMap<number, string>} */
const CLOSE_REASONS = new Map([
  [REPLACED, "Another browser with the same id took this one's place. A copied profile does that."],
  [4001, "The hub refused the secret. Run 'tabhub start' to have it written again."],
  [4002, "The hub refused the connection's parameters. Hub and extension may be of different versions."],
  [4003, "The connection was too slow and was cut."],
  [SHUTTING_DOWN, "The hub is shutting down."],
  [RECONNECT, "The hub asked for a new connection."],
  [1009, "A message was too big for the other side."],
]);

export class Link {
  /** @type {WebSocket | null} */
  #socket = null;
  #attempting = false;
  #failures = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #notBefore = 0;
  #resting = false;
  /** Why we end the connection ourselves. @type {string | null} */
  #complaint = null;
  #wiring;
  /** @type {LinkState} */
  state = { phase: "connecting", address: null, reason: null, retryAt: null, since: null };

  /** @param {Wiring} wiring */
  constructor(wiring) {
    this.#wiring = wiring;
  }

  /**
   * Begin: connect at once, unless this browser was replaced just before the worker was stopped.
   * @param {Promise<unknown>} known when it is known whether there is to be a connection at all
   */
  async start(known) {
    // Held so that an event that wakes the worker cannot connect before the pause is known.
    this.#attempting = true;
    await known;
    /** @type {Record<string, unknown>} */
    const { notBefore } = await chrome.storage.session.get("notBefore").catch((error) => {
      this.#wiring.note(`The browser's session storage cannot be read: ${error.message}`);
      return {};
    });
    this.#attempting = false;
    // Bounded, for a clock that was set back in between.
    const until = typeof notBefore === "number" ? Math.min(notBefore, Date.now() + LONGEST_DELAY) : 0;
    if (until > Date.now()) this.#replacedUntil(until);
    else this.wake();
  }

  /** Connect now if there is no connection and nothing forbids it. */
  wake() {
    if (this.#resting || this.#socket || this.#attempting || Date.now() < this.#notBefore) return;
    clearTimeout(this.#timer);
    this.#attempting = true;
    this.#attempt()
      .catch((error) => this.#later(`Could not connect: ${error.message}`))
      .finally(() => {
        this.#attempting = false;
      });
  }

  /**
   * Have no connection until told otherwise, for a browser that is reached in another way.
   * @param {boolean} resting
   */
  rest(resting) {
    if (resting === this.#resting) return;
    this.#resting = resting;
    if (!resting) return this.wake();
    if (this.#socket) this.#leave(this.#socket, 1000, RESTING);
    else this.#later(RESTING);
  }

  async #attempt() {
    const auth = await readAuth();
    if (typeof auth === "string") return this.#later(auth, "setup");
    const id = await this.#wiring.browserId();
    const address = `${auth.host}:${auth.port}`;
    this.#set({ phase: "connecting", address, reason: this.state.reason, retryAt: null, since: null });
    const there = await isHub(auth);
    if (there !== "yes") return this.#later(there === "no" ? noAnswer(auth) : impostor(auth));
    if (this.#resting) return this.#later(RESTING);
    this.#open(auth, new WebSocket(`ws://${address}/ws`, ["tabhub", auth.secret, id]));
  }

  /**
   * @param {Auth} auth
   * @param {WebSocket} socket
   */
  #open(auth, socket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    /** @type {Session | null} */
    let session = null;
    /** @type {Pulse | null} */
    let pulse = null;
    let openedAt = 0;
    const impatience = setTimeout(() => socket.close(), HANDSHAKE_MS);
    socket.onopen = () => {
      clearTimeout(impatience);
      openedAt = Date.now();
      this.#set({ phase: "connected", address: this.state.address, reason: null, retryAt: null, since: openedAt });
      const opened = this.#wiring.opened(auth, (text) => this.#send(socket, text));
      session = opened;
      pulse = new Pulse({
        ping: () => opened.ping(),
        dead: () => this.#leave(socket, 4005, "The hub did not answer a ping."),
        ...(auth.pingMs === undefined ? {} : { every: auth.pingMs }),
      });
    };
    socket.onmessage = (event) => {
      pulse?.heard();
      session?.receive(event.data);
    };
    socket.onclose = (event) => {
      clearTimeout(impatience);
      pulse?.stop();
      this.#socket = null;
      if (openedAt && Date.now() - openedAt >= GOOD_MS) this.#failures = 0;
      session?.closed();
      // Said only now, so that the next hub hears of it: this one cannot.
      if (this.#complaint) this.#wiring.note(`The connection was given up: ${this.#complaint}`);
      void this.#closed(auth, event, openedAt > 0);
    };
  }

  /**
   * @param {WebSocket} socket
   * @param {string} text
   */
  #send(socket, text) {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount > MAX_UNSENT) this.#leave(socket, 4003, "The hub does not read what it is sent.");
    else socket.send(text);
  }

  /**
   * @param {WebSocket} socket
   * @param {number} code
   * @param {string} complaint
   */
  #leave(socket, code, complaint) {
    this.#complaint = complaint;
    socket.close(code, complaint);
  }

  /**
   * @param {Auth} auth
   * @param {CloseEvent} event
   * @param {boolean} opened
   */
  async #closed(auth, event, opened) {
    const why = this.#complaint ?? CLOSE_REASONS.get(event.code);
    this.#complaint = null;
    if (event.code === REPLACED) {
      const until = Date.now() + LONGEST_DELAY;
      await chrome.storage.session.set({ notBefore: until });
      return this.#replacedUntil(until);
    }
    if (event.code === SHUTTING_DOWN) this.#failures = 0;
    if (event.code === RECONNECT) return this.#wait(0, CLOSE_REASONS.get(RECONNECT) ?? "", "waiting");
    // It has just proved that it is the hub: a handshake that fails now was refused.
    const refused = `A hub answers at ${auth.host}:${auth.port} but refuses this browser. Run "tabhub doctor".`;
    this.#later(why ?? (opened ? `The connection to the hub ended (code ${event.code}).` : refused));
  }

  /** @param {number} until */
  #replacedUntil(until) {
    this.#notBefore = until;
    this.#wait(until - Date.now(), CLOSE_REASONS.get(REPLACED) ?? "", "waiting");
  }

  /**
   * Try again after a while that grows with every failure.
   * @param {string} reason
   * @param {"setup" | "waiting"} [phase]
   */
  #later(reason, phase = "waiting") {
    if (this.#resting) {
      clearTimeout(this.#timer);
      return this.#set({ phase: "waiting", address: this.state.address, reason: RESTING, retryAt: null, since: null });
    }
    const delay = FIRST_DELAY * 2 ** Math.min(this.#failures++, 10) * (1 + Math.random() * 0.3);
    this.#wait(Math.min(delay, LONGEST_DELAY), reason, phase);
  }

  /**
   * @param {number} delay
   * @param {string} reason
   * @param {"setup" | "waiting"} phase
   */
  #wait(delay, reason, phase) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#notBefore = 0;
      this.wake();
    }, delay);
    this.#set({ phase, address: this.state.address, reason, retryAt: Date.now() + delay, since: null });
  }

  /** @param {LinkState} state */
  #set(state) {
    this.state = state;
    this.#wiring.changed(state);
  }
}

/** @param {Auth} auth */
function noAnswer(auth) {
  return `No hub answers at ${auth.host}:${auth.port}. Start it with "tabhub start".`;
}

/** @param {Auth} auth */
function impostor(auth) {
  return `What answers at ${auth.host}:${auth.port} is not the hub of this browser: it does not know its secret. Run "tabhub doctor".`;
}
