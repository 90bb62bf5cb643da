/**
 * Helpers for long lists: they are cut, with the number of omitted items.
 */

const LONGEST_TEXT = 2_000;

/**
 * The first `most` items as a field, and how many more there are.
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
 * A text, shortened to 2,000 characters.
 * @param {string | undefined} text
 */
export function short(text) {
  return (text ?? "").slice(0, LONGEST_TEXT);
}

/**
 * A time in milliseconds as an ISO field; no field if it is unknown.
 * @param {string} name
 * @param {number | undefined} milliseconds
 */
export function moment(name, milliseconds) {
  return milliseconds ? { [name]: new Date(milliseconds).toISOString() } : {};
}
