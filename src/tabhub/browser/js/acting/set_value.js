// Sets the value of a field that is not typed into: dates, times, colours, ranges.
function ({ value }) {
  const field = this.localName === "label" && this.control ? this.control : "value" in this ? this : this.querySelector("input");
  const before = field.value;
  const forms = {
    date: "YYYY-MM-DD",
    time: "HH:MM",
    month: "YYYY-MM",
    week: "YYYY-Www",
    "datetime-local": "YYYY-MM-DDTHH:MM",
    color: "#rrggbb",
    range: `a number from ${field.min || 0} to ${field.max || 100}`,
  };
  field.focus({ preventScroll: true });
  field.value = value;
  const kept = field.value;
  const same = kept === value || (kept.toLowerCase() === value.toLowerCase()) || (kept !== "" && Number(kept) === Number(value)) || (kept !== "" && kept.startsWith(value));
  if (!same) {
    field.value = before;
    return { problem: { why: "malformed", detail: forms[field.type] || field.type, kept: kit.isSecret(field) ? "" : kept.slice(0, 80) } };
  }
  if (kept !== before) for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
  return { value: kit.isSecret(field) ? "•••" : kept, url: location.href.slice(0, 8192).toWellFormed() };
}
