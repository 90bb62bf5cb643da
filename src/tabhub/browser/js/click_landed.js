// What came of the last click at an element, after so many were made, and whether it is checked now.
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
  // A download is told when its answer comes, and nothing before that says so.
  if (element?.closest("a[download]")) facts.download = true;
  // A link is followed after all have heard of the click, and a form is sent in a task of its own.
  if (aim?.sent || element?.form || element?.closest("form, a[href], area[href]")) facts.leads = true;
  return facts;
}
