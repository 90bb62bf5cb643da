// The page as a person uses it: products, search, cart, the confirmation of an order, and the calls of agents.

import { cart, MOST, Refused } from "./cart.js";
import { find, money, PRODUCTS, product } from "./products.js";

/** @param {string} id */
const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** An element with attributes and children; text is always text, never markup.
 * @param {string} name @param {Record<string, string>} [attributes] @param {...(Node | string)} children */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** @param {string} name */
function picture(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("viewBox", "0 0 96 96");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `products.svg#${name}`);
  svg.append(use);
  return svg;
}

// Products

for (const one of PRODUCTS) {
  const add = make("button", { type: "button", class: "add", "aria-label": `Add ${one.name} to the cart` }, "Add");
  add.addEventListener("click", () => attempt(() => toast(`${cart.add(one.id, 1).name} is in the cart`)));
  at("products").append(
    make("li", { class: "product", id: `product-${one.id}` },
      make("div", { class: `picture ${one.tint}` }, picture(one.picture)),
      make("div", { class: "words" },
        make("h3", {}, one.name),
        make("p", {}, one.about),
        make("div", { class: "buy" }, make("b", {}, money(one.price)), add))));
}

/** Show only what matches. @param {string} query @param {number} [most] */
export function show(query, most) {
  const matching = find(query, most);
  const ids = new Set(matching.map((one) => one.id));
  for (const one of PRODUCTS) at(`product-${one.id}`).hidden = !ids.has(one.id);
  const all = matching.length === PRODUCTS.length;
  const below = most === undefined || most === Infinity ? "" : ` up to ${money(most)}`;
  at("found").textContent = all ? `${matching.length} products` : `${matching.length} of ${PRODUCTS.length}${query ? ` for “${query}”` : ""}${below}`;
  at("show-all").hidden = all;
  at("nothing").hidden = matching.length > 0;
  /** @type {HTMLInputElement} */ (at("query")).value = query;
  return matching;
}

at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  show(/** @type {HTMLInputElement} */ (at("query")).value.trim());
});
at("show-all").addEventListener("click", () => show(""));

// Cart

function drawCart() {
  at("cart-count").textContent = String(cart.count);
  at("cart-empty").hidden = cart.count > 0;
  at("sums").hidden = at("coupon").hidden = cart.count === 0;
  /** @type {HTMLButtonElement} */ (at("checkout")).disabled = cart.count === 0;
  at("lines").replaceChildren(...cart.items.map(({ product: one, quantity }) => {
    const step = (/** @type {number} */ by, /** @type {string} */ sign, /** @type {string} */ words) => {
      const button = make("button", { type: "button", "aria-label": `${words} ${one.name}` }, sign);
      if (quantity + by > MOST) button.setAttribute("disabled", "");
      button.addEventListener("click", () => cart.set(one.id, quantity + by));
      return button;
    };
    return make("li", { id: `line-${one.id}` },
      make("span", { class: "line-name" }, one.name),
      make("span", { class: "stepper" }, step(-1, "−", "One less:"), make("span", {}, String(quantity)), step(1, "+", "One more:")),
      make("span", { class: "line-sum" }, money(one.price * quantity)));
  }));
  const { goods, off, total } = cart.sums;
  const row = (/** @type {string} */ name, /** @type {string} */ value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));
  at("sums").replaceChildren(
    ...(off ? [row("Goods", money(goods)), row(`Coupon ${cart.coupon}`, `−${money(off)}`)] : []),
    row("Total", money(total)));
  if (!cart.coupon) at("coupon-note").textContent = "";
  if (cart.count > 0) at("receipt").hidden = true;
}
cart.addEventListener("change", drawCart);

// The coupon form is a tool as well, declared in the markup: person and agent get the same answer.
at("coupon").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.currentTarget);
  const submit = /** @type {SubmitEvent & { agentInvoked?: boolean, respondWith?: (answer: Promise<unknown>) => void }} */ (event);
  const code = String(new FormData(form).get("code") ?? "");
  let said, failed = false;
  try {
    said = cart.apply(code);
    /** @type {HTMLInputElement} */ (at("code")).value = ""; // a reset would take the call back from the agent
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    said = error.message;
    failed = true;
  }
  at("coupon-note").textContent = said;
  if (!submit.agentInvoked) return;
  record("apply_coupon", { code }, said, failed);
  glow(at("coupon"));
  const answer = { content: [{ type: "text", text: said }], structuredContent: cart.facts(), isError: failed };
  submit.respondWith?.(Promise.resolve(answer));
});

// Confirming an order

/** Ask the person on the page; aborting the signal closes the question with "no".
 * @param {string} who @param {AbortSignal} [signal] @returns {Promise<boolean>} */
export function ask(who, signal) {
  const dialog = /** @type {HTMLDialogElement} */ (at("ask"));
  at("ask-who").textContent = who;
  const row = (/** @type {string} */ name, /** @type {string} */ sum) =>
    make("li", {}, make("span", { class: "line-name" }, name), make("span", { class: "line-sum" }, sum));
  const { off, total } = cart.sums;
  at("ask-lines").replaceChildren(
    ...cart.items.map(({ product: one, quantity }) => row(`${quantity} × ${one.name}`, money(one.price * quantity))),
    ...(off ? [row(`Coupon ${cart.coupon}`, `−${money(off)}`)] : []));
  at("ask-total").textContent = money(total);
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    const done = new AbortController();
    const end = (/** @type {boolean} */ answer) => {
      done.abort();
      if (dialog.open) dialog.close();
      resolve(answer);
    };
    const once = { signal: done.signal };
    at("ask-yes").addEventListener("click", () => end(true), once);
    at("ask-no").addEventListener("click", () => end(false), once);
    dialog.addEventListener("close", () => end(false), once);
    signal?.addEventListener("abort", () => end(false), once);
  });
}

/** Turn the cart into an order and show it. */
export function placeOrder() {
  const order = cart.order();
  at("receipt-text").textContent = `Order ${order.orderNumber} over ${money(Math.round(order.total * 100))} is placed.`;
  at("receipt").hidden = false;
  return order;
}

at("checkout").addEventListener("click", async () => {
  if (await ask("You are about to order:")) toast(`Order ${placeOrder().orderNumber} is placed`);
});

// Showing what happens

/** @param {() => void} work */
function attempt(work) {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message);
  }
}

/** @param {string} text @param {boolean} [agent] */
export function toast(text, agent = false) {
  const note = make("p", { class: agent ? "toast by-agent" : "toast" }, text);
  at("toasts").append(note);
  while (at("toasts").childElementCount > 2) at("toasts").firstElementChild?.remove();
  setTimeout(() => note.remove(), 5000);
}

/** Highlight what an agent has just changed. @param {HTMLElement} element */
export function glow(element) {
  element.classList.remove("glow");
  void element.offsetWidth; // restarts the animation
  element.classList.add("glow");
}

/** @param {string} id */
export function glowProduct(id) {
  if (product(id)) glow(at(`product-${id}`));
}

/** List a call of an agent on the page. @param {string} tool @param {object} args @param {string} said @param {boolean} [failed] */
export function record(tool, args, said, failed = false) {
  const given = Object.entries(args).map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join(", ");
  at("steps").append(make("li", failed ? { class: "failed" } : {}, make("code", {}, `${tool}(${given})`), make("span", {}, said)));
  while (at("steps").childElementCount > 8) at("steps").firstElementChild?.remove();
}

/** @param {string} text */
export function agentState(text) {
  at("agent-state").textContent = text;
}

show("");
drawCart();
