/**
 * The way to a relay, where agents on other machines find this browser: beside the hub on this computer, or instead.
 *
 * Owns the relay's settings, its WebSocket, and the browser's side of the relay's protocol: it connects, waits to be
 * asked who it is, and answers what is forwarded to it, under the same id. It never asks anything itself.
 */

import { Pulse } from "./keepalive.js";
import { METHOD_NOT_FOUND, Rpc, RpcError, isObject, textOf } from "./rpc.js";

/** @typedef {import("./rpc.js").Params} Params */
/** @typedef {import("./rpc.js").Handler} Handler */
/** @typedef {import("./relay_permissions.js").Level} Level */
/** @typedef {{ url: string, token: string, acting: Level, instead: boolean }} Settings */
/** @typedef {{ instanceId: string, browserName: string, browserVersion: string }} Identity */

/**
 * @typedef {object} Wiring
 * @property {ReadonlyMap<string, Handler>} methods
 * @property {ReadonlyMap<string, (params: Params) => void>} notifications
 * @property {() => Promise<Identity>} identity
 * @property {(rpc: Rpc | null) => void} peers told when another agent has come, and with null when the last has gone
 * @property {() => void} changed
 * @property {(message: string) => void} note
 */

const STORED = "relay";
const FIRST_DELAY = 500;
const LONGEST_DELAY = 30_000;
const HANDSHAKE_MS = 10_000;
const GOOD_MS = 5_000;
const MAX_UNSENT = 32 * 1024 * 1024;
const LONGEST_TOKEN = 8192;
/** @type {readonly Level[]} */
const LEVELS = ["off", "ask", "auto"];
/** @type {Settings} */
const NONE = { url: "", token: "", acting: "ask", instead: false };
/** @type {ReadonlyMap<number, string>} */
const CLOSE_REASONS = new Map([
  [4000, "The same browser connected to the relay anew. A copied profile does that."],
  [4001, "The relay refused the token. Get a new one from whoever runs the relay."],
  [4003, "The connection was too slow and was cut."],
  [1012, "The relay restarts."],
]);
/** After these, coming back soon would only be refused again. */
const PATIENCE = [4000, 4001];

export class Relay {
  /** @type {Settings} */
  settings = NONE;
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

  /** The relay in words. */
  get place() {
    const url = addressOf(this.settings);
    return URL.canParse(url) ? new URL(url).host : "no relay";
  }

  /** How it stands, for a panel: never with the token. */
  state() {
    const { url, token, acting, instead } = this.settings;
    const about = { phase: this.#phase, reason: this.#reason, retryAt: this.#retryAt };
    return { url, hasToken: token !== "", acting, instead, user: this.#user, agents: this.#agents, ...about };
  }

  /** Read the settings and begin. */
  async start() {
    try {
      const { [STORED]: stored } = await chrome.storage.local.get(STORED);
      if (isObject(stored)) this.settings = readSettings(stored, NONE);
    } catch (error) {
      this.#wiring.note(`The relay's settings are not used: ${textOf(error)}`);
    }
    this.#wiring.changed();
    this.wake();
  }

  /**
   * Take other settings from the person; what is left out stays.
   * @param {Params} given
   */
  async change(given) {
    const next = readSettings(given, this.settings);
    await chrome.storage.local.set({ [STORED]: next });
    const moved = addressOf(next) !== addressOf(this.settings) || next.token !== this.settings.token;
    this.settings = next;
    if (moved) this.#anew();
    this.#wiring.changed();
  }

  /** Connect now if there is no connection and there should be one. */
  wake() {
    if (this.#socket || !this.settings.url || !this.settings.token) return;
    if (Date.now() < this.#notBefore) return;
    clearTimeout(this.#timer);
    this.#open(new WebSocket(`${addressOf(this.settings)}/extension`));
  }

  /** Begin again with what is set now. */
  #anew() {
    clearTimeout(this.#timer);
    this.#failures = this.#notBefore = 0;
    if (this.#socket) this.#socket.close(1000, "the settings were changed");
    else if (this.settings.url && this.settings.token) this.wake();
    else this.#set("off", null, null);
  }

  /** @param {WebSocket} socket */
  #open(socket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    this.#set("connecting", this.#reason, null);
    const impatience = setTimeout(() => socket.close(), HANDSHAKE_MS);
    const began = Date.now();
    /** @type {Rpc} */
    const rpc = new Rpc({
      send: (text) => this.#send(socket, text),
      methods: new Map([...this.#wiring.methods, ["authenticate", (_, call) => this.#introduce(call.id)]]),
      notifications: new Map([
        ...this.#wiring.notifications,
        ["authenticated", (params) => this.#welcome(String(params["user_id"]), impatience)],
        ["status", (params) => this.#peers(rpc, params["peer_count"])],
        ["ping", () => void rpc.notify("pong", {})],
        ["pong", () => {}],
        ["cancel", (params) => rpc.cancel(params["id"])],
      ]),
      note: this.#wiring.note,
    });
    const pulse = new Pulse({ ping: () => rpc.notify("ping", {}), dead: () => socket.close(4005, "no answer to a ping") });
    socket.onmessage = (event) => {
      pulse.heard();
      rpc.receive(event.data);
    };
    socket.onclose = (event) => {
      clearTimeout(impatience);
      pulse.stop();
      this.#socket = null;
      this.#peers(rpc, 0);
      rpc.close();
      if (this.#phase === "connected" && Date.now() - began >= GOOD_MS) this.#failures = 0;
      this.#closed(event);
    };
  }

  /** @param {string | number} id */
  async #introduce(id) {
    if (typeof id !== "string" || !id.startsWith("proxy:")) throw new RpcError(METHOD_NOT_FOUND, "Method not found: authenticate");
    const { instanceId, browserName, browserVersion } = await this.#wiring.identity();
    const name = `${browserName} ${browserVersion.split(".")[0]}`.trim();
    return { name, accessToken: this.settings.token, instanceId };
  }

  /**
   * @param {string} user
   * @param {ReturnType<typeof setTimeout>} impatience
   */
  #welcome(user, impatience) {
    clearTimeout(impatience);
    this.#user = user.slice(0, 256);
    this.#set("connected", null, null);
  }

  /**
   * @param {Rpc} rpc
   * @param {unknown} count
   */
  #peers(rpc, count) {
    const [before, now] = [this.#agents, typeof count === "number" ? count : 0];
    this.#agents = now;
    if (now > before) this.#wiring.peers(rpc);
    else if (now === 0 && before > 0) this.#wiring.peers(null);
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
    const reached = this.#phase === "connected";
    const why = reached ? `The connection to the relay ended (code ${code}).` : `No relay answers at ${this.place}.`;
    const grown = FIRST_DELAY * 2 ** Math.min(this.#failures++, 10) * (1 + Math.random() * 0.3);
    const delay = PATIENCE.includes(code) ? LONGEST_DELAY : code === 1000 ? 0 : Math.min(grown, LONGEST_DELAY);
    if (PATIENCE.includes(code)) this.#notBefore = Date.now() + delay - 100;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.wake(), delay);
    this.#set("waiting", CLOSE_REASONS.get(code) ?? why, Date.now() + delay);
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

/**
 * @param {Params} given
 * @param {Settings} before
 * @returns {Settings}
 */
export function readSettings(given, before) {
  const { url = before.url, token = before.token, acting = before.acting, instead = before.instead } = given;
  if (typeof url !== "string" || typeof token !== "string") throw new Error("The relay's address and token are texts.");
  const level = LEVELS.find((each) => each === acting);
  if (!level) throw new Error("Acting is off, ask or auto.");
  const [address, secret] = [url.trim().replace(/\/+(extension|mcp)?$/, ""), token.trim()];
  if (secret.length > LONGEST_TOKEN || /[^A-Za-z0-9._-]/.test(secret)) throw new Error("This is not a relay's token.");
  const next = { url: address, token: secret, acting: level, instead: instead === true };
  if (address) check(address);
  if (secret) check(addressOf({ ...next, url: address || "wss://relay.invalid" }));
  return next;
}

/**
 * Where to connect: the token may say so itself.
 * @param {Settings} settings
 */
function addressOf({ url, token }) {
  try {
    const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const { connection_url: named } = JSON.parse(atob(payload));
    return typeof named === "string" && named && url ? named.replace(/\/+(extension|mcp)?$/, "") : url;
  } catch {
    return url; // a token of another form: the relay will say what it thinks of it
  }
}

/** @param {string} url */
function check(url) {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const here = ["127.0.0.1", "localhost"].includes(parsed?.hostname ?? "");
  if (!parsed || !["ws:", "wss:"].includes(parsed.protocol) || parsed.username || parsed.search || parsed.hash) {
    throw new Error("A relay's address is like wss://relay.example.com");
  }
  if (parsed.protocol === "ws:" && !here) throw new Error("Without TLS the token could be read on the way: use wss://");
}
