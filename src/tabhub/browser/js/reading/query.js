// The elements of this document that match, in document order, with the requested attributes.
({ selector, ref, text, role: asked, limit, attributes }) => {
  const role = kit.asRole(asked);
  const squeeze = (words) => words.replace(/\s+/g, " ").trim();
  const wanted = text ? squeeze(text).toLowerCase() : "";
  const fits = (element) => {
    if (role && kit.role(element) !== role) return false;
    if (!wanted) return true;
    const name = kit.name(element) || (selector || role ? kit.text(element) : "");
    return squeeze(name).toLowerCase().includes(wanted);
  };
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
      visible: kit.visible(element) && width > 0 && height > 0,
      box: { x: round(x), y: round(y), width: round(width), height: round(height) },
    };
    const ownRole = kit.role(element);
    if (ownRole) shown.role = ownRole;
    if (attributes.length) shown.attributes = Object.fromEntries(attributes.map((name) => [name, attribute(element, name)]));
    return shown;
  };
  let total = 0;
  const elements = [];
  try {
    const one = ref ? kit.element(ref) : null;
    for (const element of ref ? (one ? [one] : []) : kit.all(selector || "*")) {
      if (!fits(element)) continue;
      total += 1;
      if (elements.length < limit) elements.push(facts(element));
    }
  } catch (error) {
    if (error.name !== "SyntaxError") throw error;
    return { invalid: error.message };
  }
  return { total, elements };
}
