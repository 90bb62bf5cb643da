// Finds an element by selector, also inside open shadow roots, or tells what comes nearest to it.
const roots = function* (start) {
  yield start;
  for (const host of start.querySelectorAll("*")) if (host.shadowRoot) yield* roots(host.shadowRoot);
};

const pairs = (word) => {
  const all = new Set();
  for (let i = 0; i < word.length - 1; i += 1) all.add(word.slice(i, i + 2));
  return all;
};

const likeness = (one, other) => {
  if (one === other) return 1;
  if (one.length > 2 && (other.includes(one) || one.includes(other))) return 0.8;
  const a = pairs(one);
  const b = pairs(other);
  let both = 0;
  for (const pair of a) if (b.has(pair)) both += 1;
  return a.size + b.size ? (2 * both) / (a.size + b.size) : 0;
};

const nearest = (selector) => {
  const words = (selector.toLowerCase().match(/[a-z][\w-]+/g) || []).slice(0, 8);
  const seen = new Map();
  let left = 5000;
  for (const root of roots(document)) {
    for (const element of root.querySelectorAll("[id], [class], [name]")) {
      if ((left -= 1) < 0) break;
      const names = [...element.classList].slice(0, 5).map((name) => [`.${name}`, name]);
      if (element.id) names.push([`#${element.id}`, element.id]);
      const name = element.getAttribute("name");
      if (name) names.push([`[name="${name}"]`, name]);
      for (const [shown, word] of names) {
        if (seen.has(shown) || shown.length > 80) continue;
        seen.set(shown, Math.max(0, ...words.map((wanted) => likeness(wanted, word.toLowerCase()))));
      }
    }
  }
  return [...seen].filter(([, score]) => score > 0.3).sort((a, b) => b[1] - a[1]).slice(0, 6).map(([shown]) => shown.toWellFormed());
};

const find = (selector) => {
  try {
    for (const root of roots(document)) {
      const element = root.querySelector(selector);
      if (element) return { element };
    }
  } catch (error) {
    return { missing: { why: "invalid", message: String(error.message).slice(0, 300) } };
  }
  return { missing: { why: "absent", nearest: nearest(selector), url: location.href.slice(0, 300) } };
};
