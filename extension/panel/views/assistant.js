/**
 * The place of the assistant: it is offered only where the hub says that it has one.
 */

import { empty } from "../parts.js";

/** @typedef {import("../shapes.js").View} View */

/** @type {View} */
export const assistant = {
  id: "assistant",
  title: "Assistant",
  glyph: "assistant",
  draw: () =>
    empty("assistant", "Nothing to talk about yet", "What you ask the assistant, and what it does, is shown here."),
};
