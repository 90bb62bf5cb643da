// Computed values of some properties of an element.
function ({ properties }) {
  const style = getComputedStyle(this);
  const values = Object.create(null);
  for (const name of properties) values[name] = style.getPropertyValue(name).slice(0, 500).toWellFormed();
  return { ...values };
}
