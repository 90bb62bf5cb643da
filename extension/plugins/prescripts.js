/**
 * Scripts of plugins that run before the page's own scripts: registered with the browser, one per plugin.
 *
 * Owns which are registered: exactly those of the current plugins, also after a restart of the browser. They run in pages
 * that open from then on, not in open ones.
 */

import { textOf } from "../link/rpc.js";

/** @typedef {import("./plugin.js").Plugin} Plugin */
/** @typedef {chrome.scripting.RegisteredContentScript} Script */

const PREFIX = "plugin-before:";

/**
 * Register exactly the scripts of these plugins.
 * @param {readonly Plugin[]} plugins
 * @param {(message: string) => void} note
 */
export async function registerPreScripts(plugins, note) {
  const wanted = plugins.flatMap(scriptsOf);
  const present = (await chrome.scripting.getRegisteredContentScripts()).filter(({ id }) => id.startsWith(PREFIX));
  const outdated = present.map(({ id }) => id).filter((id) => !wanted.some((script) => script.id === id));
  if (outdated.length > 0) await chrome.scripting.unregisterContentScripts({ ids: outdated });
  for (const script of wanted) {
    const known = present.find(({ id }) => id === script.id);
    if (known && isSame(known, script)) continue; // a page that opens in between would get none
    try {
      await (known ? chrome.scripting.updateContentScripts([script]) : chrome.scripting.registerContentScripts([script]));
    } catch (error) {
      // A file or pattern that the browser refuses must not affect other plugins.
      if (known) await chrome.scripting.unregisterContentScripts({ ids: [script.id] });
      note(`The pre-script of ${script.id.slice(PREFIX.length)} cannot be used: ${textOf(error)}`);
    }
  }
}

/**
 * @param {Plugin} plugin
 * @returns {Script[]}
 */
function scriptsOf({ name, preScript, patterns, exclude }) {
  if (!preScript || patterns.length === 0) return [];
  return [
    {
      id: PREFIX + name,
      js: [preScript],
      matches: patterns,
      excludeMatches: exclude,
      // Pages also load data such as tokens in frames, each with its own `fetch`.
      allFrames: true,
      runAt: "document_start",
      world: "MAIN",
      persistAcrossSessions: true,
    },
  ];
}

/**
 * @param {Script} known
 * @param {Script} wanted
 */
function isSame(known, wanted) {
  const facts = (/** @type {Script} */ { js, matches, excludeMatches }) =>
    JSON.stringify([js ?? [], matches ?? [], excludeMatches ?? []].map((list) => list.toSorted()));
  return facts(known) === facts(wanted);
}
