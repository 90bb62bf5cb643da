// Where the last click on an element landed, once the given number of clicks was seen, and whether it is checked now.
async ({ ref, clicks }) => {
  const aim = globalThis.tabhubClick;
  if (clicks && !(await aim?.heard.reach(clicks))) return null;
  aim?.heard.drop();
  aim?.stop();
  globalThis.tabhubClick = undefined;
  const facts = { verdict: aim?.verdict ?? "none", cover: aim?.cover ?? null, url: location.href.slice(0, 8192).toWellFormed() };
  if (aim?.verdict === "none" && aim.unseen()) facts.unseen = true;
  const element = kit.element(ref);
  const held = (element?.localName === "label" && element.control) || element;
  if (held?.type === "checkbox" || held?.type === "radio") facts.checked = held.checked;
  // A download is reported only when its response arrives.
  if (element?.closest("a[download]")) facts.download = true;
  // A link is followed after all click listeners ran, and a form is submitted in a task of its own.
  if (aim?.sent || element?.form || element?.closest("form, a[href], area[href]")) facts.leads = true;
  return facts;
}
