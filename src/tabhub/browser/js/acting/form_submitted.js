// The invalid field that prevented the last click or key from submitting its form, or null.
() => {
  const form = globalThis.tabhubForm;
  form?.end();
  const field = form?.invalid;
  return field ? `${kit.label(field)}: ${field.validationMessage}`.slice(0, 400).toWellFormed() : null;
}
