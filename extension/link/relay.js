/**
 * The connection to a relay, over which agents on other machines reach this browser, besides or instead of the local hub.
 *
 * Owns the relay's settings, its WebSocket, and the browser's side of the relay's protocol: it connects, authenticates
 * when asked, and answers forwarded requests under the same id. It never sends requests itself.
 */

import { Heartbeat } from "./keepalive.js";
import { reconnectDelay, refusesQuickReconnects } from "./relay_backoff.js";
import { Levels, migrate } from "./relay_levels.js";
import { UNSET, readSettings, urlOf } from "./relay_settings.js";
import { METHOD_NOT_FOUND, Rpc, RpcError, isObject, textOf } from "./rpc.js";

/** @typedef {import("./rpc.js").Params} Params */
/** @typedef {import("./rpc.js").Handler} Handler */
/** @typedef {import("./relay_settings.js").Settings} Settings */
/** @typedef {{ instanceId: string, browserName: string, browserVersion: string }} Identity */

/**
 * @typedef {object} Wiring
 * @property {ReadonlyMap<string, Handler>} methods
 * @property {ReadonlyMap<string, (params: Params, from: string | undefined) => void>} notifications
 * @property {() => Promise<Identity>} identity
 * @property {(rpc: Rpc | null) => void} agentsChanged called when another agent has connected, and with null when the last has disconnected
 * @property {() => void} changed
 * @property {(message: string) => void} note
 */

const STORAGE_KEY = "relay";
const HANDSHAKE_MS = 10_000;
const STABLE_MS = 5_000;
const MAX_UNSENT = 32 * 1024 * 1024;
/** @type {ReadonlyMap<number, string>} */
const CLOSE_REASONS = new Map([
  [4000, "The same browser has connected to the relay again. This happens with a copied profile."],
  [4001, "The relay refused the token. Ask the operator of the relay for a new one."],
  [4003, "The connection was too slow and was closed."],
  [1012, "The relay is restarting."],
  [1013, "The relay has too many new connections at the moment."],
]);

export class Relay {
  /** @type {Settings} */
  settings = UNSET;
  /** @type {WebSocket | null} */
  #socket = null;
  /** @type {"off" | "connecting" | "connected" | "waiting"} */
  #phase = "off";
  /** @type {string | null} */
  #reason = null;
  /** @type {number | null} */
  #retryAt = null;
  #user = "";
  #agents = 0;
  #failures = 0;
  #notBefore = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #wiring;

  /** @param {Wiring} wiring */
  constructor(wiring) {
    this.#wiring = wiring;
  }

  /** The relay's host, for messages. */
  get place() {
    const url = urlOf(this.settings);
    return URL.canParse(url) ? new URL(url).host : "no relay";
  }

  get levels() {
    return new Levels(this.settings.level, this.settings.sites);
  }

  /** The state for a panel, without the token. */
  state() {
    const { url, token, level, sites, instead, migrated } = this.settings;
    const connection = { phase: this.#phase, reason: this.#reason, retryAt: this.#retryAt };
    return { url, hasToken: token !== "", level, sites, instead, migrated, user: this.#user, agents: this.#agents, ...connection };
  }

  /** Read the settings and connect. */
  async start() {
    try {
      const { [STORAGE_KEY]: stored } = await chrome.storage.local.get(STORAGE_KEY);
      if (isObject(stored)) await this.#restore(migrate(stored));
    } catch (error) {
      this.#wiring.note(`The relay's settings cannot be used: ${textOf(error)}`);
    }
    this.#wiring.changed();
    this.wake();
  }

  /** @param {ReturnType<typeof migrate>} found */
  async #restore({ settings, migrated }) {
    this.settings = readSettings(settings, UNSET);
    if (!migrated) return;
    this.settings.migrated = this.settings.sites.length > 0;
    await chrome.storage.local.set({ [STORAGE_KEY]: this.settings });
    if (this.settings.migrated) this.#wiring.note("The levels of sites for agents over the relay were rewritten in the form of site rules. Check them in the panel.");
  }

  /**
   * Change the settings; omitted ones stay.
   * @param {Params} given
   */
  async change(given) {
    const next = readSettings(given, this.settings);
    await chrome.storage.local.set({ [STORAGE_KEY]: next });
    const { settings } = this;
    const moved = urlOf(next) !== urlOf(settings) || next.token !== settings.token;
    // Connected agents keep what they have seen, so they start again without it.
    const hidden = [next, settings].some(({ level, sites }) => new Levels(level, sites).hides);
    const other = next.level !== settings.level || JSON.stringify(next.sites) !== JSON.stringify(settings.sites);
    this.settings = next;
    this.#wiring.changed();
    if (moved || (hidden && other)) this.#reconnect();
  }

  /** Connect now, if it is configured and not connected. */
  wake() {
    if (this.#socket || !this.settings.url || !this.settings.token) return;
    if (Date.now() < this.#notBefore) return;
    clearTimeout(this.#timer);
    this.#open(new WebSocket(`${urlOf(this.settings)}/extension`));
  }

  /** Reconnect with the current settings. */
  #reconnect() {
    clearTimeout(this.#timer);
    this.#failures = this.#notBefore = 0;
    if (this.#socket) {
      this.#set("connecting", null, null); // not "connected" until the next connection is
      this.#socket.close(1000, "the settings were changed");
    } else if (this.settings.url && this.settings.token) this.wake();
    else this.#set("off", null, null);
  }

  /** @param {WebSocket} socket */
  #open(socket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    this.#set("connecting", this.#reason, null);
    const timeout = setTimeout(() => socket.close(), HANDSHAKE_MS);
    const began = Date.now();
    /** @type {Rpc} */
    const rpc = new Rpc({
      send: (text) => this.#send(socket, text),
      methods: new Map([...this.#wiring.methods, ["authenticate", (_, call) => this.#authenticate(call.id)]]),
      notifications: new Map([
        ...this.#wiring.notifications,
        ["authenticated", (params) => this.#authenticated(String(params["user_id"]), timeout)],
        ["status", (params) => this.#setAgents(rpc, params["peer_count"])],
        ["ping", () => void rpc.notify("pong", {})],
        ["pong", () => {}],
        ["cancel", (params) => rpc.cancel(params["id"])],
      ]),
      note: this.#wiring.note,
    });
    const heartbeat = new Heartbeat({ ping: () => rpc.notify("ping", {}), dead: () => socket.close(4005, "no answer to a ping") });
    socket.onmessage = (event) => {
      heartbeat.received();
      rpc.receive(event.data);
    };
    socket.onclose = (event) => {
      clearTimeout(timeout);
      heartbeat.stop();
      this.#socket = null;
      this.#setAgents(rpc, 0);
      rpc.close();
      if (this.#phase === "connected" && Date.now() - began >= STABLE_MS) this.#failures = 0;
      this.#closed(event);
    };
  }

  /** @param {string | number} id */
  async #authenticate(id) {
    if (typeof id !== "string" || !id.startsWith("proxy:")) throw new RpcError(METHOD_NOT_FOUND, "Method not found: authenticate");
    const { instanceId, browserName, browserVersion } = await this.#wiring.identity();
    const name = `${browserName} ${browserVersion.split(".")[0]}`.trim();
    return { name, accessToken: this.settings.token, instanceId };
  }

  /**
   * @param {string} user
   * @param {ReturnType<typeof setTimeout>} timeout
   */
  #authenticated(user, timeout) {
    clearTimeout(timeout);
    this.#user = user.slice(0, 256);
    this.#set("connected", null, null);
  }

  /**
   * @param {Rpc} rpc
   * @param {unknown} count
   */
  #setAgents(rpc, count) {
    const [before, now] = [this.#agents, typeof count === "number" ? count : 0];
    this.#agents = now;
    if (now > before) this.#wiring.agentsChanged(rpc);
    else if (now === 0 && before > 0) this.#wiring.agentsChanged(null);
    if (now !== before) this.#wiring.changed();
  }

  /**
   * @param {WebSocket} socket
   * @param {string} text
   */
  #send(socket, text) {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount > MAX_UNSENT) socket.close(4003, "the relay does not read");
    else socket.send(text);
  }

  /** @param {CloseEvent} event */
  #closed({ code }) {
    if (!this.settings.url || !this.settings.token) return this.#set("off", null, null);
    const reached = this.#phase === "connected" || code === 1000;
    const reason = reached ? `The connection to the relay ended (code ${code}).` : `No relay answers at ${this.place}.`;
    const delay = reconnectDelay(code, this.#failures++);
    if (refusesQuickReconnects(code)) this.#notBefore = Date.now() + delay - 100;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.wake(), delay);
    this.#set("waiting", CLOSE_REASONS.get(code) ?? reason, Date.now() + delay);
  }

  /**
   * @param {"off" | "connecting" | "connected" | "waiting"} phase
   * @param {string | null} reason
   * @param {number | null} retryAt
   */
  #set(phase, reason, retryAt) {
    [this.#phase, this.#reason, this.#retryAt] = [phase, reason, retryAt];
    this.#wiring.changed();
  }
}
