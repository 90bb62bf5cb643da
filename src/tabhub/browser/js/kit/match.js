// Finds elements by selector, by text and role, or fields by label; reports the nearest when there are none.
const rootsIn = function* (start) {
  yield start;
  for (const host of start.querySelectorAll("*")) {
    const root = hostsRoot(host, host.localName);
    if (root) yield* rootsIn(root);
  }
};
// Finding the roots takes a walk through the document, which is made once per look.
const allRoots = (start = document) => (look && start === document ? wholePage().roots : rootsIn(start));

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

// How well texts fit what is wanted: exactly, ignoring case, as whole words of a longer text, or inside words.
const [EXACT, ANY_CASE, WORDS, INSIDE] = [0, 1, 2, 3];
const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
const asWords = (text, folded) => {
  // Between blanks there is no need to look for the borders of words.
  if (` ${text} `.includes(` ${folded} `)) return true;
  const starts = new Set([0, text.length]);
  for (const { index } of segmenter.segment(text)) starts.add(index);
  for (let at = text.indexOf(folded); at >= 0; at = text.indexOf(folded, at + 1)) {
    if (starts.has(at) && starts.has(at + folded.length)) return true;
  }
  return false;
};
const fitOf = (text, wanted, folded) => {
  if (text === wanted) return EXACT;
  const lower = text.toLowerCase();
  if (lower === folded) return ANY_CASE;
  if (!lower.includes(folded)) return -1;
  return asWords(lower, folded) ? WORDS : INSIDE;
};

// The order of matches: even a hidden exact match comes before those that only contain the text. What can be acted on
// comes before the rest.
const FIRST_RANK = [0, 10, 60, 120];
const rankOf = (fit, visible, acts) => FIRST_RANK[fit] + (visible ? 0 : 30) + (acts ? 0 : 1);
// From this rank on a match only contains the text, or is hidden: another frame may have a better one.
const WEAK = 20;

const elementsOf = () => wholePage().elements;

const namesOf = (element, name) => [name, ...NAMING.map((attribute) => squeeze(element.getAttribute(attribute) ?? ""))];

// An element's own text in its tree, without that of scripts and the like.
const UNREAD = "script, style, noscript, template";
const holdsUnread = (element) => (look ? (look.unread ??= aroundAll(selectAll(UNREAD))).has(element) : element.querySelector(UNREAD) !== null);
const lightText = (element) => {
  if (!holdsUnread(element)) return squeeze(element.textContent).toLowerCase();
  const texts = [...element.childNodes].map((node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    return node.nodeType === Node.ELEMENT_NODE && !SILENT.has(node.localName) ? lightText(node) : "";
  });
  return squeeze(texts.join("")).toLowerCase();
};

// Part of a sentence: emphasis between other words, for example, is no text of its own.
const isFragment = (element) => {
  if (!getComputedStyle(element).display.startsWith("inline") || acts(element)) return false;
  return [element.previousSibling, element.nextSibling].some((node) => node?.nodeType === Node.TEXT_NODE && squeeze(node.data));
};

// The innermost elements whose text contains the wanted text.
const innermostWithText = function* (wanted) {
  const descend = function* (element) {
    if (SILENT.has(element.localName) || !lightText(element).includes(wanted)) return;
    let deeper = false;
    for (const child of element.children) {
      for (const one of descend(child)) {
        deeper = true;
        yield one;
      }
    }
    if (deeper) return;
    let whole = element;
    while (isFragment(whole) && whole.parentElement) whole = whole.parentElement;
    yield whole;
  };
  for (const root of allRoots()) {
    if (root.body) yield* descend(root.body);
    else for (const child of root.children) yield* descend(child);
  }
};

// All that match, best first.
const matches = (text, role) => {
  const wanted = squeeze(text ?? "");
  const folded = wanted.toLowerCase();
  const found = new Map();
  const add = (element, own, name) => {
    if (found.has(element)) return;
    const fits = wanted ? namesOf(element, name).map((one) => (one ? fitOf(one, wanted, folded) : -1)).filter((one) => one >= 0) : [EXACT];
    if (!fits.length) return;
    const fit = Math.min(...fits);
    const visible = seenByPeople(element);
    found.set(element, { element, role: own, name, fit, visible, rank: rankOf(fit, visible, acts(element)) });
  };
  // Roles that elements only have because they can be acted on.
  const given = role === "clickable" || role === "group";
  for (const element of wanted ? candidates(folded) : elementsOf()) {
    if (hasStandIn(element)) continue;
    let own = element.localName === "label" ? lookup(element).role : roleOf(element);
    if (role && own !== role && !(given && NOT_INTERACTIVE.has(own))) continue;
    if (!role && !own && !listening.has(element) && !actable(element, own) && !NAMING.some((name) => element.hasAttribute(name)) && !element.hasAttribute("aria-label")) continue;
    if (!own || given) own = lookup(element).role;
    if (role && own !== role) continue;
    // Rows are named by their content only where they are asked for: otherwise what is in them is meant.
    if (role === "row") add(element, own, wholeName(element, own) || squeeze(contentText(element)));
    else add(element, own, wholeName(element.localName === "label" && own ? element.control : element, own));
  }
  if (wanted && !role) for (const element of innermostWithText(folded)) add(element, lookup(element).role, squeeze(contentText(element)));
  return [...found.values()].sort((a, b) => a.rank - b.rank);
};

// Fields by their label, with or without the marks that say that it is required.
const FIELD_ROLES = new Set("textbox searchbox combobox listbox slider spinbutton file color date time checkbox radio switch".split(" "));
// A date that is typed part by part is one field, which its parts belong to.
const SEGMENT = "[role=spinbutton]:not(input)";
const isSegmented = (element, role) => role === "group" && element.querySelectorAll(SEGMENT).length > 1;
const isField = (element, role) =>
  FIELD_ROLES.has(role) || (role === "button" && element.getAttribute("aria-haspopup") === "listbox") || isSegmented(element, role);
const plainLabel = (text) => squeeze(text).replace(/[\s*:：]+$/, "");
const matchingFields = (label, role) => {
  const wanted = plainLabel(label);
  const folded = wanted.toLowerCase();
  const found = [];
  for (const element of elementsOf()) {
    const own = roleOf(element);
    if (!isField(element, own) || (role && own !== role)) continue;
    const name = wholeName(element, own);
    const fits = namesOf(element, name).map((one) => (one ? fitOf(plainLabel(one), wanted, folded) : -1)).filter((one) => one >= 0);
    if (!fits.length) continue;
    const [fit, visible] = [Math.min(...fits), seenByPeople(element) || own === "file"];
    found.push({ element, role: own, name, fit, visible, rank: rankOf(fit, visible, true) });
  }
  return found.sort((a, b) => a.rank - b.rank);
};

// A name good enough to compare with, without reading styles.
const quickName = (element, role) => {
  const given = element.getAttribute("aria-label") || element.getAttribute("title") || element.getAttribute("alt") || element.getAttribute("placeholder");
  if (given) return squeeze(given);
  if (FIELD_ROLES.has(role) || element.localName === "input") return wholeName(element, role);
  return squeeze(element.textContent.slice(0, 1000));
};

const nearText = (label, text, role, fields = false) => {
  const wanted = squeeze(text ?? "").toLowerCase();
  const words = wanted.split(" ").filter((word) => word.length > 1);
  const scored = [];
  for (const element of elementsOf()) {
    const own = roleOf(element);
    if (fields ? !isField(element, own) : !WIDGETS.has(own) && own !== "heading" && own !== role && !actable(element, own)) continue;
    const name = quickName(element, own).toLowerCase();
    let like = 0;
    if (wanted && name) {
      const shared = words.filter((word) => name.includes(word)).length / (words.length || 1);
      if (name === wanted) like = 2;
      else if (name.includes(wanted)) like = 1;
      else like = Math.max(shared * 0.9, name.length < 200 && (shared || name[0] === wanted[0] || scored.length < 500) ? similarity(wanted, name) : 0);
    }
    if (like > 0.3) scored.push([element, like + (own === role ? 0.2 : 0) - (name.length > 200 ? 0.3 : 0)]);
    else if ((role && own === role) || fields) scored.push([element, 0.2]);
  }
  const visible = (element) => (seenByPeople(element) ? 0 : 0.25);
  const near = scored.sort((a, b) => b[1] - a[1]).slice(0, 30).map(([element, like]) => [element, like - visible(element)]);
  const best = near.sort((a, b) => b[1] - a[1]);
  return best.filter(([, like]) => like > 0.3 || best[0][1] < 0.8).slice(0, 6).map(([element]) => shownLabel(label, element));
};

const shownLabel = (label, element) => `${label(element)}${seenByPeople(element) ? "" : " (not visible)"}`;
const refAndLabel = ({ ref, label }, element) => ({ ref: ref(element), label: label(element) });

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

const frameCount = () => [...selectAll("iframe, frame")].length;
const places = () => ({ frames: frameCount(), hosts: wholePage().untried });

// Whether the document itself shows that it is about to change.
const isChanging = () =>
  document.readyState !== "complete" ||
  document.querySelector("[aria-busy=true]") !== null ||
  document.getAnimations().some(({ playState, effect }) => playState === "running" && effect?.getComputedTiming().endTime < 10000);

// The elements that match a selector, and a text, label or role if given; invalid CSS throws.
const selected = function* ({ selector, text, role, label }) {
  const wanted = squeeze(text ?? "");
  const fields = label ? new Set(matchingFields(label, role).filter((one) => one.fit < INSIDE).map((one) => one.element)) : null;
  for (const element of selectAll(selector)) {
    if (fields && !fields.has(element)) continue;
    const own = text || role ? lookup(element).role : "";
    if (role && own !== role) continue;
    let fit = EXACT;
    if (text) {
      const names = namesOf(element, wholeName(element, own) || squeeze(contentText(element)));
      const fits = names.map((name) => (name ? fitOf(name, wanted, wanted.toLowerCase()) : -1)).filter((one) => one >= 0 && one < INSIDE);
      if (!fits.length) continue;
      fit = Math.min(...fits);
    }
    yield { element, fit };
  }
};

const bySelector = (kit, wanted) => {
  const found = [];
  try {
    found.push(...selected(wanted));
  } catch (error) {
    return { missing: { why: "invalid", message: String(error.message).slice(0, 300) } };
  }
  if (!found.length) return { missing: { why: "absent", nearest: wanted.near ? nearSelector(wanted.selector) : [], ...places() } };
  const fit = Math.min(...found.map((one) => one.fit));
  const best = found.filter((one) => one.fit === fit);
  // A hidden element does not stand in the way of a visible one.
  const { element } = best.find((one) => seenByPeople(one.element)) ?? best[0];
  return { ...refAndLabel(kit, element), others: found.length - 1 };
};

const byText = (kit, { text, role, label, near }) => {
  const found = label ? matchingFields(label, role) : matches(text, role);
  const first = found[0];
  const nearest = () => (near ? nearText(kit.label, label ?? text, role, Boolean(label)) : []);
  if (!first || first.fit === INSIDE) return { missing: { why: "absent", nearest: nearest(), ...places() } };
  // Only matches of the best rank count.
  const apart = withoutNested(found.filter((one) => one.rank === first.rank));
  const facts = { rank: first.rank, frames: first.rank < WEAK ? 0 : frameCount(), visible: first.visible };
  const others = first.visible ? [] : withoutNested(found.filter((one) => one.visible)).slice(0, 4).map(({ element }) => kit.label(element));
  if (apart.length === 1) return { ...refAndLabel(kit, apart[0].element), ...facts, instead: others };
  const describe = ({ element, visible }) => {
    const row = rowOf(element);
    return `${kit.label(element)}${visible ? "" : " (not visible)"}${row ? ` in ${row}` : ""}`;
  };
  return { missing: { why: "several", count: apart.length, nearest: [...apart.slice(0, 8).map(describe), ...others], changing: isChanging(), ...facts } };
};

// One target, or `missing` with why: gone, invalid, absent or several.
const findTarget = (kit, wanted) => {
  if (wanted.ref) {
    const element = kit.element(wanted.ref);
    return element ? refAndLabel(kit, element) : { missing: { why: "gone" } };
  }
  const asked = { ...wanted, role: asRole(wanted.role) };
  return oneLook(() => (wanted.selector ? bySelector(kit, asked) : byText(kit, asked)));
};

// All that match a target: by a selector in document order, otherwise best first; `asText` without those that contain
// the text only inside words.
const listTargets = (kit, wanted) => {
  const asked = { ...wanted, role: asRole(wanted.role) };
  if (wanted.ref) return [kit.element(wanted.ref)].filter(Boolean);
  if (wanted.selector) return [...selected(asked)].map((one) => one.element);
  const found = wanted.label ? matchingFields(wanted.label, asked.role) : matches(wanted.text, asked.role);
  return withoutNested(wanted.asText ? found.filter((one) => one.fit < INSIDE) : found).map((one) => one.element);
};
