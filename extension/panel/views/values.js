/**
 * Parameters as a list of names and values, long values in a box. Nothing is left out, and invisible characters are made
 * visible.
 */

import { h } from "../dom.js";

/** Invisible characters and those that change the direction of text; shown as their code point. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0]|[\u{e0000}-\u{e0fff}]|(?<![\p{Extended_Pictographic}\ufe0f])[\u200d\ufe0f]/gu;
const SHORT = 60;

/** @param {string} text */
export function visible(text) {
  return text.replace(
    HIDDEN,
    (hidden) => `⟨U+${(hidden.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/**
 * @param {Record<string, unknown> | undefined} given
 * @param {string} none the text if there are none
 */
export function values(given, none) {
  const entries = Object.entries(given ?? {});
  if (entries.length === 0) return h("p", { class: "quiet" }, none);
  return h(
    "dl",
    { class: "values" },
    entries.flatMap(([name, value]) => {
      const text = visible(typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? String(value)));
      const long = text.length > SHORT || text.includes("\n");
      return [
        h("dt", { key: `name ${name}` }, visible(name)),
        h(
          "dd",
          { key: `value ${name}`, class: long ? "long" : "" },
          long
            ? h("pre", { tabindex: "0", role: "group", "aria-label": `Value of ${visible(name)}` }, text)
            : h("code", null, text === "" ? "“”" : text),
        ),
      ];
    }),
  );
}
