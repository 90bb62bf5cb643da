// The shop's tools for agents. Each does something that a person could do on the page, and the page shows it.

import { cart, MOST, Refused } from "./cart.js";
import { CURRENCY, money } from "./products.js";
import { agentState, ask, glow, glowProduct, placeOrder, record, show, toast } from "./shop.js";

// With `?cache=off` the tools are not cached after the visit, because the URL will no longer work.
const REMEMBERED = new URLSearchParams(location.search).get("cache") !== "off";

const item = {
  type: "object",
  properties: {
    productId: { type: "string" }, name: { type: "string" }, quantity: { type: "integer" },
    price: { type: "number" }, sum: { type: "number" },
  },
};
const cartSchema = {
  type: "object",
  properties: {
    items: { type: "array", items: item },
    subtotal: { type: "number" }, discount: { type: "number" }, total: { type: "number" },
    currency: { type: "string" }, coupon: { type: "string" },
  },
  required: ["items", "total", "currency"],
};

/**
 * @typedef {{ said: string, facts: object, declined?: boolean }} Done
 * @typedef {{ name: string, title: string, description: string, inputSchema: object, outputSchema?: object, annotations: object,
 *   run: (args: any, client: any) => Done | Promise<Done> }} Tool
 */

/** @type {Tool[]} */
const TOOLS = [
  {
    name: "search_products",
    title: "Search products",
    description: "Find products by words and price. Returns their ids, names and prices in euros; without a query, all products.",
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", maxLength: 100, description: "Words the product must match, for example \"light\"" },
        maxPrice: { type: "number", minimum: 0, description: "Maximum price in euros" },
      },
      additionalProperties: false,
    },
    outputSchema: {
      type: "object",
      properties: {
        products: {
          type: "array",
          items: {
            type: "object",
            properties: {
              productId: { type: "string" }, name: { type: "string" }, price: { type: "number" },
              currency: { type: "string" }, description: { type: "string" },
            },
            required: ["productId", "name", "price"],
          },
        },
      },
      required: ["products"],
    },
    annotations: { readOnlyHint: true, cache: REMEMBERED },
    run({ query = "", maxPrice }) {
      const found = show(String(query).trim(), maxPrice === undefined ? undefined : Math.round(maxPrice * 100));
      found.forEach((one) => glowProduct(one.id));
      const products = found.map((one) => ({
        productId: one.id, name: one.name, price: one.price / 100, currency: CURRENCY, description: one.about,
      }));
      const list = found.map((one) => `${one.name}, ${money(one.price)} (${one.id})`).join("; ");
      return { said: found.length ? `${found.length} found: ${list}` : "Nothing matches.", facts: { products } };
    },
  },
  {
    name: "get_cart",
    title: "Show the cart",
    description: "The contents of the cart, with quantities and the total in euros.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    outputSchema: cartSchema,
    annotations: { readOnlyHint: true },
    run() {
      glow(/** @type {HTMLElement} */ (document.getElementById("cart")));
      return { said: inCart(), facts: cart.facts() };
    },
  },
  {
    name: "add_to_cart",
    title: "Add to the cart",
    description: "Put a product into the cart. search_products lists the ids.",
    inputSchema: {
      type: "object",
      properties: {
        productId: { type: "string", description: "The product's id, for example \"storm-lantern\"" },
        quantity: { type: "integer", minimum: 1, maximum: MOST, description: "How many (default 1)" },
      },
      required: ["productId"],
      additionalProperties: false,
    },
    outputSchema: cartSchema,
    annotations: { readOnlyHint: false, destructiveHint: false },
    run({ productId, quantity = 1 }) {
      const added = cart.add(String(productId), quantity);
      glowProduct(added.id);
      glow(/** @type {HTMLElement} */ (document.getElementById(`line-${added.id}`)));
      return { said: `Added ${quantity} × ${added.name}. ${inCart()}`, facts: cart.facts() };
    },
  },
  {
    name: "checkout",
    title: "Check out",
    description: "Order the contents of the cart. The person is asked to confirm before anything is ordered.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    annotations: { readOnlyHint: false, destructiveHint: true },
    async run(_args, client) {
      if (cart.count === 0) throw new Refused("The cart is empty. Add something with add_to_cart first.");
      const asked = `Order ${cart.count === 1 ? "1 item" : `${cart.count} items`} for ${money(cart.sums.total)} at Larch & Lantern?`;
      if (!(await confirmed(client, asked))) {
        return { said: "The person did not confirm; nothing was ordered.", facts: { ordered: false }, declined: true };
      }
      const order = placeOrder();
      return { said: `Order ${order.orderNumber} is placed: ${money(Math.round(order.total * 100))}.`, facts: { ordered: true, ...order } };
    },
  },
];

function inCart() {
  return cart.count ? `In the cart: ${cart.count === 1 ? "1 item" : `${cart.count} items`}, ${money(cart.sums.total)}.` : "The cart is empty.";
}

/** Ask the person to confirm: through the agent's client if it can ask, otherwise on the page.
 * @param {any} client @param {string} message */
async function confirmed(client, message) {
  const here = (/** @type {any} */ given) => given?.confirmed === true || ask("An agent wants to order this for you:", client?.signal);
  if (typeof client?.requestUserInteraction !== "function") return here(null);
  try {
    return (await client.requestUserInteraction(here, { message })) === true;
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotAllowedError") return false; // the person was asked and declined
    throw error;
  }
}

/** The page's side of one call: run it, show it, and answer with an MCP result.
 * @param {Tool} tool */
function offered({ run, ...tool }) {
  return {
    ...tool,
    async execute(/** @type {any} */ args, /** @type {any} */ client) {
      let answer;
      try {
        answer = await run(args ?? {}, client);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        record(tool.name, args ?? {}, error.message, true);
        return { content: [{ type: "text", text: error.message }], isError: true };
      }
      record(tool.name, args ?? {}, answer.said, answer.declined);
      toast(answer.said, true);
      return { content: [{ type: "text", text: answer.said }], structuredContent: answer.facts };
    },
  };
}

const context = /** @type {any} */ (document).modelContext ?? /** @type {any} */ (navigator).modelContext;
if (context) {
  for (const tool of TOOLS) context.registerTool(offered(tool));
  agentState("Ready: this page offers five tools to the agents you allow.");
} else {
  agentState("This browser offers pages no way to declare tools. Open the shop with `tabhub demo`.");
}
