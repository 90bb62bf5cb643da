// The accessible name of an element, close enough to the specification for real pages; children across shadow roots.
const LONGEST_NAME = 300;
// Private use characters are glyphs of icon fonts without meaning.
const UNEVEN = /^\s|\s$|\s\s|[^\S ]|[\ue000-\uf8ff]/;
const squeeze = (text) => (UNEVEN.test(text) ? text.replace(/[\s\ue000-\uf8ff]+/g, " ").trim() : text);
const cut = (text, longest = LONGEST_NAME) => (text.length > longest ? `${text.slice(0, longest - 1).toWellFormed()}…` : text.toWellFormed());
const SILENT = new Set(
  "script style noscript template head link meta title desc datalist param source track defs symbol metadata clipPath mask pattern".split(" "),
);
// Lists inside an item are separate items and not part of its name.
const NESTED = "ul, ol, [role=group], [role=menu], [role=tree], [role=list]";

const closedRoots = new WeakMap();
const rootOf = (element) => element.shadowRoot ?? closedRoots.get(element) ?? null;
// Custom elements may have a closed root, which only the browser can open; each is tried once.
const triedHosts = new WeakSet();
const mayHide = (element) => element.localName.includes("-") && !rootOf(element) && !triedHosts.has(element);

// The children as rendered: those of the shadow root, and those assigned to a slot.
const childrenOf = (element) => {
  if (element.localName === "slot" && element.assignedNodes) {
    const assigned = element.assignedNodes();
    if (assigned.length) return assigned;
  }
  return (rootOf(element) ?? element).childNodes;
};

const parentOf = (node) => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;

const SEEN = { visibilityProperty: true, contentVisibilityAuto: false };
// An element without a box of its own is visible with what is around it.
const seen = (element) => {
  if (element.checkVisibility(SEEN)) return true;
  const { display, visibility } = getComputedStyle(element);
  const around = display === "contents" && visibility === "visible" ? parentOf(element) : null;
  return around !== null && seen(around);
};

const partText = (child, left, before) => {
  if (before > LONGEST_NAME * 4 || (left.nodes -= 1) < 0) return "";
  const type = child.nodeType;
  if (type === 3) return child.data;
  if (type !== 1 || SILENT.has(child.localName)) return "";
  if (child.localName === "br") return " ";
  if (left.flat && child.matches(NESTED)) return "";
  if (child.hasAttribute("contenteditable") && isSecretField(child)) return ` ${MASK} `;
  const style = getComputedStyle(child);
  const { display } = style;
  if (display === "none" || child.getAttribute("aria-hidden") === "true") return "";
  const inner = child.firstElementChild || style.visibility === "visible" ? ownText(child, left) : "";
  return display.startsWith("inline") || display === "contents" ? inner : ` ${inner} `;
};

// The text of an element that counts for its name; `left` bounds the walk in huge elements.
const contentText = (element, left = { nodes: 2000 }) => {
  if (element.localName === "slot") {
    let text = "";
    for (const child of childrenOf(element)) text += partText(child, left, text.length);
    return text;
  }
  let text = "";
  for (let child = (rootOf(element) ?? element).firstChild; child; child = child.nextSibling) text += partText(child, left, text.length);
  return text;
};

const ownText = (element, left) => {
  const label = element.getAttribute("aria-label");
  if (label && label.trim()) return label;
  switch (element.localName) {
    case "img":
      return element.alt || element.title || "";
    case "svg":
      return element.querySelector(":scope > title")?.textContent ?? "";
    case "input":
      return ["button", "submit", "reset"].includes(element.type) ? element.value : "";
    case "select":
    case "textarea":
    case "iframe":
      return "";
    default:
      return contentText(element, left);
  }
};

const byIds = (element, attribute) => {
  const ids = element.getAttribute(attribute);
  if (!ids) return "";
  const root = element.getRootNode();
  const texts = ids.split(/\s+/).slice(0, 20).map((id) => {
    const other = id && root.getElementById?.(id);
    return other ? other.getAttribute("aria-label") || ownText(other) || (other.localName === "input" && !isSecretField(other) ? other.value : "") : "";
  });
  return squeeze(texts.join(" "));
};

// What is found out once per look at the document, which does not change meanwhile.
let look = null;
const oneLook = (work) => {
  if (look) return work();
  look = { labels: new Map(), acting: new Map(), clipped: new Map(), page: null, unread: null };
  try {
    return work();
  } finally {
    look = null;
  }
};

// The browser searches the whole document for the labels of each control; during a look it is searched once.
const labelsOf = (element) => {
  if (!look) return element.labels;
  const root = element.getRootNode();
  let known = look.labels.get(root);
  if (!known) {
    look.labels.set(root, (known = new Map()));
    for (const label of root.querySelectorAll("label")) {
      const { control } = label;
      if (control) known.set(control, [...(known.get(control) ?? []), label]);
    }
  }
  return known.get(element);
};

const nativeName = (element) => {
  switch (element.localName) {
    case "input":
      if (element.type === "submit") return element.value || "Submit";
      if (element.type === "reset") return element.value || "Reset";
      if (element.type === "button") return element.value;
      if (element.type === "image") return element.alt || element.title || "Submit";
      break;
    case "img":
    case "area":
      return element.alt || "";
    case "fieldset":
      return [...element.children].find((child) => child.localName === "legend")?.textContent ?? "";
    case "figure":
      return [...element.children].find((child) => child.localName === "figcaption")?.textContent ?? "";
    case "table":
      return element.caption?.textContent ?? "";
    case "optgroup":
    case "option":
      return element.label;
    case "summary":
      return contentText(element);
    default:
      if (element.ownerSVGElement !== undefined) return element.querySelector(":scope > title")?.textContent ?? "";
  }
  const labels = labelsOf(element);
  return labels?.length ? Array.from(labels, (label) => contentText(label)).join(" ") : "";
};

// The full name, and whether it comes from the element's content.
const nameFrom = (element, role) => {
  const given = byIds(element, "aria-labelledby") || squeeze(element.getAttribute("aria-label") ?? "") || squeeze(nativeName(element));
  if (given) return { name: given, content: element.localName === "summary" };
  if (NAMED_BY_CONTENT.has(role) || role === "clickable" || role === "listitem") {
    const name = squeeze(contentText(element, { nodes: 2000, flat: role === "treeitem" || role === "menuitem" || role === "listitem" }));
    if (name) return { name, content: true };
  }
  const hint = element.getAttribute("title") || element.getAttribute("placeholder") || element.getAttribute("aria-placeholder") || "";
  return { name: squeeze(hint), content: false };
};

const wholeName = (element, role) => nameFrom(element, role).name;

const nameOf = (element, role = roleOf(element)) => cut(wholeName(element, role));
