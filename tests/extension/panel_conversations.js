/**
 * A hub's messages about conversations with the assistant, one of them complete.
 */

const now = Date.now();
const call = (id, name, given, more = {}) => ({ id, name, arguments: given, problem: "", ...more });
const result = (id, name, text, seconds, more = {}) => ({ call: id, name, text, seconds, failed: false, denied: false, ...more });

/** Conversations with the assistant, newest first, and all messages of the first. */
globalThis.panelConversations = [
  { id: "0123456789ab", title: "Find a tent for two, and put it into the cart", started: now / 1000 - 900, changed: now / 1000 - 40, running: false },
  { id: "ba9876543210", title: "Which of my tabs are about trains?", started: now / 1000 - 90_000, changed: now / 1000 - 86_000, running: false },
];
globalThis.panelConversation = {
  conversation: "0123456789ab",
  title: "Find a tent for two, and put it into the cart",
  session: "aaaaaaaa…",
  running: false,
  earlier: 0,
  why: "done",
  explanation: "",
  events: [],
  messages: [
    { role: "user", text: "Find a tent for two under 300 €, and put it into the cart." },
    {
      role: "assistant",
      text: "I look at what the shop has.",
      calls: [
        call("c1", "browser_snapshot", { tabId: 12 }),
        call("c2", "website_tool_shop_tab12_search", { query: "tent 2 persons", maxPrice: 300 }),
      ],
    },
    {
      role: "tool",
      results: [
        result("c1", "browser_snapshot", "heading Nordlicht Outdoor\nlink Tents\nlink Sleeping bags", 0.084),
        result("c2", "website_tool_shop_tab12_search", '{"products": [{"name": "Fjell 2", "price": 249}]}', 1.24),
      ],
    },
    {
      role: "assistant",
      text: "Two fit:\n\n1. **Fjell 2**, 249 €, 2.1 kg\n2. *Vidde Light*, 289 €, 1.4 kg\n\nThe first has the better reviews ([shop](https://shop.nordlicht.example/fjell)). I put it into the cart:\n\n```js\ncart.add(\"fjell-2\")\n```",
      calls: [
        call("c3", "website_tool_shop_tab12_add", { product: "fjell-2", quantity: 1 }),
        call("c4", "browser_execute_script", { code: "return document.cookie" }),
        call("c5", "browser_open_tab", { url: "https://shop.nordlicht.example/cart" }),
      ],
    },
    {
      role: "tool",
      results: [
        result("c3", "website_tool_shop_tab12_add", "In the cart: 1 item", 0.31),
        result("c4", "browser_execute_script", "The person did not allow browser_execute_script.", 6.2, { failed: true, denied: true }),
        result("c5", "browser_open_tab", "The page did not load within 10 s.", 10.01, { failed: true }),
      ],
    },
    { role: "assistant", text: "The **Fjell 2** is in your cart. I could not open the cart to check it." },
  ],
};
