// The box of a frame element in the viewport of its document, and whether it has the focus; covers its content or not.
async ({ ref, cover }) => {
  const element = kit.element(ref);
  if (!element) return null;
  const covered = (kit.coveredFrames ??= new Map());
  const { style } = element;
  if (cover === true && !covered.has(ref)) {
    covered.set(ref, [style.getPropertyValue("visibility"), style.getPropertyPriority("visibility")]);
    style.setProperty("visibility", "hidden", "important");
    // Until it is painted; a tab that paints nothing must not wait for it.
    const painted = new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    await Promise.race([painted, new Promise((done) => setTimeout(done, 150))]);
  } else if (cover === false && covered.has(ref)) {
    style.setProperty("visibility", ...covered.get(ref));
    covered.delete(ref);
  }
  const { x, y, width, height } = element.getBoundingClientRect();
  const active = element.getRootNode().activeElement === element;
  return { x, y, width, height, active, focused: active && document.hasFocus() };
}
