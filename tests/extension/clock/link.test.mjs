/** When the extension connects: the backoff between attempts, and the pause of a browser that was replaced. */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";
import { pass, settle } from "./virtual.mjs";

const { Link } = await import("../../../extension/link/socket.js");

const SECRET = "5e".repeat(32);
const AUTH = { secret: SECRET, host: "127.0.0.1", port: 9515 };
let hubRuns, attempts, sockets, session, links;

class Socket {
  constructor() {
    sockets.push(this);
    this.readyState = 1;
    queueMicrotask(() => this.onopen());
  }

  close(code) {
    this.onclose({ code });
  }
}

beforeEach(() => {
  [hubRuns, attempts, sockets, session, links] = [false, [], [], {}, []];
  globalThis.WebSocket = Socket;
  globalThis.chrome = {
    runtime: { getURL: (path) => `chrome-extension://x/${path}` },
    storage: { session: { get: async () => session, set: async (values) => void Object.assign(session, values) } },
  };
  globalThis.fetch = async (url) => {
    if (url.endsWith("auth.json")) return { text: async () => JSON.stringify(AUTH) };
    attempts.push(Date.now());
    if (!hubRuns) throw new TypeError("Failed to fetch");
    const said = `tabhub hub ${AUTH.port} ${new URL(url).searchParams.get("challenge")}`;
    return { json: async () => ({ proof: createHmac("sha256", SECRET).update(said).digest("hex") }) };
  };
});

afterEach(async () => {
  for (const link of links) link.setRelayOnly(true);
  await settle();
});

async function started() {
  const link = new Link({
    browserId: async () => "browser",
    opened: () => ({ receive() {}, ping() {}, closed() {} }),
    changed() {},
    note() {},
  });
  links.push(link);
  await link.start(Promise.resolve());
  await settle();
  return link;
}

/** The connection, once the hub's proof has been verified, which takes real time. */
async function connection(number) {
  const end = performance.now() + 30_000;
  while (sockets.length < number && performance.now() < end) await settle();
  assert.equal(sockets.length, number, "connections");
  await settle();
  return sockets[number - 1];
}

test("the delays double from half a second up to half a minute", async () => {
  await started();
  await pass(200_000);
  const delays = attempts.slice(1).map((at, number) => at - attempts[number]);
  delays.slice(0, 6).forEach((delay, number) => {
    const least = 500 * 2 ** number;
    assert.ok(delay >= least && delay <= least * 1.3 + 100, `delay ${number} was ${delay} ms`);
  });
  for (const delay of delays.slice(6)) assert.ok(Math.abs(delay - 30_000) <= 100, `a later delay was ${delay} ms`);
  assert.ok(delays.length >= 9, `${delays.length} attempts in 200 s`);
});

/** A new connection, after so many failures that the next attempt would be made after half a minute. */
async function afterFailures() {
  await started();
  await pass(100_000);
  hubRuns = true;
  const before = attempts.length;
  while (attempts.length === before) await pass(100);
  return connection(1);
}

test("after failures a lost connection is not looked for soon", async () => {
  const socket = await afterFailures();
  const before = attempts.length;
  socket.close(1006);
  await pass(20_000);
  assert.equal(attempts.length, before);
});

test("a hub that shuts down is looked for soon, also after failures", async () => {
  const socket = await afterFailures();
  const before = attempts.length;
  socket.close(4004);
  await pass(750);
  assert.equal(attempts.length, before + 1);
});

test("a browser that was replaced stays away for half a minute, whoever wakes it", async () => {
  hubRuns = true;
  const link = await started();
  (await connection(1)).close(4000);
  await settle();
  for (let second = 0; second < 29; second += 1) {
    link.wake();
    await pass(1000);
  }
  assert.equal(sockets.length, 1);
  await pass(1100);
  await connection(2);
});

test("a worker that starts anew keeps to the rest of that pause", async () => {
  hubRuns = true;
  const link = await started();
  (await connection(1)).close(4000);
  await pass(10_000);
  link.setRelayOnly(true); // the old worker is gone
  const next = await started();
  assert.match(next.state.reason, /with the same id has connected/);
  next.wake();
  await pass(19_000);
  assert.equal(sockets.length, 1);
  await pass(1100);
  await connection(2);
});

test("a hub that asks for a new connection gets it at once, also after failures", async () => {
  const socket = await afterFailures();
  const before = Date.now();
  socket.close(4006);
  await pass(1);
  await connection(2);
  assert.equal(Date.now(), before + 1);
});
