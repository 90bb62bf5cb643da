// Where the last click on an element landed, once the given number of clicks was seen, and whether it is checked now.
async ({ ref, clicks }) => {
  const aim = globalThis.tabhubClick;
  if (clicks && !(await aim?.events.reach(clicks))) return null;
  aim?.events.drop();
  aim?.stop();
  globalThis.tabhubClick = undefined;
  const facts = { verdict: aim?.verdict ?? "none", cover: aim?.cover ?? null, url: location.href.slice(0, 8192).toWellFormed() };
  if (aim?.verdict === "none" && aim.unseen()) facts.unseen = true;
  const element = kit.element(ref);
  const control = (element?.localName === "label" && element.control) || element;
  if (control?.type === "checkbox" || control?.type === "radio") facts.checked = control.checked;
  // A download is reported only when its response arrives.
  if (element?.closest("a[download]")) facts.download = true;
  // A link is followed after all click listeners ran, and a form is submitted in a task of its own.
  if (aim?.sent || element?.form || element?.closest("form, a[href], area[href]")) facts.leads = true;
  return facts;
}
