/**
 * Scripts of plugins that run in a page before the page's own: registered with the browser, one for each plugin.
 *
 * Owns which are registered: exactly those of the plugins there are, also after the browser was started anew. They
 * reach pages that open from now on; a page that is open goes on without.
 */

import { textOf } from "../link/rpc.js";

/** @typedef {import("./plugin.js").Plugin} Plugin */
/** @typedef {chrome.scripting.RegisteredContentScript} Script */

const PREFIX = "plugin-before:";

/**
 * Make the browser run exactly the scripts of these plugins.
 * @param {readonly Plugin[]} plugins
 * @param {(message: string) => void} note
 */
export async function registerPreScripts(plugins, note) {
  const wanted = plugins.flatMap(scriptsOf);
  const present = (await chrome.scripting.getRegisteredContentScripts()).filter(({ id }) => id.startsWith(PREFIX));
  const gone = present.map(({ id }) => id).filter((id) => !wanted.some((script) => script.id === id));
  if (gone.length > 0) await chrome.scripting.unregisterContentScripts({ ids: gone });
  for (const script of wanted) {
    const known = present.find(({ id }) => id === script.id);
    if (known && isSame(known, script)) continue; // a page that opens in between would get none
    try {
      await (known ? chrome.scripting.updateContentScripts([script]) : chrome.scripting.registerContentScripts([script]));
    } catch (error) {
      // One plugin's file or pattern that the browser refuses takes no other with it.
      if (known) await chrome.scripting.unregisterContentScripts({ ids: [script.id] });
      note(`The script of ${script.id.slice(PREFIX.length)} that runs before its pages is not used: ${textOf(error)}`);
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
      // Pages get what they are after (a token, say) in frames of their own as well, each with its own `fetch`.
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
