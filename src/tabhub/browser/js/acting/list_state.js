// A field with a list of options: what it shows as chosen, and the options that are on screen.
function () {
  const field = this.localName === "label" && this.control ? this.control : kit.fieldOf(this);
  const outside = "[role=listbox], [role=option], [role=log], [role=status], [role=alert], [aria-live], label, datalist";
  const texts = (root) => {
    const found = [];
    const visit = (node) => {
      if (node.nodeType === 3 && node.data.trim()) found.push(node.data.trim().replace(/\s+/g, " ").slice(0, 200).toWellFormed());
      if (node.nodeType !== 1 || (node !== field && node.matches(outside)) || !kit.visible(node) || kit.isSecret(node) || node.localName === "svg") return;
      for (const child of kit.children(node)) visit(child);
    };
    visit(root);
    return found.slice(0, 50);
  };
  const shown = () => {
    if (typeof field.value === "string" && field.localName === "input") {
      if (field.value) return [field.value.slice(0, 500).toWellFormed()];
      // The value is drawn beside an input that only filters the list.
      for (let at = kit.parent(field), left = 4; at && left; at = kit.parent(at), left -= 1) {
        const found = texts(at);
        if (found.length) return found;
      }
      return [];
    }
    const all = texts(field);
    return all.length > 1 ? [all.join(" "), ...all] : all;
  };
  const ids = ["aria-controls", "aria-owns"].flatMap((name) => (field.getAttribute(name) ?? "").split(/\s+/)).filter(Boolean);
  const lists = ids.map((id) => field.getRootNode().getElementById?.(id)).filter((list) => list && kit.visible(list));
  const within = (list) => (list.matches("[role=option]") ? [list] : [...list.querySelectorAll("[role=option]")]);
  const own = lists.flatMap(within);
  const options = (own.length ? own : [...kit.all("[role=option]")]).filter((option) => kit.visible(option) && option.getClientRects().length);
  return {
    shown: kit.isSecret(field) ? [] : shown(),
    typed: typeof field.value === "string" && field.localName === "input" ? field.value.length : 0,
    expanded: field.getAttribute("aria-expanded") === "true",
    // Whether the options are surely of this field, and whether it says that its list is closed.
    own: own.length > 0,
    closed: field.getAttribute("aria-expanded") === "false",
    options: options.slice(0, 500).map((option) => ({
      ref: kit.ref(option),
      name: (kit.name(option) || kit.text(option)).slice(0, 200).toWellFormed(),
      chosen: option.getAttribute("aria-selected") === "true",
      disabled: option.getAttribute("aria-disabled") === "true",
    })),
  };
}
