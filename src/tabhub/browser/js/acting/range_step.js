// Brings a range field to one step from a value, so that the last step can be a key, which every page notices.
async function ({ value }) {
  const field = kit.fieldOf(this);
  const [least, most] = [Number(field.min || 0), Number(field.max || 100)];
  const wanted = value.endsWith("%") ? least + ((most - least) * Number(value.slice(0, -1))) / 100 : Number(value || NaN);
  const probe = field.cloneNode();
  probe.value = String(wanted);
  const steps = field.step && field.step !== "1" ? (field.step === "any" ? ", of any size" : `, in steps of ${field.step}`) : "";
  if (value === "" || Number(probe.value) !== wanted) return { problem: { why: "malformed", detail: `a number from ${least} to ${most}${steps}` } };
  field.focus({ preventScroll: true });
  if (Number(field.value) === wanted) return { wanted, key: null };
  const set = (next) => {
    field.value = String(next);
    for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
  };
  const step = field.step === "any" ? 0 : Number(field.step || 1);
  const up = wanted - step >= least;
  const before = up ? wanted - step : wanted + step;
  if (!step || before > most) {
    set(wanted);
    return { wanted, key: null };
  }
  if (Number(field.value) !== before) set(before);
  return { wanted, key: up ? "arrowup" : "arrowdown" };
}
