// The elements that a search looks at: all of them, or only those whose name may contain a text. Whole parts of the page
// without the words of the text are left out after one look at their text.
// Only custom elements and these can have a shadow root.
const MAY_HOST = new Set("article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main nav p section span".split(" "));
const hostsRoot = (element, tag) => (MAY_HOST.has(tag) || tag.includes("-") ? rootOf(element) : null);

// All elements of the document and its shadow trees, with their roots; made once per look.
const wholePage = () => {
  if (look?.page) return look.page;
  const page = { roots: [], elements: [], untried: 0 };
  const add = (root) => {
    page.roots.push(root);
    for (const element of root.querySelectorAll("*")) {
      const tag = element.localName;
      if (SILENT.has(tag)) continue;
      page.elements.push(element);
      const inner = hostsRoot(element, tag);
      if (inner) add(inner);
      else if (tag.includes("-") && mayHide(element)) page.untried += 1;
    }
  };
  add(document);
  if (look) look.page = page;
  return page;
};

// What is around the elements that match a selector, in the tree as rendered.
const aroundAll = (elements) => {
  const around = new Set();
  for (const element of elements) for (let at = parentOf(element); at && !around.has(at); at = parentOf(at)) around.add(at);
  return around;
};

const NAMING = "title placeholder aria-placeholder".split(" ");
const NAMES = ["aria-label", "alt", "label", "value", ...NAMING];
// Elements that may have another name than the text in them.
const NAMED = `${NAMES.map((name) => `[${name}]`)}, [aria-labelledby], input, select, textarea, slot`;
const LABELLED = "input:not([aria-label]), select:not([aria-label]), textarea:not([aria-label])";

const wordsOf = (folded) => folded.split(" ").filter(Boolean);

// Elements whose name may contain the words of a text, in document order.
const candidates = (folded) => {
  const { roots, elements } = wholePage();
  const words = wordsOf(folded);
  const has = (text) => words.every((word) => text.includes(word));
  const kept = new Set();
  const hosts = [];
  for (const element of elements) if (hostsRoot(element, element.localName)) hosts.push(element);
  const special = roots.flatMap((root) => [...root.querySelectorAll(NAMED)]);
  // Never left out unseen: what has a shadow tree inside, or a slot whose text is elsewhere.
  const deep = aroundAll(hosts);
  for (const host of hosts) deep.add(host);
  for (const one of special) if (one.localName === "slot") for (const at of [one, ...aroundAll([one])]) deep.add(at);
  const near = aroundAll(special);
  const attributes = (element) => NAMES.map((name) => element.getAttribute(name) ?? "").join(" ");
  const namedElsewhere = (element) => {
    if (element.hasAttribute("aria-labelledby")) return true;
    if (!element.matches(LABELLED)) return false;
    const labels = Array.from(labelsOf(element) ?? []);
    return labels.length > 0 && has(labels.map((label) => [label.textContent, ...[...label.querySelectorAll(NAMED)].map(attributes)].join(" ")).join(" ").toLowerCase());
  };
  const visit = (element) => {
    if (SILENT.has(element.localName)) return;
    const text = element.textContent.toLowerCase();
    if (!has(text) && !deep.has(element)) {
      const inner = near.has(element) ? [...element.querySelectorAll(NAMED)] : [];
      if (!has(`${text} ${[element, ...inner].map(attributes).join(" ").toLowerCase()}`)) {
        for (const one of [element, ...inner]) if (namedElsewhere(one)) kept.add(one);
        return;
      }
    }
    kept.add(element);
    for (let child = element.firstElementChild; child; child = child.nextElementSibling) visit(child);
  };
  for (const root of roots) for (let child = root.firstElementChild; child; child = child.nextElementSibling) visit(child);
  // Labels name buttons as well.
  for (const root of roots) for (const label of root.querySelectorAll("label")) if (label.control && !label.control.matches(NAMED)) kept.add(label.control);
  return kept;
};
