// How a document reacts to an input: whether it started timers, and whether it still changes.

// Timers of all worlds of a document are numbered in one sequence, so ours are counted to know the page's.
let ownTimers = 0;
const setTimeout = (work, ms) => {
  ownTimers += 1;
  return globalThis.setTimeout(work, ms);
};

const makeReactions = () => {
  // A document that changes is quiet after this time without a change.
  const QUIET_MS = 40;
  // Delays of timers that are waited for; editors and menus use up to 100 ms, fields with suggestions more.
  const DELAY_MS = 120;
  const SUGGESTIONS_DELAY_MS = 350;
  const SUGGESTIONS = "[role=combobox], [aria-autocomplete], [aria-haspopup], [list], [autocomplete=off]";
  const LONGEST_MS = 1000;
  // A node that changes more often than this is a clock or an animation.
  const OFTEN = 3;
  let watched = null;
  const tick = (ms) => new Promise((done) => setTimeout(done, ms));
  const frame = () => Promise.race([new Promise((done) => requestAnimationFrame(done)), tick(100)]);
  const pageTimers = () => setTimeout(() => {}) - ownTimers;

  // Call right before an input on an element.
  const watchReactions = (element = null) => {
    watched?.observer.disconnect();
    const times = new WeakMap();
    const state = { changed: -Infinity, until: performance.now() + LONGEST_MS };
    state.delay = element?.matches(SUGGESTIONS) ? SUGGESTIONS_DELAY_MS : DELAY_MS;
    state.observer = new MutationObserver((records) => {
      for (const node of new Set(records.map(({ target }) => target))) {
        const count = (times.get(node) ?? 0) + 1;
        times.set(node, count);
        if (count <= OFTEN) state.changed = performance.now();
      }
    });
    const roots = [document];
    for (let root = element?.getRootNode(); root?.host; root = root.host.getRootNode()) roots.push(root);
    for (const root of roots) state.observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
    setTimeout(() => state.observer.disconnect(), LONGEST_MS);
    state.timers = pageTimers();
    watched = state;
  };

  // Resolves once a frame and the timers that the page started have passed and the document no longer changes. May be
  // called again after more has happened.
  const settled = async () => {
    const state = watched;
    if (!state) return;
    const handled = performance.now();
    const due = pageTimers() > state.timers ? handled + state.delay : handled;
    await frame();
    await tick(2);
    for (;;) {
      const now = performance.now();
      // A change by then was what a timer did.
      const timers = state.changed > handled ? 0 : due;
      const left = Math.min(Math.max(state.changed + QUIET_MS, timers), state.until) - now;
      if (state !== watched || left <= 0) break;
      await tick(left);
    }
  };
  return { watchReactions, settled, nextFrame: frame };
};
