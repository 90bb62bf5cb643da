/**
 * Covers secret fields in pictures for agents over a relay that may only look: their text is not drawn.
 *
 * Owns which fields are secret. A page cannot undo it: of two important declarations a user's style sheet wins.
 */

import { FAILED, RpcError } from "./rpc.js";

const NAMES = ["passw", "pwd", "passcode", "otp", "one-time", "onetime", "cvc", "cvv", "csc", "cardnum", "card-num", "card_num"];
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
    await chrome.scripting.insertCSS(style).catch(() => {
      throw new RpcError(FAILED, REFUSED);
    });
    return await take();
  } finally {
    const left = (covered.get(tabId) ?? 1) - 1;
    if (left > 0) covered.set(tabId, left);
    else {
      covered.delete(tabId);
      // A closed tab has nothing to uncover.
      await chrome.scripting.removeCSS(style).catch(() => {});
    }
  }
}
