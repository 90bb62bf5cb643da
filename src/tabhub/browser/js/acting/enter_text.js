// Enters a text at the cursor of the field, which has the focus, as one paste; says how the page took it.
function ({ text }) {
  const field = kit.fieldOf(this);
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return kit.enterText(active && field.contains(active) ? active : field, text, true);
}
