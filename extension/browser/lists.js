/**
 * What every long list the hub asks for has in common: it is cut, and says how much was left out.
 */

const LONGEST_TEXT = 2_000;

/**
 * The first `most` items under a name, and how many more there are.
 * @template Item
 * @param {string} name
 * @param {Item[]} items
 * @param {number} most
 */
export function cut(name, items, most) {
  const left = items.length - most;
  return { [name]: items.slice(0, most), ...(left > 0 ? { more: left } : {}) };
}

/**
 * A text the browser keeps, at most 2,000 characters of it.
 * @param {string | undefined} text
 */
export function short(text) {
  return (text ?? "").slice(0, LONGEST_TEXT);
}

/**
 * A moment the browser gives in milliseconds, in a form people read; nothing for one it does not know.
 * @param {string} name
 * @param {number | undefined} milliseconds
 */
export function moment(name, milliseconds) {
  return milliseconds ? { [name]: new Date(milliseconds).toISOString() } : {};
}
