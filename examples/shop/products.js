// The shop's products. Prices are in cents, so that sums are exact.

export const CURRENCY = "EUR";

/**
 * @typedef {{ id: string, name: string, price: number, picture: string, tint: string, about: string, words: string }} Product
 */

/** @type {readonly Product[]} */
export const PRODUCTS = Object.freeze([
  { id: "storm-lantern", name: "Storm lantern", price: 4800, picture: "lantern", tint: "amber", about: "Burns twenty hours on one filling, and stays lit in the wind.", words: "light lamp oil evening" },
  { id: "head-torch", name: "Head torch", price: 2900, picture: "torch", tint: "sky", about: "Three brightnesses and a red one that keeps your eyes used to the dark.", words: "light lamp led night" },
  { id: "beeswax-candles", name: "Beeswax candles", price: 1600, picture: "candles", tint: "amber", about: "Four hand-rolled candles that smell of honey.", words: "light evening set" },
  { id: "enamel-mug", name: "Enamel mug", price: 1400, picture: "mug", tint: "sky", about: "For coffee over the fire. Chips with honour.", words: "coffee tea cup kitchen" },
  { id: "camp-kettle", name: "Camp kettle", price: 4200, picture: "kettle", tint: "clay", about: "One litre, folds its handle away, boils in four minutes.", words: "coffee tea water kitchen" },
  { id: "wool-blanket", name: "Wool blanket", price: 8900, picture: "blanket", tint: "clay", about: "Undyed wool, woven thick enough to sit out the first frost.", words: "warm sleep" },
  { id: "hiking-socks", name: "Hiking socks", price: 1800, picture: "socks", tint: "moss", about: "Merino wool with a padded heel. Darned for free, for life.", words: "warm clothes feet" },
  { id: "brass-compass", name: "Brass compass", price: 3600, picture: "compass", tint: "moss", about: "Needs no battery and no signal. Points north.", words: "map path navigation" },
  { id: "field-notebook", name: "Field notebook", price: 1250, picture: "notebook", tint: "sky", about: "Stone paper that takes pencil in the rain.", words: "paper write pencil" },
].map((product) => Object.freeze(product)));

/** @param {string} id */
export const product = (id) => PRODUCTS.find((one) => one.id === id);

/** The products whose name, description or keywords contain every word of the query, and that cost at most `most` cents.
 * @param {string} query
 * @param {number} [most] */
export function find(query, most = Infinity) {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  return PRODUCTS.filter((one) => {
    const text = `${one.name} ${one.about} ${one.words}`.toLowerCase();
    return one.price <= most && wanted.every((word) => text.includes(word));
  });
}

const format = new Intl.NumberFormat("en", { style: "currency", currency: CURRENCY });

/** An amount in cents as text. @param {number} cents */
export const money = (cents) => format.format(cents / 100);
