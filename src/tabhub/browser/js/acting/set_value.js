// Sets the value of a field that is not typed into: dates, times, colours, ranges.
async function ({ value }) {
  const field = this.localName === "label" && this.control ? this.control : "value" in this ? this : this.querySelector("input");
  const before = field.value;
  const forms = {
    date: "a date as YYYY-MM-DD",
    time: "a time as HH:MM, 24 hours",
    month: "a month as YYYY-MM",
    week: "a week as YYYY-Www, such as 2026-W07",
    "datetime-local": "a date and time as YYYY-MM-DDTHH:MM",
    color: "a colour as #rrggbb, or its name",
    range: `a number from ${field.min || 0} to ${field.max || 100}`,
  };
  field.focus({ preventScroll: true });
  // A canvas knows all notations of colours, and ignores other texts.
  if (field.type === "color" && value) {
    const paint = new OffscreenCanvas(1, 1).getContext("2d");
    paint.fillStyle = "#010203";
    paint.fillStyle = value;
    if (paint.fillStyle !== "#010203") value = paint.fillStyle;
  }
  field.value = value;
  const kept = field.value;
  const same = kept === value || (kept.toLowerCase() === value.toLowerCase()) || (kept !== "" && Number(kept) === Number(value)) || (kept !== "" && kept.startsWith(value));
  if (!same) {
    field.value = before;
    return { problem: { why: "malformed", detail: forms[field.type] || field.type, kept: kit.isSecret(field) ? "" : kept.slice(0, 80) } };
  }
  if (kept !== before) for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
  // The page may change it back once it has handled the events.
  await new Promise((done) => setTimeout(done, 0));
  if (field.isConnected && field.value !== kept) return { problem: { why: "reverted", detail: kit.isSecret(field) ? "" : field.value.slice(0, 80).toWellFormed() } };
  return { value: kit.isSecret(field) ? "•••" : kept, url: location.href.slice(0, 8192).toWellFormed() };
}
