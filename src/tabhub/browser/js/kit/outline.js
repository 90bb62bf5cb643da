// The tree as lines: role "name" [ref=e1 states] and its value; indented by nesting.
const LONGEST_TEXT = 400;
const MANY = 10;

// A box in CSS pixels of the tab's viewport; `offset` is the place of this document in it.
const boxOf = (element, offset) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return { x: Math.round(x + offset.x), y: Math.round(y + offset.y), width: Math.round(width), height: Math.round(height) };
};

const lineOf = (node, ref, extra, offset) => {
  const text = node.exact ?? node.text;
  if (node.role === "-") return `- ${JSON.stringify(clipped(text))}`;
  if (!node.role) return JSON.stringify(clipped(text));
  const words = [...node.states];
  if (ref && !node.name && node.acts) words.push(hintOf(node.element, node.holds));
  if (ref && offset) words.push(`box=${Object.values(boxOf(node.element, offset))}`);
  const states = words.filter(Boolean).join(" ");
  const marks = ref ? ` [ref=${ref}${states && ` ${states}`}]` : states && ` [${states}]`;
  return `${node.role}${node.name && ` ${JSON.stringify(cut(node.name))}`}${marks}${node.after}${extra}`;
};

const clipped = (text) => {
  const whole = text.toWellFormed();
  return whole.length > LONGEST_TEXT ? `${whole.slice(0, LONGEST_TEXT).toWellFormed()}… (+${whole.length - LONGEST_TEXT} characters)` : whole;
};

const count = (nodes) => nodes.reduce((sum, node) => sum + 1 + (node.kids ? count(node.kids) : 0), 0);

const printTree = (refOf, nodes, { depth = Infinity, most, offset }) => {
  const lines = [];
  const frames = [];
  let [length, elements, full] = [0, 0, false];
  const print = (list, indent) => {
    for (const node of list) {
      if (length > most) {
        full = true;
        return;
      }
      if (list.length > 1 && isSeparator(node)) continue;
      const only = node.kids?.length === 1 && !node.kids[0].role ? node.kids[0] : null;
      const kids = only ? [] : (node.kids ?? []);
      const deep = kids.length && indent + 1 >= depth;
      const wanted = node.element && (node.acts || deep || kids.length > MANY || node.role === "dialog" || node.role === "alertdialog");
      const ref = wanted ? refOf(node.element) : "";
      if (node.acts) elements += 1;
      const line = " ".repeat(indent) + lineOf(node, ref, only ? `: ${lineOf(only)}` : deep ? ` (${count(kids)} inside)` : "", offset);
      if (node.frame) frames.push([ref, lines.length]);
      length += line.length + 1;
      lines.push(line);
      if (!deep) print(kids, indent + 1);
    }
  };
  print(nodes, 0);
  return { text: lines.join("\n"), frames, elements, full };
};

// Only interactive elements, below the landmark and heading they belong to.
const printActing = (refOf, nodes, { most, offset }) => {
  const lines = [];
  const frames = [];
  let [length, elements, full, place, printed] = [0, 0, false, "", ""];
  const add = (line) => {
    length += line.length + 1;
    lines.push(line);
  };
  const visit = (list, landmark) => {
    for (const node of list) {
      if (length > most) {
        full = true;
        return;
      }
      const named = node.name ? `${node.role} ${JSON.stringify(cut(node.name, 60))}` : node.role;
      if (node.role === "heading") place = landmark ? `${landmark}, ${named}` : named;
      if (node.acts) {
        if (place !== printed) add(place ? `in ${place}` : "in the page");
        printed = place;
        const ref = refOf(node.element);
        if (node.frame) frames.push([ref, lines.length]);
        elements += 1;
        add(` ${lineOf(node, ref, "", offset)}`);
      }
      const inner = LANDMARKS.has(node.role) || node.role === "table" ? named : "";
      if (inner) place = inner;
      if (node.kids) visit(node.kids, inner || landmark);
      if (inner) place = landmark;
    }
  };
  visit(nodes, "");
  return { text: lines.join("\n"), frames, elements, full };
};

const snapshot = (kit, { ref, ...limits }) => {
  longestValue = ref ? LONGEST_ASKED : LONGEST_VALUE;
  try {
    return oneLook(() => takeSnapshot(kit, { ref, ...limits }));
  } finally {
    longestValue = LONGEST_VALUE;
  }
};

// Milliseconds in which a document may still get its first content.
const YOUNG_MS = 10_000;

const takeSnapshot = (kit, { ref, interactiveOnly, ...limits }) => {
  const start = ref ? kit.element(ref) : document.documentElement;
  if (!start && ref) return { gone: true };
  // A modal dialog inside a component covers those of the document.
  let modal = ref ? null : [...document.querySelectorAll("dialog:modal")].at(-1);
  let seen = treeOf(modal ?? start);
  if (!ref && seen.modal && seen.modal !== modal) {
    modal = seen.modal;
    seen = treeOf(modal);
  }
  const { nodes, cut: was, hosts } = seen;
  const secrets = secretValues();
  const shown = interactiveOnly ? printActing(kit.ref, nodes, limits) : printTree(kit.ref, nodes, limits);
  return {
    ...shown,
    text: maskValues(shown.text, secrets),
    full: shown.full || was,
    modal: Boolean(modal),
    hosts,
    url: location.href.slice(0, 8192),
    title: maskValues(document.title, secrets).slice(0, 1000).toWellFormed(),
    loading: document.readyState === "loading",
    // A page that scripts build shows nothing at first.
    blank: !ref && nodes.length === 0,
    building: !ref && nodes.length === 0 && performance.now() < YOUNG_MS && (document.readyState !== "complete" || document.scripts.length > 0),
    pdf: document.contentType === "application/pdf",
    token: kit.token,
  };
};
