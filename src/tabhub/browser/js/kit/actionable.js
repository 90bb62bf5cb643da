// One notion of what can be acted on, for snapshots, searches, lists of elements and marks in screenshots.
const LONGEST_HEARD = 200;
const CONTAINERS = new Set("list table rowgroup grid tree menu listbox tablist".split(" "));
const TRANSPARENT = new Set(
  `paragraph blockquote code deletion insertion emphasis strong subscript superscript generic none presentation
  document definition term rowgroup legend caption directory`.split(/\s+/),
);
// Cursors that show that something can be clicked or dragged.
const CLICK_CURSORS = new Set("pointer grab move zoom-in col-resize row-resize ew-resize ns-resize".split(" "));
// When they act, elements of these roles are shown as `clickable`.
const NOT_INTERACTIVE = new Set(["", "listitem", "cell", "gridcell", ...TRANSPARENT]);
// Elements with the page's own listeners for the mouse, as far as the hub has asked the browser for them.
const listening = new WeakSet();

const isPage = (element) => element.localName === "body" || element.localName === "html";
// The cursor of these says nothing about what is inside them.
const spreads = (element, role) => isPage(element) || CONTAINERS.has(role);

// Whether an element can be acted on. `over`: the style around it, or null if the cursor there says nothing about its
// content; `holds()`: whether something inside it acts.
const isActing = (element, role, style, over, holds) => {
  if (style.visibility !== "visible") return false;
  if (isPage(element)) return editable(element);
  const heard = listening.has(element);
  if (role === "canvas" && style.pointerEvents === "none" && !heard) return false;
  if (actable(element, role)) return true;
  if (spreads(element, role) || element.localName === "label" || LANDMARKS.has(role)) return false;
  const clicked = CLICK_CURSORS.has(style.cursor);
  if (heard && clicked) return true;
  // A listener without a cursor of its own on something large usually serves what is inside.
  if (!(clicked && style.cursor !== over?.cursor) && !(heard && element.textContent.length <= LONGEST_HEARD)) return false;
  return role === "row" || !holds();
};

const shownRole = (role, acts, holds) => (acts && NOT_INTERACTIVE.has(role) ? (!role && holds() ? "group" : "clickable") : role);

// A label stands for its control if that is not displayed, such as the checkbox behind a styled one.
const controlOf = (label) => {
  const { control } = label;
  return control && control.type !== "file" && getComputedStyle(control).display === "none" && roleOf(control) ? control : null;
};
const hasStandIn = (element) =>
  element.localName === "input" && getComputedStyle(element).display === "none" && Array.from(labelsOf(element) ?? []).some((label) => seen(label) && controlOf(label));

// The same for one element, outside a walk of the whole tree.
const acts = (element) => lookup(element).acts;
const holdsActing = (element) => {
  for (const child of childrenOf(element)) if (child.nodeType === 1 && (acts(child) || holdsActing(child))) return true;
  return false;
};
const lookup = (element) => {
  const known = look?.acting.get(element);
  if (known) return known;
  const control = element.localName === "label" ? controlOf(element) : null;
  if (control) return { acts: seen(element), role: roleOf(control) };
  const own = roleOf(element);
  const around = parentOf(element);
  const over = around && !spreads(around, roleOf(around)) ? getComputedStyle(around) : null;
  const holds = () => holdsActing(element);
  const acts = isActing(element, own, getComputedStyle(element), over, holds);
  const found = { acts, role: shownRole(own, acts, holds) };
  look?.acting.set(element, found);
  return found;
};

// Hidden from people but not from screen readers: clipped to nothing, itself or with what is around it.
const CLIPPED = /^inset\((50|100)%|^circle\(0/;
const clips = (element, { position, clip, clipPath, overflowX }) => {
  if (position === "static") return false;
  const edges = clip.match(/-?[\d.]+(?=px)/g)?.map(Number);
  if (edges?.length === 4 && (edges[1] - edges[3] <= 1 || edges[2] - edges[0] <= 1)) return true;
  return CLIPPED.test(clipPath) || (overflowX !== "visible" && element.offsetWidth <= 1 && element.offsetHeight <= 1);
};
const clipsNow = (element) => {
  const known = look?.clipped.get(element);
  if (known !== undefined) return known;
  const found = clips(element, getComputedStyle(element));
  look?.clipped.set(element, found);
  return found;
};
const isClipped = (element) => {
  for (let at = element, left = 4; at && left; at = parentOf(at), left -= 1) if (clipsNow(at)) return true;
  return false;
};
// Whether a person can see it; a styled checkbox is seen by its label.
const seenByPeople = (element) => {
  if (seen(element) && !isClipped(element)) return true;
  return element.localName === "input" && Array.from(labelsOf(element) ?? []).some((label) => seen(label) && !isClipped(label));
};
