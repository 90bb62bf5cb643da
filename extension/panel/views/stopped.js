/**
 * The tabs of this browser in which the person stopped the agents, with a way to return each.
 */

import { h } from "../dom.js";
import { host } from "../format.js";
import { glyph } from "../glyphs.js";
import { button, section } from "../components.js";

/** @typedef {import("../types.js").App} App */

/** @param {App} app */
export function stoppedTabs(app) {
  const tabs = app.link?.stopped ?? [];
  if (tabs.length === 0) return null;
  return section(
    "You stopped the agents here",
    null,
    h(
      "ul",
      { class: "tabs", "aria-label": "Tabs in which agents are stopped" },
      tabs.map(({ tabId, title, url }) =>
        h(
          "li",
          { key: tabId },
          glyph("tab", 14),
          h(
            "span",
            { class: "tab" },
            h("span", { class: "tab-title" }, title || "Untitled"),
            h("span", { class: "quiet" }, host(url) || "no page"),
          ),
          button("Return to agents", {
            small: true,
            name: `Return ${title || `tab ${tabId}`} to agents`,
            onclick: () => void app.act("tabs.resume", { tabId }, "Agents may use the tab again."),
          }),
        ),
      ),
    ),
  );
}
