// Reads or writes what the page's origin stores.
async ({ kind, key, write, value }) => {
  const LONGEST = 10000;
  const MOST = 500;
  const facts = { origin, url: location.href.slice(0, 2000) };
  const cut = (name, text) =>
    key === null && text.length > LONGEST
      ? { key: name.toWellFormed(), value: text.slice(0, LONGEST).toWellFormed(), length: text.length }
      : { key: name.toWellFormed(), value: text.toWellFormed() };
  const chosen = (pairs) => {
    const wanted = key === null ? pairs : pairs.filter(([name]) => name === key);
    facts.total = wanted.length;
    facts.items = wanted.slice(0, MOST).map(([name, text]) => cut(name, text));
    if (!wanted.length) facts.names = pairs.slice(0, 20).map(([name]) => name.slice(0, 100).toWellFormed());
    return facts;
  };
  try {
    if (kind === "indexedDB") {
      const databases = await indexedDB.databases();
      return chosen(databases.map(({ name, version }) => [String(name), `version ${version}`]));
    }
    if (kind === "cache" && !isSecureContext) throw new DOMException("caches need a page over https", "NotSupportedError");
    if (kind === "cache") return chosen((await caches.keys()).map((name) => [name, "a cache"]));
    const store = kind === "local" ? localStorage : sessionStorage;
    if (write) {
      facts.replaced = store.getItem(key) !== null;
      if (value === null) store.removeItem(key);
      else store.setItem(key, value);
      return facts;
    }
    const names = Array.from({ length: store.length }, (_, at) => store.key(at)).sort();
    return chosen(names.map((name) => [name, store.getItem(name) ?? ""]));
  } catch (error) {
    return { ...facts, failed: String(error.name), message: String(error.message).slice(0, 300), opaque: origin === "null" };
  }
}
