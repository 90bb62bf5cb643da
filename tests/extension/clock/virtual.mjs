/**
 * Virtual time for modules of the extension that run in Node: timers and `Date` stand still until `pass` moves them.
 *
 * Import this before the module under test. It also provides the parts of the browser that the modules touch when loaded.
 */

import { mock } from "node:test";

mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_800_000_000_000 });

const STEP = 100;

/** Let everything that is ready run. */
export async function settle() {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((next) => setImmediate(next));
}

/**
 * Let time pass, in steps, so that what a timer sets off also falls due.
 * @param {number} ms
 */
export async function pass(ms) {
  await settle();
  for (let left = ms; left > 0; left -= STEP) {
    mock.timers.tick(Math.min(STEP, left));
    await settle();
  }
}

/** An event of the browser that a test fires itself. */
export function event() {
  const listeners = [];
  return {
    addListener: (listener) => listeners.push(listener),
    fire: (...given) => listeners.forEach((listener) => listener(...given)),
  };
}
