// Converts a script's return value to JSON text, and notes what was described instead of copied.
// Text, because an object would lose the order of its keys in transit.
(value) => {
  const notes = new Set();
  const path = new Set();
  let left = 200000;
  // Old libraries add a toJSON to arrays that turns them into strings.
  const list = (items) => ("toJSON" in items ? Object.setPrototypeOf(items, null) : items);
  const text = (string) => (string.isWellFormed && !string.isWellFormed() ? string.toWellFormed() : string);
  const describe = (item, note) => {
    notes.add(note);
    return item;
  };
  const element = (node) => {
    const id = node.id ? ` id="${node.id}"` : "";
    const names = typeof node.className === "string" && node.className ? ` class="${node.className}"` : "";
    return text(`<${node.localName}${id}${names}>`);
  };
  const special = (item) => {
    if (item instanceof Date) return { plain: Number.isNaN(item.getTime()) ? "Invalid Date" : item.toISOString() };
    if (item instanceof RegExp) return { plain: describe(String(item), "regular expressions are given as text") };
    if (item instanceof Error) {
      return { plain: { name: text(String(item.name)), message: text(String(item.message)) } };
    }
    if (item instanceof Map) return { copy: [...item], note: "a Map is given as a list of [key, value]" };
    if (item instanceof Set) return { copy: [...item], note: "a Set is given as a list" };
    if (item instanceof Element) return { plain: describe(element(item), "elements are described, not copied") };
    if (item instanceof Document) return { plain: describe(`[document ${item.URL}]`, "the document is described") };
    if (item instanceof Node) return { plain: text(item.textContent || ""), note: "nodes are given as their text" };
    if (item === window) return { plain: describe("[window]", "the window is described") };
    if (item instanceof NodeList || item instanceof HTMLCollection) return { copy: [...item] };
    if (item instanceof ArrayBuffer) return { plain: describe(`[${item.byteLength} bytes]`, "buffers are described") };
    if (ArrayBuffer.isView(item) && !(item instanceof DataView)) return { copy: Array.from(item) };
    return null;
  };
  const plain = (item, depth) => {
    left -= 1;
    switch (typeof item) {
      case "string":
        return text(item);
      case "boolean":
        return item;
      case "number":
        return Number.isFinite(item) ? item : describe(String(item), "NaN and Infinity are given as text");
      case "bigint":
        return describe(String(item), "a BigInt is given as text");
      case "undefined":
        return null;
      case "symbol":
        return describe(String(item), "symbols are described");
      case "function":
        return describe(`[function ${item.name || "anonymous"}]`, "functions are described");
      default:
    }
    if (item === null) return null;
    if (path.has(item)) return describe("[circular]", "a value that contains itself is cut there");
    if (depth > 40) return describe("[too deep]", "levels deeper than 40 are cut");
    if (left < 0) return describe("[too many values]", "only the first 200000 values are given");
    path.add(item);
    try {
      const known = special(item);
      if (known) {
        if (known.note) notes.add(known.note);
        return "copy" in known ? list(known.copy.map((each) => plain(each, depth + 1))) : known.plain;
      }
      if (Array.isArray(item)) return list(Array.from(item, (each) => plain(each, depth + 1)));
      if (typeof item.toJSON === "function") return plain(item.toJSON(), depth + 1);
      // Without a prototype, so that a key named __proto__ is an ordinary key.
      const copy = Object.create(null);
      for (const key of Object.keys(item)) {
        if (item[key] !== undefined) copy[text(key)] = plain(item[key], depth + 1);
      }
      return copy;
    } finally {
      path.delete(item);
    }
  };
  const result = Object.assign(Object.create(null), { tabhub: 1, value: plain(value, 0) });
  if (value === undefined) notes.add("the script returned nothing; end it with `return <value>` to get one");
  if (notes.size) result.note = [...notes].join("; ");
  return JSON.stringify(result);
}
