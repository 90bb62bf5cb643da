// Finds elements by selector, or by text and role; reports the nearest matches when there are none.
const allRoots = function* (start = document) {
  yield start;
  for (const host of start.querySelectorAll("*")) {
    const root = rootOf(host);
    if (root) yield* allRoots(root);
  }
};

const selectAll = function* (selector) {
  for (const root of allRoots()) yield* root.querySelectorAll(selector);
};

const untriedHosts = (most) => {
  const found = [];
  for (const element of selectAll("*")) {
    if (!mayHide(element)) continue;
    triedHosts.add(element);
    found.push(element);
    if (found.length >= most) break;
  }
  return found;
};

const pairsOf = (word) => {
  const all = new Set();
  for (let i = 0; i < word.length - 1; i += 1) all.add(word.slice(i, i + 2));
  return all;
};

const similarity = (one, other) => {
  if (one === other) return 1;
  if (one.length > 2 && other.length > 2 && (other.includes(one) || one.includes(other))) return 0.8;
  const [a, b] = [pairsOf(one), pairsOf(other)];
  let both = 0;
  for (const pair of a) if (b.has(pair)) both += 1;
  return a.size + b.size ? (2 * both) / (a.size + b.size) : 0;
};

const best = (scored, most) => {
  const worth = [...scored].filter(([, score]) => score > 0.3).sort((a, b) => b[1] - a[1]);
  return worth.slice(0, most).map(([shown]) => shown.toWellFormed());
};

const nearSelector = (selector) => {
  const words = (selector.toLowerCase().match(/[a-z][\w-]+/g) ?? []).slice(0, 8);
  const scored = new Map();
  let left = 5000;
  for (const element of selectAll("[id], [class], [name]")) {
    if ((left -= 1) < 0) break;
    const names = [...element.classList].slice(0, 5).map((name) => [`.${name}`, name]);
    if (element.id) names.push([`#${element.id}`, element.id]);
    const name = element.getAttribute("name");
    if (name) names.push([`[name="${name}"]`, name]);
    for (const [shown, word] of names) {
      if (scored.has(shown) || shown.length > 80) continue;
      scored.set(shown, Math.max(0, ...words.map((wanted) => similarity(wanted, word.toLowerCase()))));
    }
  }
  return best(scored, 6);
};

// Every element with a role or that can be acted on, in document order, with its name.
const nameable = function* () {
  for (const root of allRoots()) {
    for (const element of root.querySelectorAll("*")) {
      if (SILENT.has(element.localName)) continue;
      let role = roleOf(element);
      const acts = actable(element, role);
      if (!role && acts) role = "clickable";
      if (role) yield { element, role, acts };
    }
  }
};

// An element's own text in its tree, without that of scripts and the like.
const UNREAD = "script, style, noscript, template";
const lightText = (element) => {
  if (!element.querySelector(UNREAD)) return squeeze(element.textContent).toLowerCase();
  const texts = [...element.childNodes].map((node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    return node.nodeType === Node.ELEMENT_NODE && !SILENT.has(node.localName) ? lightText(node) : "";
  });
  return squeeze(texts.join("")).toLowerCase();
};

// The innermost elements whose text contains the wanted text.
const innermostWithText = function* (wanted) {
  for (const root of allRoots()) {
    const within = [...(root.body ?? root).children].filter((child) => !SILENT.has(child.localName));
    const descend = function* (element) {
      if (!lightText(element).includes(wanted)) return;
      let deeper = false;
      for (const child of element.children) {
        if (SILENT.has(child.localName)) continue;
        for (const one of descend(child)) {
          deeper = true;
          yield one;
        }
      }
      if (!deeper) yield { element, role: roleOf(element), acts: false, name: squeeze(contentText(element)) };
    };
    let below = false;
    for (const element of within) {
      for (const one of descend(element)) {
        below = true;
        yield one;
      }
    }
    // Text directly in the body, outside its elements.
    const { body } = root;
    const inBody = !below && body && lightText(body).includes(wanted);
    if (inBody) yield { element: body, role: roleOf(body), acts: false, name: squeeze(contentText(body)) };
  }
};

// All that match, best first: exact before contained, what can be acted on before the rest, visible before hidden.
const matches = (text, role) => {
  const wanted = squeeze(text ?? "");
  const folded = wanted.toLowerCase();
  const scored = [];
  const added = new Set();
  const add = ({ element, role: own, acts, name }) => {
    if (added.has(element)) return;
    const lower = name.toLowerCase();
    const fit = !wanted ? 1 : name === wanted ? 0 : lower === folded ? 1 : lower.includes(folded) ? 2 : -1;
    if (fit < 0) return;
    added.add(element);
    const visible = seen(element);
    scored.push({ element, role: own, name, visible, rank: (visible ? 0 : 100) + fit * 10 + (acts ? 0 : 1) });
  };
  for (const one of nameable()) {
    if (role && one.role !== role) continue;
    add({ ...one, name: wholeName(one.element, one.role) });
  }
  if (wanted && !role) for (const one of innermostWithText(folded)) add(one);
  return scored.sort((a, b) => a.rank - b.rank);
};

const nearText = (label, text, role) => {
  const wanted = squeeze(text ?? "").toLowerCase();
  const scored = new Map();
  let left = 3000;
  for (const one of nameable()) {
    if ((left -= 1) < 0) break;
    if (!one.acts && one.role !== "heading") continue;
    const name = wholeName(one.element, one.role).toLowerCase();
    const words = wanted.split(" ");
    const like = wanted ? Math.max(similarity(wanted, name), ...words.map((word) => (word.length > 2 && name.includes(word) ? 0.6 : 0))) : 0;
    if (like > 0.3) scored.set(one.element, like + (one.role === role ? 0.2 : 0));
    else if (role && one.role === role) scored.set(one.element, 0.35);
  }
  const worth = [...scored].sort((a, b) => b[1] - a[1]).slice(0, 6);
  return worth.map(([element]) => label(element));
};

const refAndLabel = ({ ref, label }, element) => ({ ref: ref(element), label: label(element) });

// From this rank on a match only contains the text, or is hidden: another frame may have a better one.
const WEAK = 20;
const asRole = (role) => {
  const word = role?.trim().toLowerCase();
  return word === "image" ? "img" : word;
};

// Of nested elements with the same name only the best match remains; of equal ones the inner.
const withoutNested = (found) => {
  const known = new Map(found.map((one) => [one.element, one]));
  const same = new Set();
  for (const one of found) {
    for (let at = parentOf(one.element); at; at = parentOf(at)) {
      const outer = known.get(at);
      if (outer?.name === one.name) same.add(one.rank <= outer.rank ? outer : one);
    }
  }
  return found.filter((one) => !same.has(one));
};

// The row, item or article around an element, described by its other text.
const rowOf = (element) => {
  for (let at = parentOf(element), left = 12; at && left; at = parentOf(at), left -= 1) {
    const role = roleOf(at);
    if (role !== "row" && role !== "listitem" && role !== "article") continue;
    const parts = role === "row" ? [...at.children].filter((cell) => !cell.contains(element)) : [at];
    const text = parts.map((part) => squeeze(contentText(part, { nodes: 200 }))).filter(Boolean).join(" | ");
    return text && text !== wholeName(element, roleOf(element)) ? `${role} ${JSON.stringify(cut(text, 60))}` : "";
  }
  return "";
};

// One target, or `missing` with why: gone, invalid, absent or several.
const findTarget = (kit, { ref, selector, text, role: asked, near }) => {
  const role = asRole(asked);
  const places = () => ({ frames: [...selectAll("iframe, frame")].length, hosts: [...selectAll("*")].filter(mayHide).length });
  if (ref) {
    const element = kit.element(ref);
    return element ? refAndLabel(kit, element) : { missing: { why: "gone" } };
  }
  if (selector) {
    let found = null;
    let others = 0;
    try {
      for (const element of selectAll(selector)) {
        if (text || role) {
          const own = roleOf(element) || (actable(element, "") ? "clickable" : "");
          if (role && own !== role) continue;
          const name = wholeName(element, own) || squeeze(contentText(element));
          if (text && !name.toLowerCase().includes(squeeze(text).toLowerCase())) continue;
        }
        if (found) others += 1;
        else found = element;
      }
    } catch (error) {
      return { missing: { why: "invalid", message: String(error.message).slice(0, 300) } };
    }
    if (found) return { ...refAndLabel(kit, found), others };
    return { missing: { why: "absent", nearest: near ? nearSelector(selector) : [], ...places() } };
  }
  const found = matches(text, role);
  const first = found[0];
  if (!first) return { missing: { why: "absent", nearest: near ? nearText(kit.label, text, role) : [], ...places() } };
  // Only matches of the best rank count.
  const apart = withoutNested(found.filter((one) => one.rank === first.rank));
  const fit = { rank: first.rank, frames: first.rank < WEAK ? 0 : places().frames };
  if (apart.length === 1) return { ...refAndLabel(kit, apart[0].element), ...fit };
  const describe = ({ element }) => {
    const row = rowOf(element);
    return `${kit.label(element)}${row ? ` in ${row}` : ""}`;
  };
  return { missing: { why: "several", count: apart.length, nearest: apart.slice(0, 8).map(describe), ...fit } };
};
