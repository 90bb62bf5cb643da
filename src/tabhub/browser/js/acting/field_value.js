// The value of a field, now or after the given number of keyup events; of a secret only the length.
// Of a code editor it is only what is shown; its root is named, so that its own text can be asked for.
async function ({ keyups, patience }) {
  const LONGEST = 100000;
  const keys = globalThis.tabhubKeys;
  if (keyups && !((await keys?.events.reach(keyups, patience)) && this.isConnected)) return null;
  keys?.events.drop();
  keys?.stop();
  const field = kit.fieldOf(this);
  const editor = kit.editorOf(field);
  if (editor) await kit.drawn();
  const { text: value, shown } = kit.fieldText(field);
  const facts = { length: value.length, url: location.href.slice(0, 8192).toWellFormed() };
  if (!kit.isSecret(field)) facts.value = value.slice(0, LONGEST).toWellFormed();
  if (editor && !kit.isSecret(field)) facts.editor = kit.ref(editor.root);
  if (shown) facts.shown = true;
  if (field.type === "checkbox" || field.type === "radio") facts.checked = field.checked;
  const focus = kit.focusOutside(field);
  if (focus) facts.focus = focus;
  const problem = field.validationMessage;
  if (problem) facts.invalid = problem.slice(0, 200).toWellFormed();
  return facts;
}
