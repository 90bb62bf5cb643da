/**
 * The hub's address and the key of this extension: `auth.json`, which the hub writes next to the manifest.
 *
 * It is read again before every attempt, so that a new key or port needs no reload of the extension. Also owns how a
 * hub proves that it knows the key: while no hub runs, any user of this computer could listen on its port, and must
 * get neither the key nor access to this browser.
 */

import { isObject, textOf } from "./rpc.js";

/**
 * @typedef {object} Auth
 * @property {string} key `secret` in the file
 * @property {string} host
 * @property {number} port
 * @property {boolean} managed the hub started this browser itself
 * @property {number | undefined} debuggerIdleMs
 * @property {number | undefined} pingMs
 */

const HOSTS = ["127.0.0.1", "localhost"];
const PROOF_MS = 10_000;

/**
 * The settings, or a message that says what is wrong with them.
 * @returns {Promise<Auth | string>}
 */
export async function readAuth() {
  let found;
  try {
    const answer = await fetch(chrome.runtime.getURL("auth.json"), { cache: "no-store" });
    found = await answer.text();
  } catch {
    return "The hub has not set up this extension yet: auth.json is missing. Run 'tabhub start'.";
  }
  try {
    return parseAuth(JSON.parse(found));
  } catch (error) {
    return `auth.json cannot be used (${textOf(error)}). Run "tabhub start" to write it again.`;
  }
}

/**
 * Whether the hub is running: "yes", "no" without an answer, "other" if the answer does not prove the key.
 * @param {Auth} auth
 * @returns {Promise<"yes" | "no" | "other">}
 */
export async function isHub({ key, host, port }) {
  const challenge = [...crypto.getRandomValues(new Uint8Array(32))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const signal = AbortSignal.timeout(PROOF_MS);
  /** @type {Response} */
  let answer;
  try {
    answer = await fetch(`http://${host}:${port}/health?challenge=${challenge}`, { cache: "no-store", redirect: "error", signal });
  } catch {
    return "no";
  }
  try {
    const facts = await answer.json();
    const proof = isObject(facts) ? String(facts["proof"]) : "";
    const given = Uint8Array.from(/^[0-9a-f]{64}$/.test(proof) ? (proof.match(/../g) ?? []) : [], (pair) => parseInt(pair, 16));
    const text = new TextEncoder();
    const hmac = await crypto.subtle.importKey("raw", text.encode(key), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    const signed = text.encode(`tabhub hub ${port} ${challenge}`);
    return (await crypto.subtle.verify("HMAC", hmac, given, signed)) ? "yes" : "other";
  } catch {
    return "other";
  }
}

/**
 * @param {unknown} value
 * @returns {Auth}
 */
export function parseAuth(value) {
  if (!isObject(value)) throw new Error("it is not an object");
  const { secret: key, host = "127.0.0.1", port, managed, debuggerIdleMs, pingMs } = value;
  if (typeof key !== "string" || !/^[0-9a-f]{64}$/i.test(key)) throw new Error("secret is not 64 hex digits");
  if (typeof host !== "string" || !HOSTS.includes(host)) throw new Error("host is not this computer");
  if (!isPositive(port) || port > 65535) throw new Error("port is not a port number");
  return {
    key,
    host,
    port,
    managed: managed === true,
    debuggerIdleMs: isPositive(debuggerIdleMs) ? debuggerIdleMs : undefined,
    pingMs: isPositive(pingMs) ? pingMs : undefined,
  };
}

/**
 * @param {unknown} value
 * @returns {value is number}
 */
function isPositive(value) {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}
