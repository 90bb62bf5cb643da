/**
 * Covers secret fields in pictures for agents over a relay that may only look: their text is not drawn.
 *
 * Owns which fields are secret, and the style sheets that cover them: a user's for the document, over which the page's own
 * do not win, and one in each shadow root, which that one does not reach.
 */

import { FAILED, RpcError } from "./rpc.js";

/** Parts of names of fields; the hub's kit (secret_fields.js) recognises more, but needs a script in the page. */
const NAMES = [
  ...["passw", "passphrase", "passcode", "pwd", "secret", "token", "apikey", "otp", "one-time", "onetime", "ssn"],
  ...["cvc", "cvv", "csc", "cardnum", "card-num", "card_num", "ccnum"],
];
const FIELDS = [
  "input[type=password i]",
  "[autocomplete*=password i]",
  "[autocomplete*=one-time-code i]",
  "[autocomplete*=cc- i]",
  ...NAMES.flatMap((name) => [`input[name*="${name}" i]`, `input[id*="${name}" i]`]),
];
const CSS = `:is(${FIELDS.join(", ")}) {
  color: transparent !important;
  -webkit-text-fill-color: transparent !important;
  -webkit-text-stroke-color: transparent !important;
  text-shadow: none !important;
}`;
const REFUSED = "Secret fields of this page could not be covered, so a picture of it needs permission to act.";

/** Pictures that are being taken, by tab. @type {Map<number, number>} */
const covered = new Map();

/**
 * Take a picture while secret fields are covered.
 * @template Picture
 * @param {number} tabId
 * @param {() => Promise<Picture>} take
 * @returns {Promise<Picture>}
 */
export async function coverSecretFields(tabId, take) {
  const style = { target: { tabId, allFrames: true }, css: CSS, origin: /** @type {const} */ ("USER") };
  covered.set(tabId, (covered.get(tabId) ?? 0) + 1);
  try {
    await Promise.all([chrome.scripting.insertCSS(style), inShadowRoots(tabId, CSS)]).catch(() => {
      throw new RpcError(FAILED, REFUSED);
    });
    return await take();
  } finally {
    const left = (covered.get(tabId) ?? 1) - 1;
    if (left > 0) covered.set(tabId, left);
    else {
      covered.delete(tabId);
      // A closed tab has nothing to uncover.
      await Promise.all([chrome.scripting.removeCSS(style), inShadowRoots(tabId, "")]).catch(() => {});
    }
  }
}

/**
 * Set the style sheet of all shadow roots of a tab's pages.
 * @param {number} tabId
 * @param {string} css
 */
function inShadowRoots(tabId, css) {
  return chrome.scripting.executeScript({ target: { tabId, allFrames: true }, func: styleShadowRoots, args: [css], injectImmediately: true });
}

/**
 * Runs in a page, in the extension's own world.
 * @param {string} css
 */
function styleShadowRoots(css) {
  const world = /** @type {{ tabhubCover?: CSSStyleSheet }} */ (globalThis);
  const sheet = (world.tabhubCover ??= new CSSStyleSheet());
  sheet.replaceSync(css);
  const hosts = /-|^(?:article|aside|blockquote|body|div|footer|h[1-6]|header|main|nav|p|section|span)$/;
  const visit = (/** @type {Document | ShadowRoot} */ root) => {
    for (const element of root.querySelectorAll("*")) {
      if (!(element instanceof HTMLElement) || !hosts.test(element.localName)) continue;
      const inner = /** @type {ShadowRoot | null} */ (chrome.dom.openOrClosedShadowRoot(element));
      if (!inner) continue;
      const others = inner.adoptedStyleSheets.filter((each) => each !== sheet);
      inner.adoptedStyleSheets = css ? [...others, sheet] : others;
      visit(inner);
    }
  };
  visit(document);
}
