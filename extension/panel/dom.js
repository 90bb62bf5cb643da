/**
 * Creating elements, and updating the page to match new ones.
 *
 * A view is a function from state to elements. `show` changes the page as little as possible, so that focus, scroll
 * position, open sections and unfinished input stay. Nothing here parses markup: content is always text.
 */

/** @typedef {Node | string | number | null | undefined | false | readonly Child[]} Child */
/** @typedef {Record<string, unknown>} Props */

const COLOUR = /^#[0-9a-f]{6}$/i;
const SVG = "http://www.w3.org/2000/svg";
/** Set as properties, again on every update, so that the page always matches the state. */
const LIVE = new Set(["checked", "disabled", "hidden", "indeterminate"]);

/** Neither attributes nor listeners. */
const OWN = new Set(["value", "key", "paint", "stamp", "body"]);

/** The properties an element was made with, besides its attributes. @type {WeakMap<Element, Props>} */
const properties = new WeakMap();
/** Elements of `lazy` whose content is not built yet. @type {Set<Element>} */
const unbuilt = new Set();

/**
 * An element. `on…` are listeners. `value` is the initial value of a field, or with `oninput` its current one. `key`
 * identifies it among its siblings, and `paint` is its background colour. Everything else is an attribute; null, undefined
 * and false omit it.
 * @param {string} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  fill(element, props ?? {}, children);
  return element;
}

/**
 * An element whose content is rebuilt only when `stamp` changes: for content that is long and seldom changes.
 * @param {string} tag
 * @param {Props & { key: string }} props
 * @param {string} stamp
 * @param {() => Child} body
 */
export function lazy(tag, props, stamp, body) {
  const element = h(tag, { ...props, stamp, body });
  unbuilt.add(element);
  return element;
}

/** @param {Element} element */
function build(element) {
  if (!unbuilt.delete(element)) return;
  append(element, [/** @type {() => Child} */ (properties.get(element)?.["body"])()]);
}

/**
 * An SVG element.
 * @param {string} tag
 * @param {Props} props
 * @param {...Child} children
 */
export function svg(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  fill(element, props, children);
  return element;
}

/**
 * @param {HTMLElement | SVGElement} element
 * @param {Props} props
 * @param {readonly Child[]} children
 */
function fill(element, props, children) {
  /** @type {Props} */
  const stored = {};
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on") || LIVE.has(name) || OWN.has(name)) stored[name] = value;
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  properties.set(element, stored);
  append(element, children);
  apply(element, stored, {});
}

/**
 * @param {Element} parent
 * @param {readonly Child[]} children
 */
function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === "") continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

/**
 * @param {Element} element
 * @param {Props} props
 * @param {Props} before
 */
function apply(element, props, before) {
  const target = /** @type {any} */ (element);
  for (const name of new Set([...Object.keys(before), ...Object.keys(props)])) {
    const value = props[name];
    if (name.startsWith("on")) target[name] = value ?? null;
    // Only set if it differs, so that the cursor stays; a field that is being edited keeps its text.
    else if (LIVE.has(name)) {
      if (target[name] !== Boolean(value)) target[name] = Boolean(value);
    } else if (name === "paint") {
      target.style.backgroundColor = COLOUR.test(String(value)) ? value : "";
    } else if (name === "value" && (props["oninput"] || value !== before["value"]) && target.value !== text(value)) {
      target.value = text(value);
    }
  }
}

/** @param {unknown} value */
const text = (value) => String(value ?? "");

/** @param {Node} node */
function keyOf(node) {
  return node instanceof Element ? properties.get(node)?.["key"] : undefined;
}

/**
 * Update the children of `parent` to match `wanted`.
 * @param {Element} parent
 * @param {...Child} wanted
 */
export function show(parent, ...wanted) {
  const draft = /** @type {Element} */ (parent.cloneNode(false));
  append(draft, wanted);
  morphChildren(parent, draft);
  unbuilt.clear();
}

/**
 * @param {Element} old
 * @param {Element} fresh
 */
function morph(old, fresh) {
  for (const { name } of [...old.attributes]) {
    // A section that the person opened stays open.
    if (!fresh.hasAttribute(name) && !(name === "open" && old.localName === "details")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [before, now] = [properties.get(old) ?? {}, properties.get(fresh) ?? {}];
  if (now["stamp"] === undefined || now["stamp"] !== before["stamp"]) {
    build(fresh);
    morphChildren(old, fresh);
  }
  apply(old, now, before);
  properties.set(old, now);
}

/**
 * @param {Element} parent
 * @param {Element} draft
 */
function morphChildren(parent, draft) {
  /** @type {Set<Node>} */
  const left = new Set(parent.childNodes);
  const pairs = [...draft.childNodes].map((fresh) => {
    const found = first(left, fresh);
    if (found) left.delete(found);
    return { fresh, found };
  });
  // Remove first, so that remaining nodes need not be moved: moving loses the focus.
  for (const old of left) parent.removeChild(old);
  let place = parent.firstChild;
  for (const { fresh, found } of pairs) {
    if (!found) {
      for (const each of unbuilt) if (fresh.contains(each)) build(each);
      parent.insertBefore(fresh, place);
      continue;
    }
    if (found === place) place = found.nextSibling;
    else parent.insertBefore(found, place);
    if (found instanceof Element && fresh instanceof Element) morph(found, fresh);
    else if (found.nodeValue !== fresh.nodeValue) found.nodeValue = fresh.nodeValue;
  }
}

/**
 * @param {Set<Node>} nodes
 * @param {Node} wanted
 */
function first(nodes, wanted) {
  for (const node of nodes) if (alike(node, wanted)) return node;
  return null;
}

/**
 * @param {Node} one
 * @param {Node} other
 */
function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}
