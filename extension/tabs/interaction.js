/**
 * Mouse and keyboard for agents that reach the browser without a hub's tools: click, hover, type, and a picture.
 *
 * Owns where in a page an element is, whether something covers it, and which events a click or a key is made of. A hub
 * does these things with tools of its own, which wait and tell more.
 */

import * as read from "../link/params.js";
import { FAILED, INVALID_PARAMS, RpcError } from "../link/rpc.js";

/** @typedef {import("../link/rpc.js").Params} Params */
/** @typedef {import("../link/rpc.js").Call} Call */
/** @typedef {import("../link/rpc.js").Handler} Handler */
/** @typedef {import("./debugger.js").Debugger} Debugger */
/** @typedef {{ x: number, y: number }} Point */
/** @typedef {import("./debugger.js").Command} Command */
/** @typedef {(method: string, params?: Record<string, unknown>, ahead?: readonly Command[]) => Promise<Record<string, unknown>>} Send */
/** @typedef {(send: Send, params: Params, call: Call) => Promise<Record<string, unknown>>} Act */

const LONGEST_TEXT = 5_000;
const MOST_CLICKS = 3;
const BUTTONS = { left: 1, right: 2, middle: 4 };
/** Our own world of a document: the page cannot change what scripts in it rely on. */
const WORLD = "tabhub interaction";
const MOUSE = "Input.dispatchMouseEvent";
const KEY = "Input.dispatchKeyEvent";
const DELETE = { key: "Delete", code: "Delete", windowsVirtualKeyCode: 46 };
/** A screencast that costs as little as can be. */
const SMALL = { format: "jpeg", quality: 1, maxWidth: 16, maxHeight: 16 };
/** Characters that are typed before one looks whether the page is still the same. */
const AT_ONCE = 50;

/**
 * The commands, for the table of all.
 * @param {Debugger} cdp
 * @param {(tabId: number, run: () => Promise<Record<string, unknown>>) => Promise<unknown>} unmarked takes a picture without our marks
 * @returns {Array<[string, Handler]>}
 */
export function interactionCommands(cdp, unmarked) {
  /** @param {Params} params @param {Call} call @returns {Send} */
  const sender = (params, call) => {
    const tabId = read.tabIdOf(params);
    return (method, given = {}, ahead = []) => cdp.command(tabId, method, given, call, { ahead });
  };
  /** @type {(act: Act) => Handler} */
  const acting = (act) => async (params, call) => {
    const send = sender(params, call);
    await send("Page.enable");
    // A tab in the background draws nothing, and takes seconds to hear of a mouse.
    await send("Emulation.setFocusEmulationEnabled", { enabled: true });
    return cdp.orDialog(read.tabIdOf(params), () => act(send, params, call));
  };
  /** @type {Map<number, number>} */
  const casts = new Map();
  /**
   * A tab in the background draws nothing, and a picture waits for something to be drawn; while a screencast runs, it is.
   * @param {Params} params
   * @param {Call} call
   */
  const drawn = async (params, call) => {
    const [tabId, send] = [read.tabIdOf(params), sender(params, call)];
    casts.set(tabId, (casts.get(tabId) ?? 0) + 1);
    try {
      // The cast of another does as well; whatever else is wrong, the picture itself will say.
      if (casts.get(tabId) === 1) await send("Page.startScreencast", SMALL).catch(() => {});
      return await screenshot(send, params);
    } finally {
      const left = (casts.get(tabId) ?? 1) - 1;
      if (left > 0) casts.set(tabId, left);
      else {
        casts.delete(tabId);
        // A tab that is gone has no cast to stop.
        await send("Page.stopScreencast").catch(() => {});
      }
    }
  };
  return [
    ["click", acting(click)],
    ["hover", acting(hover)],
    ["type", acting(type)],
    ["screenshot", async (params, call) => unmarked(read.tabIdOf(params), () => drawn(params, call))],
  ];
}

/** @type {Act} */
async function click(send, params) {
  const button = read.oneOf(params, "button", ["left", "right", "middle"]);
  const clicks = read.optionalInteger(params, "clickCount", 1) ?? 1;
  if (clicks > MOST_CLICKS) throw new RpcError(INVALID_PARAMS, `clickCount must be at most ${MOST_CLICKS}.`);
  const at = await place(send, params);
  if (button === "right") await inPage(send, withoutMenu, {});
  await send(MOUSE, { type: "mouseMoved", ...at });
  for (let clickCount = 1; clickCount <= clicks; clickCount += 1) {
    await send(MOUSE, { type: "mousePressed", ...at, button, buttons: BUTTONS[button], clickCount });
    await send(MOUSE, { type: "mouseReleased", ...at, button, clickCount });
  }
  return { ...at };
}

/** @type {Act} */
async function hover(send, params) {
  const at = await place(send, params);
  await send(MOUSE, { type: "mouseMoved", ...at });
  return { ...at };
}

/** @type {Act} */
async function type(send, params, call) {
  const text = (read.optionalText(params, "text", LONGEST_TEXT) ?? "").replaceAll("\r", "");
  const clear = read.optionalBoolean(params, "clear") ?? false;
  const selector = read.optionalString(params, "selector");
  if (clear && selector === undefined) throw new RpcError(INVALID_PARAMS, "`clear` needs a `selector`: it says which field.");
  const page = await documentOf(send);
  if (selector !== undefined) await inPage(send, focusOn, { selector, clear });
  const characters = [...text];
  if (clear && text === "") await strike(send, [stroke("", DELETE)]);
  for (let typed = 0; typed < characters.length && !call.cancelled; typed += AT_ONCE) {
    // What was meant for one page is not typed into the next, which may be of another site.
    if (typed > 0 && page.loaderId !== (await documentOf(send)).loaderId) {
      throw new RpcError(FAILED, `The tab went to another page after ${typed} characters. Look at it before you go on.`);
    }
    await strike(send, characters.slice(typed, typed + AT_ONCE).map((character) => stroke(...keyOf(character))));
  }
  return { typed: text.length };
}

/**
 * Press and release keys, all sent at once.
 * @param {Send} send
 * @param {Command[][]} strokes
 */
async function strike(send, strokes) {
  const events = strokes.flat();
  const last = events.pop();
  if (last) await send(last.method, last.params, events);
}

/** @type {(text: string, key: Record<string, unknown>) => Command[]} */
function stroke(text, key) {
  return [
    { method: KEY, params: { type: text ? "keyDown" : "rawKeyDown", ...(text ? { text } : {}), ...key } },
    { method: KEY, params: { type: "keyUp", ...key } },
  ];
}

/** @type {(send: Send, params: Params) => Promise<Record<string, unknown>>} */
async function screenshot(send, params) {
  const format = read.oneOf(params, "format", ["png", "jpeg", "webp"]);
  const captureBeyondViewport = read.optionalBoolean(params, "fullPage") ?? false;
  /** @type {Record<string, unknown>} */
  const wish = { format, captureBeyondViewport };
  if (captureBeyondViewport) {
    const { cssContentSize } = await send("Page.getLayoutMetrics");
    wish["clip"] = { .../** @type {object} */ (cssContentSize), x: 0, y: 0, scale: 1 };
  }
  const { data } = await send("Page.captureScreenshot", wish);
  return { data, mimeType: `image/${format}` };
}

/**
 * Where to point: at an element, or at a place of the viewport.
 * @param {Send} send
 * @param {Params} params
 * @returns {Promise<Point>}
 */
async function place(send, params) {
  const selector = read.optionalString(params, "selector");
  if (selector !== undefined) return /** @type {Promise<Point>} */ (inPage(send, pointAt, { selector }));
  const { x, y } = params;
  if (typeof x === "number" && typeof y === "number" && x >= 0 && y >= 0) return { x, y };
  throw new RpcError(INVALID_PARAMS, "Say where: `selector`, or `x` and `y` in the tab's viewport.");
}

/**
 * The tab's document: its frame, and what is another with every page.
 * @param {Send} send
 */
async function documentOf(send) {
  const { frameTree } = await send("Page.getFrameTree");
  return /** @type {{ frame: { id: string, loaderId: string } }} */ (frameTree).frame;
}

/**
 * Run one of the functions below in the tab's document, in a world of our own.
 * @param {Send} send
 * @param {(wish: any) => unknown} code
 * @param {Record<string, unknown>} wish
 */
async function inPage(send, code, wish) {
  const { id: frameId } = await documentOf(send);
  const { executionContextId } = await send("Page.createIsolatedWorld", { frameId, worldName: WORLD });
  const expression = `(${code})(${JSON.stringify(wish)})`;
  const answer = await send("Runtime.evaluate", { expression, contextId: executionContextId, returnByValue: true });
  const { value } = /** @type {{ value?: { problem?: string } }} */ (answer["result"] ?? {});
  if (!value || value.problem) throw new RpcError(FAILED, value?.problem ?? "The page could not be read. Repeat the command.");
  return value;
}

/**
 * In the page: the middle of an element, scrolled into view, with nothing over it.
 * @param {{ selector: string }} wish
 */
function pointAt({ selector }) {
  /** @type {Element | null} */
  let element = null;
  try {
    element = document.querySelector(selector);
  } catch {
    return { problem: `The selector ${JSON.stringify(selector)} is not valid CSS.` };
  }
  if (!element) return { problem: `No element matches ${JSON.stringify(selector)} in ${location.href.slice(0, 200)}.` };
  element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const { left, top, width, height } = element.getBoundingClientRect();
  if (width === 0 || height === 0) return { problem: `The element ${JSON.stringify(selector)} is not visible.` };
  const [x, y] = [left + width / 2, top + height / 2];
  let hit = document.elementFromPoint(x, y);
  for (let inner = hit; inner?.shadowRoot; hit = inner) {
    const deeper = inner.shadowRoot.elementFromPoint(x, y);
    if (!deeper || deeper === inner) break;
    inner = deeper;
  }
  const root = element.getRootNode();
  const host = root instanceof ShadowRoot ? root.host : null;
  const belongs = hit && (element.contains(hit) || hit.contains(element) || hit === host || hit.closest("label")?.control === element);
  if (!belongs) return { problem: `The element ${JSON.stringify(selector)} is covered by <${hit?.localName ?? "nothing"}>. Close what covers it.` };
  return { x, y };
}

/** In the page: the browser's own menu helps no agent, and would open over the person's window. */
function withoutMenu() {
  const refuse = (/** @type {Event} */ event) => event.preventDefault();
  addEventListener("contextmenu", refuse, { once: true });
  setTimeout(() => removeEventListener("contextmenu", refuse), 2_000);
  return { ready: true };
}

/**
 * In the page: give a field the focus, with the cursor behind what it holds, or all of that selected.
 * @param {{ selector: string, clear: boolean }} wish
 */
function focusOn({ selector, clear }) {
  /** @type {Element | null} */
  let element = null;
  try {
    element = document.querySelector(selector);
  } catch {
    return { problem: `The selector ${JSON.stringify(selector)} is not valid CSS.` };
  }
  if (!(element instanceof HTMLElement)) return { problem: `No element matches ${JSON.stringify(selector)} in ${location.href.slice(0, 200)}.` };
  element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  element.focus({ preventScroll: true });
  if (document.activeElement !== element) return { problem: `The element ${JSON.stringify(selector)} cannot receive keyboard input.` };
  if (element.isContentEditable) {
    const range = document.createRange();
    range.selectNodeContents(element);
    if (!clear) range.collapse(false);
    const selection = getSelection();
    selection?.removeAllRanges();
    selection?.addRange(range);
  } else if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) {
    if (clear) element.select();
    else if (element.selectionStart !== null) element.setSelectionRange(element.value.length, element.value.length);
  }
  return { focused: true };
}

/**
 * What a character types, and its key.
 * @param {string} character
 * @returns {[string, Record<string, unknown>]}
 */
function keyOf(character) {
  if (character === "\n") return ["\r", { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13 }];
  if (character === "\t") return ["\t", { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 }];
  const upper = character.toUpperCase();
  if (/^[A-Z]$/.test(upper)) {
    const shift = character === upper ? { modifiers: 8 } : {};
    return [character, { key: character, code: `Key${upper}`, windowsVirtualKeyCode: upper.charCodeAt(0), ...shift }];
  }
  if (/^[0-9]$/.test(character)) {
    return [character, { key: character, code: `Digit${character}`, windowsVirtualKeyCode: character.charCodeAt(0) }];
  }
  return [character, { key: character }];
}
