/**
 * The icons of the panel: outlines on a grid of 16, in the colour of the surrounding text.
 */

import { svg } from "./dom.js";

/** @type {Record<string, string>} */
const PATHS = {
  home: "M2.5 7.2 8 2.6l5.5 4.6M4 6.4v6.8h8V6.4M6.7 13.2V9.6h2.6v3.6",
  approvals: "M8 1.8 13 3.6v4c0 3-2 5.3-5 6.6-3-1.3-5-3.6-5-6.6v-4zM5.7 8l1.7 1.7 3-3.2",
  agents: "M8 1.6v1.9M3.8 3.5h8.4v6H3.8zM6.2 6.3v.6M9.8 6.3v.6M2.6 13.9c.7-1.8 2.7-2.7 5.4-2.7s4.7.9 5.4 2.7",
  activity: "M1.6 8.2h2.9l2-5 3 9.6 2-4.6h2.9",
  tools: "M2.4 4.4h5.2M11.4 4.4h2.2M9.5 2.7v3.4M2.4 8h1.4M7.6 8h6M5.7 6.3v3.4M2.4 11.6h6M12.2 11.6h1.4M10.3 9.9v3.4",
  plugins: "M6.2 3.4a1.8 1.8 0 0 1 3.6 0v.8h2.8v3h-.9a1.8 1.8 0 0 0 0 3.6h.9v2.6H3.4v-9.2h2.8z",
  servers: "M2.6 2.8h10.8v4H2.6zM2.6 9.2h10.8v4H2.6zM5 4.8h.01M5 11.2h.01M7.6 4.8h3.4M7.6 11.2h3.4",
  settings:
    "M8 5.8a2.2 2.2 0 1 1 0 4.4 2.2 2.2 0 0 1 0-4.4zM8 1.7v1.8M8 12.5v1.8M1.7 8h1.8M12.5 8h1.8M3.5 3.5l1.3 1.3M11.2 11.2l1.3 1.3M12.5 3.5l-1.3 1.3M4.8 11.2l-1.3 1.3",
  assistant: "M2.4 3.2h11.2v7.6H8.4L5.2 13.4v-2.6H2.4zM5.4 7h.01M8 7h.01M10.6 7h.01",
  pause: "M5.4 3.2v9.6M10.6 3.2v9.6",
  play: "M5 2.9v10.2L12.8 8z",
  search: "M7 2.6a4.4 4.4 0 1 1 0 8.8 4.4 4.4 0 0 1 0-8.8zM10.3 10.3l3.2 3.2",
  copy: "M5.4 5.4h7.8v7.8H5.4zM10.6 5.2V2.8H2.8v7.8h2.4",
  expand: "M9.4 2.6h4v4M13.2 2.8 9 7M6.6 13.4h-4v-4M2.8 13.2 7 9",
  chevron: "M6 3.6 10.4 8 6 12.4",
  close: "M3.8 3.8l8.4 8.4M12.2 3.8l-8.4 8.4",
  folder: "M1.9 4h4.3l1.4 1.7h6.5v6.9H1.9z",
  refresh: "M13.2 8a5.2 5.2 0 1 1-1.5-3.7M13.2 2.6v2.6h-2.6",
  reset: "M2.8 8a5.2 5.2 0 1 0 1.5-3.7M2.8 2.6v2.6h2.6",
  trash: "M2.8 4.2h10.4M6.2 4V2.6h3.6V4M4.2 4.4l.6 9h6.4l.6-9M6.8 6.8v4M9.2 6.8v4",
  plus: "M8 3v10M3 8h10",
  alert: "M8 2.2 14.4 13H1.6zM8 6.4v3M8 11.2h.01",
  tab: "M1.8 3.6h5l1.2 2h6.2v6.8H1.8z",
  globe: "M8 1.9a6.1 6.1 0 1 1 0 12.2A6.1 6.1 0 0 1 8 1.9zM2 8h12M8 1.9c-4 3.7-4 8.5 0 12.2 4-3.7 4-8.5 0-12.2z",
  clock: "M8 1.9a6.1 6.1 0 1 1 0 12.2A6.1 6.1 0 0 1 8 1.9zM8 4.6V8l2.3 1.5",
  link: "M6.6 9.4l2.8-2.8M7 4.6l1.5-1.5a2.9 2.9 0 0 1 4.2 4.2L11.2 9M9 11.4l-1.5 1.5a2.9 2.9 0 0 1-4.2-4.2L4.8 7",
  send: "M8 13.2V3.2M3.8 7.2 8 3l4.2 4.2",
  stop: "M4.4 4.4h7.2v7.2H4.4z",
  denied: "M8 1.9a6.1 6.1 0 1 1 0 12.2A6.1 6.1 0 0 1 8 1.9zM3.8 12.2 12.2 3.8",
  check: "M3.2 8.4l3.2 3.2 6.4-7",
};

/**
 * An icon by its name. It is decorative: the text next to it has the meaning.
 * @param {string} name
 * @param {number} [size]
 */
export function glyph(name, size = 16) {
  return svg(
    "svg",
    { class: "glyph", viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true", focusable: "false" },
    svg("path", { d: PATHS[name] ?? "" }),
  );
}
