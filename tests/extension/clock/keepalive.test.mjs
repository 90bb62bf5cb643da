/** Heartbeats, which keep the worker alive and detect a dead connection. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { event, pass, settle } from "./virtual.mjs";

const { Heartbeat, keepRestarting } = await import("../../../extension/link/keepalive.js");

/** The browser stops a worker after this much silence. */
const WORKER_LIMIT = 30_000;

test("pings are sent often enough for the worker to live on", async () => {
  const pings = [Date.now()];
  const heartbeat = new Heartbeat({ ping: () => (pings.push(Date.now()), heartbeat.received()), dead: () => assert.fail("it is not dead") });
  await pass(200_000);
  heartbeat.stop();
  const pauses = pings.slice(1).map((at, number) => at - pings[number]);
  assert.ok(pauses.length >= 6 && Math.max(...pauses) < WORKER_LIMIT, `pauses between pings: ${pauses}`);
});

test("a hub that says nothing between two pings is dead", async () => {
  let [pings, dead] = [0, 0];
  const heartbeat = new Heartbeat({ ping: () => (pings += 1), dead: () => (dead += 1) });
  await pass(20_000);
  assert.deepEqual([pings, dead], [1, 0]);
  heartbeat.received();
  await pass(20_000);
  assert.deepEqual([pings, dead], [2, 0]);
  await pass(20_000);
  assert.deepEqual([pings, dead], [2, 1]);
  heartbeat.stop();
});

test("an alarm wakes the worker every half minute, and is not put off by a worker that starts", async () => {
  const [alarms, created] = [new Map(), []];
  const onAlarm = event();
  globalThis.chrome = {
    alarms: {
      onAlarm,
      get: async (name) => alarms.get(name),
      create: async (name, how) => (created.push(how), alarms.set(name, how)),
    },
    runtime: { onStartup: event(), onInstalled: event() },
  };
  let woken = 0;
  for (let start = 0; start < 2; start += 1) {
    keepRestarting(() => (woken += 1));
    await settle();
  }
  assert.deepEqual(created, [{ periodInMinutes: 0.5 }]);
  onAlarm.fire({ name: "another" });
  assert.equal(woken, 0);
  onAlarm.fire({ name: [...alarms.keys()][0] });
  assert.equal(woken, 2);
});
