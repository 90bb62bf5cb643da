// Whether the wanted element is in this document, and whether it is visible.
({ wanted }) => {
  const found = kit.find(wanted);
  const missing = found?.missing;
  if (!found?.ref) return { there: missing?.why === "several", shown: missing?.why === "several", why: missing?.why, message: missing?.message, frames: Boolean(missing?.frames) };
  const element = kit.element(found.ref);
  let shown = kit.visible(element);
  if (!shown && wanted.selector && !wanted.ref && !wanted.text) {
    let left = 200;
    for (const other of kit.all(wanted.selector)) {
      if (left-- <= 0) break;
      shown ||= kit.visible(other);
    }
  }
  return { there: true, shown: Boolean(shown), label: found.label, ref: found.ref, frames: document.querySelector("iframe, frame") !== null };
}
