/**
 * Mouse and keyboard for agents that use the browser without the hub's tools: click, hover, type, and screenshot.
 *
 * Owns where an element is, whether something covers it, and the events of a click or a key. The hub has its own tools
 * for this, which also wait and report effects.
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

const MAX_TEXT = 5_000;
const MAX_CLICKS = 3;
const BUTTONS = { left: 1, right: 2, middle: 4 };
/** An isolated world, where the page cannot change what scripts rely on. */
const WORLD = "tabhub interaction";
const MOUSE = "Input.dispatchMouseEvent";
const KEY = "Input.dispatchKeyEvent";
const DELETE = { key: "Delete", code: "Delete", windowsVirtualKeyCode: 46 };
/** Characters that are typed between checks that the page is still the same. */
const CHUNK = 50;

/**
 * The commands, for the table of methods.
 * @param {Debugger} cdp
 * @param {(tabId: number, call: Call, take: () => Promise<Record<string, unknown>>) => Promise<unknown>} takePicture takes a screenshot without the agent badge, while the tab draws
 * @returns {Array<[string, Handler]>}
 */
export function interactionCommands(cdp, takePicture) {
  /** @param {Params} params @param {Call} call @returns {Send} */
  const sender = (params, call) => {
    const tabId = read.tabIdOf(params);
    return (method, given = {}, ahead = []) => cdp.command(tabId, method, given, call, { ahead });
  };
  /** @type {(act: Act) => Handler} */
  const acting = (act) => async (params, call) => {
    const send = sender(params, call);
    await send("Page.enable");
    // A background tab draws nothing, and takes seconds to receive mouse events.
    await send("Emulation.setFocusEmulationEnabled", { enabled: true });
    return cdp.orDialog(read.tabIdOf(params), () => act(send, params, call));
  };
  return [
    ["click", acting(click)],
    ["hover", acting(hover)],
    ["type", acting(type)],
    ["screenshot", async (params, call) => takePicture(read.tabIdOf(params), call, () => screenshot(sender(params, call), params))],
  ];
}

/** @type {Act} */
async function click(send, params) {
  const button = read.oneOf(params, "button", ["left", "right", "middle"]);
  const clicks = read.optionalInteger(params, "clickCount", 1) ?? 1;
  if (clicks > MAX_CLICKS) throw new RpcError(INVALID_PARAMS, `clickCount must be at most ${MAX_CLICKS}.`);
  const at = await pointOf(send, params);
  if (button === "right") await inPage(send, suppressMenu, {});
  await send(MOUSE, { type: "mouseMoved", ...at });
  for (let clickCount = 1; clickCount <= clicks; clickCount += 1) {
    await send(MOUSE, { type: "mousePressed", ...at, button, buttons: BUTTONS[button], clickCount });
    await send(MOUSE, { type: "mouseReleased", ...at, button, clickCount });
  }
  return { ...at };
}

/** @type {Act} */
async function hover(send, params) {
  const at = await pointOf(send, params);
  await send(MOUSE, { type: "mouseMoved", ...at });
  return { ...at };
}

/** @type {Act} */
async function type(send, params, call) {
  const text = (read.optionalText(params, "text", MAX_TEXT) ?? "").replaceAll("\r", "");
  const clear = read.optionalBoolean(params, "clear") ?? false;
  const selector = read.optionalString(params, "selector");
  if (clear && selector === undefined) throw new RpcError(INVALID_PARAMS, "`clear` needs the `selector` of the field.");
  const page = await documentOf(send);
  if (selector !== undefined) await inPage(send, focusOn, { selector, clear });
  const characters = [...text];
  if (clear && text === "") await sendKeys(send, [keyEvents("", DELETE)]);
  for (let typed = 0; typed < characters.length && !call.cancelled; typed += CHUNK) {
    // Do not continue typing in the next page, which may be of another site.
    if (typed > 0 && page.loaderId !== (await documentOf(send)).loaderId) {
      throw new RpcError(FAILED, `The tab navigated to another page after ${typed} characters. Check the page before you continue.`);
    }
    await sendKeys(send, characters.slice(typed, typed + CHUNK).map((character) => keyEvents(...keyOf(character))));
  }
  return { typed: text.length };
}

/**
 * Press and release keys, all sent together.
 * @param {Send} send
 * @param {Command[][]} keys
 */
async function sendKeys(send, keys) {
  const events = keys.flat();
  const last = events.pop();
  if (last) await send(last.method, last.params, events);
}

/** @type {(text: string, key: Record<string, unknown>) => Command[]} */
function keyEvents(text, key) {
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
  const options = { format, captureBeyondViewport };
  if (captureBeyondViewport) {
    const { cssContentSize } = await send("Page.getLayoutMetrics");
    options["clip"] = { .../** @type {object} */ (cssContentSize), x: 0, y: 0, scale: 1 };
  }
  const { data } = await send("Page.captureScreenshot", options);
  return { data, mimeType: `image/${format}` };
}

/**
 * The point of the mouse: an element, or coordinates in the viewport.
 * @param {Send} send
 * @param {Params} params
 * @returns {Promise<Point>}
 */
async function pointOf(send, params) {
  const selector = read.optionalString(params, "selector");
  if (selector !== undefined) return /** @type {Promise<Point>} */ (inPage(send, pointAt, { selector }));
  const { x, y } = params;
  if (typeof x === "number" && typeof y === "number" && x >= 0 && y >= 0) return { x, y };
  throw new RpcError(INVALID_PARAMS, "Give `selector`, or `x` and `y` in the tab's viewport.");
}

/**
 * The tab's main frame with its loader id, which changes with every page.
 * @param {Send} send
 */
async function documentOf(send) {
  const { frameTree } = await send("Page.getFrameTree");
  return /** @type {{ frame: { id: string, loaderId: string } }} */ (frameTree).frame;
}

/**
 * Run one of the functions below in the tab's document, in an isolated world.
 * @param {Send} send
 * @param {(params: any) => unknown} code
 * @param {Record<string, unknown>} params
 */
async function inPage(send, code, params) {
  const { id: frameId } = await documentOf(send);
  const { executionContextId } = await send("Page.createIsolatedWorld", { frameId, worldName: WORLD });
  const expression = `(${code})(${JSON.stringify(params)})`;
  const answer = await send("Runtime.evaluate", { expression, contextId: executionContextId, returnByValue: true });
  const { value } = /** @type {{ value?: { problem?: string } }} */ (answer["result"] ?? {});
  if (!value || value.problem) throw new RpcError(FAILED, value?.problem ?? "The page could not be read. Repeat the command.");
  return value;
}

/**
 * In the page: the centre of an element, scrolled into view, if nothing covers it.
 * @param {{ selector: string }} params
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
  if (!belongs) return { problem: `The element ${JSON.stringify(selector)} is covered by <${hit?.localName ?? "nothing"}>. Close the covering element.` };
  return { x, y };
}

/** In the page: suppress the browser's context menu, which would open in front of the person. */
function suppressMenu() {
  const refuse = (/** @type {Event} */ event) => event.preventDefault();
  addEventListener("contextmenu", refuse, { once: true });
  setTimeout(() => removeEventListener("contextmenu", refuse), 2_000);
  return { ready: true };
}

/**
 * In the page: focus a field, with the cursor at its end, or with its content selected.
 * @param {{ selector: string, clear: boolean }} params
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
 * The text of a character, and its key.
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
