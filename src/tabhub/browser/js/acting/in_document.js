// Whether the wanted element is in this document, and whether one that matches is visible.
({ wanted }) => {
  const found = kit.find(wanted);
  const { missing } = found;
  const frames = document.querySelector("iframe, frame") !== null;
  const facts = { there: Boolean(found.ref) || missing?.why === "several", why: missing?.why, message: missing?.message, frames };
  if (!facts.there) return { ...facts, shown: false };
  const shown = kit.list({ ...wanted, asText: true }).find(kit.seenByPeople);
  return { ...facts, shown: Boolean(shown), label: shown ? kit.label(shown) : found.label, ref: shown ? kit.ref(shown) : found.ref };
}
