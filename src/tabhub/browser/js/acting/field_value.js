// The value of a field, now or after the given number of keyup events; of a secret only the length.
async function ({ keyups, patience }) {
  const keys = globalThis.tabhubKeys;
  if (keyups && !((await keys?.events.reach(keyups, patience)) && this.isConnected)) return null;
  keys?.events.drop();
  keys?.stop();
  const field = kit.fieldOf(this);
  const value = field.isContentEditable ? field.innerText : String(field.value ?? "");
  const facts = { length: value.length, url: location.href.slice(0, 8192).toWellFormed() };
  if (!kit.isSecret(field)) facts.value = value.slice(0, 500).toWellFormed();
  if (field.type === "checkbox" || field.type === "radio") facts.checked = field.checked;
  const focus = kit.focusOutside(field);
  if (focus) facts.focus = focus;
  const problem = field.validationMessage;
  if (problem) facts.invalid = problem.slice(0, 200).toWellFormed();
  return facts;
}
