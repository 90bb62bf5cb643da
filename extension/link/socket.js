/**
 * The WebSocket to the hub: at most one, which reconnects for as long as the worker lives.
 *
 * Owns when to connect, and the message that says why there is no connection. It knows nothing of the messages' meaning.
 */

import { isHub, readAuth } from "./auth.js";
import { Heartbeat } from "./keepalive.js";

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
 * The user of a connection. `opened` returns the receiver of its messages.
 * @typedef {object} Wiring
 * @property {() => Promise<string>} browserId
 * @property {(auth: Auth, send: (text: string) => void) => Session} opened
 * @property {(state: LinkState) => void} changed
 * @property {(message: string) => void} note
 */
/** @typedef {{ receive: (data: unknown) => void, ping: () => void, closed: () => void }} Session */

const FIRST_DELAY = 500;
const MAX_DELAY = 30_000;
const HANDSHAKE_MS = 10_000;
/** After a connection that lasted this long, the next attempt starts with the shortest delay. */
const STABLE_MS = 5_000;
/** Unsent bytes at which a hub that does not read is disconnected. */
const MAX_UNSENT = 32 * 1024 * 1024;

const RELAY_ONLY = "This browser is set to connect only to its relay.";
const REPLACED = 4000;
const SHUTTING_DOWN = 4004;
const RECONNECT = 4006;
/** @type {ReadonlyMap<number, string>} */
const CLOSE_REASONS = new Map([
  [REPLACED, "Another browser with the same id has connected. This happens with a copied profile."],
  [4001, "The hub refused the key of this extension. Run 'tabhub start' to write it again."],
  [4002, "The hub refused the connection's parameters. Hub and extension may have different versions."],
  [4003, "The connection was too slow and was closed."],
  [SHUTTING_DOWN, "The hub is shutting down."],
  [RECONNECT, "The hub asked for a new connection."],
  [1009, "A message was too large for the hub."],
]);

export class Link {
  /** @type {WebSocket | null} */
  #socket = null;
  #attempting = false;
  #failures = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #notBefore = 0;
  #relayOnly = false;
  /** Why this side closes the connection. @type {string | null} */
  #closeReason = null;
  #wiring;
  /** @type {LinkState} */
  state = { phase: "connecting", address: null, reason: null, retryAt: null, since: null };

  /** @param {Wiring} wiring */
  constructor(wiring) {
    this.#wiring = wiring;
  }

  /**
   * Connect at once, unless this browser was replaced just before the worker was stopped.
   * @param {Promise<unknown>} known resolves when it is known whether to connect at all
   */
  async start(known) {
    // So that an event that wakes the worker cannot connect before the delay is known.
    this.#attempting = true;
    await known;
    /** @type {Record<string, unknown>} */
    const { notBefore } = await chrome.storage.session.get("notBefore").catch((error) => {
      this.#wiring.note(`The browser's session storage cannot be read: ${error.message}`);
      return {};
    });
    this.#attempting = false;
    // Bounded in case the clock was set back.
    const until = typeof notBefore === "number" ? Math.min(notBefore, Date.now() + MAX_DELAY) : 0;
    if (until > Date.now()) this.#replacedUntil(until);
    else this.wake();
  }

  /** Connect now if there is no connection and nothing forbids it. */
  wake() {
    if (this.#relayOnly || this.#socket || this.#attempting || Date.now() < this.#notBefore) return;
    clearTimeout(this.#timer);
    this.#attempting = true;
    this.#attempt()
      .catch((error) => this.#retryLater(`Could not connect: ${error.message}`))
      .finally(() => {
        this.#attempting = false;
      });
  }

  /**
   * Do not connect to the hub while this browser connects only to a relay.
   * @param {boolean} relayOnly
   */
  setRelayOnly(relayOnly) {
    if (relayOnly === this.#relayOnly) return;
    this.#relayOnly = relayOnly;
    if (!relayOnly) return this.wake();
    if (this.#socket) this.#closeWith(this.#socket, 1000, RELAY_ONLY);
    else this.#retryLater(RELAY_ONLY);
  }

  async #attempt() {
    const auth = await readAuth();
    if (typeof auth === "string") return this.#retryLater(auth, "setup");
    const id = await this.#wiring.browserId();
    const address = `${auth.host}:${auth.port}`;
    this.#set({ phase: "connecting", address, reason: this.state.reason, retryAt: null, since: null });
    const hub = await isHub(auth);
    if (hub !== "yes") return this.#retryLater(hub === "no" ? noAnswer(auth) : impostor(auth));
    if (this.#relayOnly) return this.#retryLater(RELAY_ONLY);
    this.#open(auth, new WebSocket(`ws://${address}/ws`, ["tabhub", auth.key, id]));
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
    /** @type {Heartbeat | null} */
    let heartbeat = null;
    let openedAt = 0;
    const timeout = setTimeout(() => socket.close(), HANDSHAKE_MS);
    socket.onopen = () => {
      clearTimeout(timeout);
      openedAt = Date.now();
      this.#set({ phase: "connected", address: this.state.address, reason: null, retryAt: null, since: openedAt });
      const opened = this.#wiring.opened(auth, (text) => this.#send(socket, text));
      session = opened;
      heartbeat = new Heartbeat({
        ping: () => opened.ping(),
        dead: () => this.#closeWith(socket, 4005, "The hub did not answer a ping."),
        ...(auth.pingMs === undefined ? {} : { every: auth.pingMs }),
      });
    };
    socket.onmessage = (event) => {
      heartbeat?.received();
      session?.receive(event.data);
    };
    socket.onclose = (event) => {
      clearTimeout(timeout);
      heartbeat?.stop();
      this.#socket = null;
      if (openedAt && Date.now() - openedAt >= STABLE_MS) this.#failures = 0;
      session?.closed();
      // Logged only now, so that it is sent to the next hub.
      if (this.#closeReason) this.#wiring.note(`The connection was closed: ${this.#closeReason}`);
      void this.#closed(auth, event, openedAt > 0);
    };
  }

  /**
   * @param {WebSocket} socket
   * @param {string} text
   */
  #send(socket, text) {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount > MAX_UNSENT) this.#closeWith(socket, 4003, "The hub does not read its messages.");
    else socket.send(text);
  }

  /**
   * @param {WebSocket} socket
   * @param {number} code
   * @param {string} reason
   */
  #closeWith(socket, code, reason) {
    this.#closeReason = reason;
    socket.close(code, reason);
  }

  /**
   * @param {Auth} auth
   * @param {CloseEvent} event
   * @param {boolean} opened
   */
  async #closed(auth, event, opened) {
    const why = this.#closeReason ?? CLOSE_REASONS.get(event.code);
    this.#closeReason = null;
    if (event.code === REPLACED) {
      const until = Date.now() + MAX_DELAY;
      await chrome.storage.session.set({ notBefore: until });
      return this.#replacedUntil(until);
    }
    if (event.code === SHUTTING_DOWN) this.#failures = 0;
    if (event.code === RECONNECT) return this.#wait(0, CLOSE_REASONS.get(RECONNECT) ?? "", "waiting");
    // It has just proved that it is the hub, so a failed handshake was refused.
    const refused = `A hub answers at ${auth.host}:${auth.port} but refuses this browser. Run "tabhub doctor".`;
    this.#retryLater(why ?? (opened ? `The connection to the hub ended (code ${event.code}).` : refused));
  }

  /** @param {number} until */
  #replacedUntil(until) {
    this.#notBefore = until;
    this.#wait(until - Date.now(), CLOSE_REASONS.get(REPLACED) ?? "", "waiting");
  }

  /**
   * Retry with exponential backoff.
   * @param {string} reason
   * @param {"setup" | "waiting"} [phase]
   */
  #retryLater(reason, phase = "waiting") {
    if (this.#relayOnly) {
      clearTimeout(this.#timer);
      return this.#set({ phase: "waiting", address: this.state.address, reason: RELAY_ONLY, retryAt: null, since: null });
    }
    const delay = FIRST_DELAY * 2 ** Math.min(this.#failures++, 10) * (1 + Math.random() * 0.3);
    this.#wait(Math.min(delay, MAX_DELAY), reason, phase);
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
  return `The program at ${auth.host}:${auth.port} is not the hub of this browser: it does not know the key of this extension. Run "tabhub doctor".`;
}
