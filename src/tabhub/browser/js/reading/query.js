// The elements of this document that match, in document order, with the requested attributes.
({ limit, attributes, ...target }) => {
  const secrets = kit.secretValues();
  const masked = (text) => kit.maskValues(text, secrets);
  const attribute = (element, name) => {
    if (name === "value" && kit.isSecret(element)) return element.value || element.getAttribute(name) ? "•••" : "";
    // The current value; the attribute is only the initial one.
    const now = ["value", "checked", "selected", "disabled", "open"].includes(name) ? element[name] : undefined;
    const value = now ?? (["href", "src", "action"].includes(name) && typeof element[name] === "string" ? element[name] : element.getAttribute(name));
    return value === null || value === undefined ? null : masked(String(value)).slice(0, 2000).toWellFormed();
  };
  const facts = (element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    const round = (value) => Math.round(value * 10) / 10;
    const own = element.localName === "input" || element.localName === "textarea" || kit.isSecret(element) ? "" : kit.text(element);
    const shown = {
      ref: kit.ref(element),
      tag: element.localName,
      text: masked(own || kit.name(element)).slice(0, 200).toWellFormed(),
      visible: kit.seenByPeople(element) && width > 0 && height > 0,
      box: { x: round(x), y: round(y), width: round(width), height: round(height) },
    };
    const ownRole = kit.shownRole(element);
    if (ownRole) shown.role = ownRole;
    if (attributes.length) shown.attributes = Object.fromEntries(attributes.map((name) => [name, attribute(element, name)]));
    return shown;
  };
  let found;
  try {
    found = kit.list(target);
  } catch (error) {
    if (error.name !== "SyntaxError") throw error;
    return { invalid: error.message };
  }
  return { total: found.length, elements: found.slice(0, limit).map(facts) };
}
