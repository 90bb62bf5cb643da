// Chooses options of a select, by value or label, as a person would.
async function ({ values, labels, either }) {
  const select = this.localName === "label" && this.control ? this.control : this.localName === "select" ? this : this.querySelector("select");
  if (!select || select.localName !== "select") {
    return { problem: { why: "notSelect", detail: this.getAttribute("role") || this.localName } };
  }
  const flat = (text) => text.trim().replace(/\s+/g, " ");
  const options = [...select.options];
  const labelOf = (option) => flat(option.label || option.text);
  const byValue = (wanted) => options.find((option) => option.value === wanted);
  const byLabel = (wanted) =>
    options.find((option) => labelOf(option) === flat(wanted)) || options.find((option) => labelOf(option).toLowerCase() === flat(wanted).toLowerCase());
  const chosen = [];
  for (const [list, look] of [[values, byValue], [labels, byLabel], [either, (wanted) => byValue(wanted) || byLabel(wanted)]]) {
    for (const wanted of list || []) {
      const option = look(wanted);
      const all = options.slice(0, 40).map((each) => `${labelOf(each)}${each.value === labelOf(each) ? "" : ` (${each.value})`}`.slice(0, 80).toWellFormed());
      if (!option) return { problem: { why: "noOption", detail: wanted.slice(0, 80), options: all, more: Math.max(0, options.length - 40) } };
      if (option.disabled || option.parentElement.disabled) return { problem: { why: "offOption", detail: labelOf(option).slice(0, 80).toWellFormed() } };
      chosen.push(option);
    }
  }
  if (chosen.length > 1 && !select.multiple) return { problem: { why: "single" } };
  const before = options.map((option) => option.selected);
  // One that scripts have hidden behind a list of their own would open that list.
  if (kit.seenByPeople(select)) select.focus({ preventScroll: true });
  if (select.multiple) for (const option of options) option.selected = chosen.includes(option);
  else if (chosen.length) chosen[0].selected = true;
  const changed = options.some((option, at) => option.selected !== before[at]);
  if (changed) for (const type of ["input", "change"]) select.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
  // The page may change the choice back once it has handled the events.
  if (changed) await new Promise((done) => setTimeout(done, 0));
  if (chosen.some((option) => option.isConnected && !option.selected)) {
    return { problem: { why: "reverted", detail: [...select.selectedOptions].map(labelOf).join(", ").slice(0, 80).toWellFormed() } };
  }
  return {
    chosen: [...select.selectedOptions].slice(0, 40).map((option) => (kit.isSecret(select) ? "•••" : labelOf(option).slice(0, 200).toWellFormed())),
    changed,
    url: location.href.slice(0, 8192).toWellFormed(),
  };
}
