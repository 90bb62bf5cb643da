// The document as an accessibility tree: wrappers removed, text joined, nothing repeated.
const MOST_ELEMENTS = 200000;
const BREAK = { gap: true };
const LONG_NAME = 150;
const UNNAMED = { name: "", content: false };
const ONLY_NAMED = new Set(["group", "figure", "img", "region", "form", "list", "toolbar", "note", "application"]);
// Roles whose content counts only as their name.
const WHOLE = new Set("button checkbox radio switch img meter progressbar slider separator menuitemcheckbox menuitemradio tab".split(" "));
const FIELDS = new Set(["textbox", "searchbox", "combobox"]);
const CLOSED = new Set(["iframe", "frame", "select", "textarea"]);

const acting = (nodes, out = []) => {
  for (const node of nodes) {
    if (node.acts) out.push(node);
    else if (node.kids) acting(node.kids, out);
  }
  return out;
};
const CELLS = new Set(["cell", "gridcell", "columnheader", "rowheader"]);
// What pages put between links, where it says nothing.
const SEPARATOR = /^[|»«›‹·•→\s]+$/u;
const isSeparator = (node) => !node.role && node.text !== undefined && SEPARATOR.test(node.text);
const anyActs = (nodes) => {
  for (const node of nodes) if (node.acts || node.holds) return true;
  return false;
};

// Appends nodes; a block is separated from the text around it.
const append = (nodes, out, block) => {
  if (block) out.push(BREAK);
  for (const node of nodes) out.push(node);
  if (block) out.push(BREAK);
};

// The blanks of preformatted text, until runs of text are joined.
const keepBlanks = (text) => text.replace(/ /g, "\u0004").replace(/\t/g, "\u0005").replace(/\r?\n/g, "\u0006");
const plainBlanks = (text) => text.replace(/\u0004/g, " ").replace(/\u0005/g, "\t").replace(/\u0006/g, "\n");

// Joins runs of text and removes the separators. `exact` is preformatted text with its blanks.
const joinText = (nodes) => {
  const out = [];
  let text = "";
  const flush = () => {
    const kept = /[\u0004-\u0006]/.test(text);
    const words = squeeze(kept ? plainBlanks(text) : text);
    if (words) out.push(kept ? { text: words, exact: plainBlanks(text.trim()).replace(/^\n+|\s+$/g, "") } : { text: words });
    text = "";
  };
  for (const node of nodes) {
    if (node.gap) flush();
    else if (node.text !== undefined && !node.role) text += node.exact === undefined ? node.text : keepBlanks(node.exact);
    else {
      flush();
      out.push(node);
    }
  }
  flush();
  return out;
};

const textOf = (nodes) => squeeze(plainBlanks(nodes.map((node) => (node.text !== undefined ? node.text : node.gap ? " " : node.kids ? ` ${textOf(node.kids)} ` : "")).join("")));

// Reading styles costs most: each property is read once, and only where needed.
const walker = (active) => {
  let left = MOST_ELEMENTS;
  let hosts = 0;
  let modal = null;
  let clipped = 0;
  const shownTitles = new Set();

  // Upload fields are often hidden behind a styled button but still receive the file.
  const hiddenFiles = (element, out) => {
    const fields = element.matches("input[type=file]") ? [element] : element.querySelectorAll("input[type=file]");
    for (const field of fields) out.push({ role: "file", name: nameOf(field, "file"), element: field, acts: true, states: ["hidden"], after: "", kids: [] });
  };

  // Styles are read only where blanks could count: not for the line breaks and indentation around text in markup.
  const BLANKS = /(?:^|\S)(?:\t|[ \t]{2})[ \t]*\S|\S[^\S\n]*\n\s*\S/;
  let pre = 0;
  const preformatted = (node) => pre > 0 || (BLANKS.test(node.data) && getComputedStyle(node.parentElement ?? node.getRootNode().host).whiteSpace.startsWith("pre"));
  const child = (node, out, shown, over) => {
    const type = node.nodeType;
    if (type === 1) walk(node, out, over);
    else if (type === 3 && shown) out.push({ text: preformatted(node) ? keepBlanks(node.data) : node.data });
  };

  const children = (element, tag, out, shown, over) => {
    if (tag === "details" && !element.open) {
      const summary = element.querySelector(":scope > summary");
      if (summary) walk(summary, out, over);
      return;
    }
    if (tag === "slot") {
      for (const node of childrenOf(element)) child(node, out, shown, over);
      return;
    }
    const root = rootOf(element);
    if (root) modal = [...root.querySelectorAll("dialog:modal")].at(-1) ?? modal;
    // Following siblings is much faster than iterating a list.
    for (let node = (root ?? element).firstChild; node; node = node.nextSibling) child(node, out, shown, over);
  };

  // `over`: the style around it, or null if the cursor there says nothing about its content.
  const walk = (element, out, over) => {
    const tag = element.localName;
    if (SILENT.has(tag)) return;
    if ((left -= 1) < 0) return;
    if (tag === "br") {
      out.push(BREAK);
      return;
    }
    if (tag.includes("-") && mayHide(element)) hosts += 1;
    if (element.getAttribute("aria-hidden") === "true" || element.inert === true) {
      hiddenFiles(element, out);
      return;
    }
    const style = getComputedStyle(element);
    const { display } = style;
    if (display === "none") {
      hiddenFiles(element, out);
      return;
    }
    // Frames without a size are trackers and show nothing.
    if (tag === "iframe" && element.offsetWidth < 3 && element.offsetHeight < 3) return;
    const shown = style.visibility === "visible";
    let role = roleOf(element);
    const kids = [];
    const clipping = style.position !== "static" && clips(element, style) ? 1 : 0;
    clipped += clipping;
    // Inline elements and those without a box cannot skip their content.
    const boxed = display !== "inline" && display !== "contents";
    if (!CLOSED.has(tag) && !(boxed && style.contentVisibility === "hidden")) {
      if (tag === "pre") pre += 1;
      children(element, tag, kids, shown, spreads(element, role) ? null : style);
      if (tag === "pre") pre -= 1;
    }
    const block = boxed && !display.startsWith("inline");
    if (tag === "label" && element.control && element.control !== element.querySelector("[role]")) {
      labelFor(element, kids, out, block, shown);
      clipped -= clipping;
      return;
    }
    if (tag === "legend" || tag === "caption" || tag === "figcaption") {
      if (nativeName(element.parentElement)) {
        append(acting(kids), out, block);
        clipped -= clipping;
        return;
      }
    }
    const holds = () => anyActs(kids);
    const acts = isActing(element, role, style, over, holds);
    if (!shown && WIDGETS.has(role)) role = "";
    role = shownRole(role, acts, holds);
    if (!acts && (!role || TRANSPARENT.has(role))) append(kids, out, block);
    else append(nodes(element, role, acts, kids), out, block);
    clipped -= clipping;
  };

  // A label names its control; if that is hidden, the label is clicked instead.
  const labelFor = (element, kids, out, block, shown) => {
    const { control } = element;
    if (getComputedStyle(control).display !== "none" || control.type === "file") {
      const name = wholeName(control, roleOf(control));
      const own = squeeze(textOf(kids));
      append(own && !name.includes(own) ? kids : acting(kids), out, block);
      return;
    }
    const role = roleOf(control);
    if (!shown || !role) append(kids, out, block);
    else append([{ role, name: nameOf(control, role), element, acts: true, states: statesOf(control, role, active), after: valueOf(control, role), kids: acting(kids) }], out, block);
  };

  // An element as one node, or only its content where the element adds nothing.
  const nodes = (element, role, acts, kids) => {
    const named = role === "listitem" || role === "row" ? UNNAMED : nameFrom(element, role);
    let inside = joinText(kids);
    // A cell that holds elements to act on is not named by what they say themselves.
    const unnamed = named.content && (role === "group" || (CELLS.has(role) && !acts && anyActs(inside)));
    let name = unnamed ? "" : named.name;
    const byContent = named.content && Boolean(name);
    if (FIELDS.has(role)) inside = acting(inside);
    else if (WHOLE.has(role) || byContent) {
      const structured = inside.filter((one) => one.role || one.text).length > 1;
      if (byContent && name.length > LONG_NAME && structured && !WHOLE.has(role)) name = "";
      else {
        inside = acting(inside);
        if (inside.length === 1 && inside[0].name === name) {
          // Its only content has the same name.
          if (!acts && role !== "heading") return inside;
          if (role === "clickable") return inside;
          if (!acts) return [{ ...inside[0], states: [...inside[0].states, levelOf(element).replace("level", "heading")] }];
        }
      }
    } else if (name) inside = inside.filter((one) => one.text !== name || one.role);
    // The hint of an unnamed link or button is its picture's.
    if (acts && !name) inside = inside.filter((one) => one.role !== "img" || one.name);
    const states = statesOf(element, role, active);
    if (role === "img" && !name && !acts && isPicture(element)) return [{ role, name, element, acts, states: [hintOf(element)], after: "", kids: inside }];
    if (acts && clipped) states.push("clipped");
    if (role === "row") return row(element, acts, states, inside);
    if (!acts) {
      if (role === "listitem" && inside.length > 1) inside = inside.filter((one) => !isSeparator(one));
      if (role === "listitem" && !states.length && inside.length === 1) {
        return inside[0].role ? inside : [{ ...inside[0], role: "-" }];
      }
      if (unnamed && !states.length && inside.length === 1) return inside;
      if (!name && !states.length && ONLY_NAMED.has(role) && (role !== "list" || inside.length < 2)) return inside;
      if (!name && !inside.length && role !== "separator" && !valueOf(element, role)) return [];
      if (role === "separator") return [];
    }
    const after = (acts ? moreOf(element, role, name, shownTitles) : "") + valueOf(element, role);
    return [{ role, name, element, acts, states, after, kids: inside, holds: anyActs(inside), frame: role === "iframe" }];
  };

  // A table row on one line, followed by its interactive elements.
  const HANDLE = /^[|\s⋮⋯…]*$/u;
  const row = (element, acts, states, cells) => {
    const texts = [];
    const kids = [];
    for (const cell of cells) {
      if (!CELLS.has(cell.role) || cell.acts) {
        if (cell.role) kids.push(cell);
        else texts.push(cell.text);
        continue;
      }
      const rest = cell.kids.filter((one) => one.role);
      const words = cell.name && !rest.some((one) => one.name === cell.name) ? cell.name : squeeze(cell.kids.map((one) => (one.role ? " " : textOf([one]))).join(" "));
      if (words) texts.push(words);
      kids.push(...rest);
    }
    if (!texts.length && !states.length && !acts) return kids;
    const name = texts.filter((text) => !HANDLE.test(text)).map((text) => cut(text, 200)).join(" | ");
    return [{ role: "row", name, element, acts, states, after: "", kids, holds: anyActs(kids) }];
  };

  return { walk, facts: () => ({ cut: left < 0, hosts, modal }) };
};

const treeOf = (start) => {
  const out = [];
  const { walk, facts } = walker(activeElement());
  // A page may have removed its whole document.
  if (start) oneLook(() => walk(start, out, null));
  return { nodes: joinText(out), ...facts() };
};

// Everything that a snapshot of the whole page offers to act on.
const actingElements = () => {
  const found = [];
  const visit = (nodes) => {
    for (const node of nodes) {
      if (node.acts) found.push(node);
      if (node.kids) visit(node.kids);
    }
  };
  visit(treeOf(document.documentElement).nodes);
  return found;
};
