// What keeps the form from being sent that the last click or key was to send, a turn after it.
() => {
  const form = globalThis.tabhubForm;
  form?.end();
  const field = form?.invalid;
  return field ? `${kit.label(field)}: ${field.validationMessage}`.slice(0, 400).toWellFormed() : null;
}
