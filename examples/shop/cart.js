// The cart and the orders: state and rules. It knows neither the page nor who is using it.

import { CURRENCY, product } from "./products.js";

export const MOST = 20; // of one product
const COUPONS = new Map([["LANTERN10", 10]]);
const KEPT = "larch-and-lantern";

/** The shop refuses something; the message says what to do. */
export class Refused extends Error {}

export class Cart extends EventTarget {
  constructor() {
    super();
    /** @type {Map<string, number>} */
    this.lines = new Map();
    this.coupon = "";
    this.#recall();
  }

  get count() {
    return [...this.lines.values()].reduce((sum, quantity) => sum + quantity, 0);
  }

  get items() {
    return [...this.lines].map(([id, quantity]) => ({ product: /** @type {import("./products.js").Product} */ (product(id)), quantity }));
  }

  get sums() {
    const goods = this.items.reduce((sum, line) => sum + line.product.price * line.quantity, 0);
    const off = Math.round((goods * (COUPONS.get(this.coupon) ?? 0)) / 100);
    return { goods, off, total: goods - off };
  }

  /** @param {string} id @param {number} quantity */
  add(id, quantity) {
    const found = product(id);
    if (!found) throw new Refused(`There is no product "${id}". search_products lists the ids.`);
    if (!Number.isInteger(quantity) || quantity < 1) throw new Refused("quantity must be a whole number from 1 up.");
    const there = this.lines.get(id) ?? 0;
    if (there + quantity > MOST) throw new Refused(`At most ${MOST} of one product: ${there} of ${found.name} are in the cart.`);
    this.lines.set(id, there + quantity);
    this.#changed();
    return found;
  }

  /** @param {string} id @param {number} quantity 0 takes it out */
  set(id, quantity) {
    if (quantity > 0) this.lines.set(id, Math.min(quantity, MOST));
    else this.lines.delete(id);
    this.#changed();
  }

  /** @param {string} text */
  apply(text) {
    const code = text.trim().toUpperCase();
    const off = COUPONS.get(code);
    if (off === undefined) throw new Refused(`"${code}" is not a coupon of this shop.`);
    this.coupon = code;
    this.#changed();
    return `${code}: ${off} % off.`;
  }

  /** Everything in the cart as an order; the cart is empty afterwards. */
  order() {
    const order = { ...this.facts(), orderNumber: `LL-${String(Math.floor(Math.random() * 90000) + 10000)}` };
    this.lines.clear();
    this.coupon = "";
    this.#changed();
    return order;
  }

  /** The cart as a tool returns it: prices in euros. */
  facts() {
    const { goods, off, total } = this.sums;
    return {
      items: this.items.map(({ product: one, quantity }) => ({
        productId: one.id, name: one.name, quantity, price: one.price / 100, sum: (one.price * quantity) / 100,
      })),
      subtotal: goods / 100,
      discount: off / 100,
      total: total / 100,
      currency: CURRENCY,
      ...(this.coupon && { coupon: this.coupon }),
    };
  }

  #changed() {
    sessionStorage.setItem(KEPT, JSON.stringify({ lines: [...this.lines], coupon: this.coupon }));
    this.dispatchEvent(new Event("change"));
  }

  #recall() {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
    if (!kept) return;
    this.lines = new Map(kept.lines.filter((/** @type {[string, number]} */ [id]) => product(id)));
    this.coupon = kept.coupon;
  }
}

export const cart = new Cart();
