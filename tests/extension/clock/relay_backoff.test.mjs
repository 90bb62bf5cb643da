/** When the extension connects to a relay again: at random within a window that depends on the close code. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { reconnectDelay } from "../../../extension/link/relay_backoff.js";

test("clients of a node that ended come back evenly over the window", () => {
  const count = 10_000;
  const delays = Array.from({ length: count }, (_, number) => reconnectDelay(1006, 0, () => number / count));
  const perSecond = [0, 1, 2, 3, 4].map((second) => delays.filter((each) => Math.floor(each / 1000) === second).length);
  assert.ok(Math.max(...perSecond) - Math.min(...perSecond) <= 5, `${perSecond}`);
  assert.ok(Math.max(...delays) <= 5000);
});

test("the window doubles with every failure, up to half a minute", () => {
  const ends = [0, 1, 2, 3, 50].map((failures) => reconnectDelay(1012, failures, () => 1));
  assert.deepEqual(ends, [5000, 10_000, 20_000, 30_000, 30_000]);
  assert.equal(reconnectDelay(1012, 50, () => 0), 0);
});

test("after a refusal it waits in any case, and after changed settings not at all", () => {
  assert.deepEqual([4000, 4001, 1013].map((code) => reconnectDelay(code, 0, () => 0)), [30_000, 30_000, 5000]);
  assert.equal(reconnectDelay(4001, 0, () => 1), 35_000);
  assert.equal(reconnectDelay(1000, 7, () => 1), 0);
});
