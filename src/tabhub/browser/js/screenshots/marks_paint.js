// Draws boxes with refs over the page, or removes them; they disappear after 10 seconds.
({ marks, scrolled }) => {
  kit.painted?.remove();
  kit.painted = null;
  clearTimeout(kit.painting);
  if (!marks.length) {
    // A viewport as large as the page has lost its scroll position.
    if (scrolled) scrollTo({ left: scrolled.x, top: scrolled.y, behavior: "instant" });
    return {};
  }
  const COLOURS = ["#d6006c", "#0b57d0", "#0a7d33", "#b3530a", "#7b2cbf"];
  const host = document.createElement("div");
  const plain = "all: initial; position: absolute; left: 0; top: 0; width: 0; height: 0; z-index: 2147483647; pointer-events: none";
  for (const rule of plain.split("; ")) host.style.setProperty(...rule.split(": "), "important");
  const root = host.attachShadow({ mode: "closed" });
  document.documentElement.append(host);
  // In the top layer, above any dialog of the page.
  host.popover = "manual";
  host.style.setProperty("overflow", "visible", "important");
  host.showPopover();
  // The boxes were measured at `scrolled`; the scroll position may have changed since.
  const zero = host.getBoundingClientRect();
  zero.x += scrollX - scrolled.x;
  zero.y += scrollY - scrolled.y;
  const wide = Math.max(document.documentElement.scrollWidth, innerWidth) - scrolled.x;
  marks.forEach(({ ref, x, y, width, height }, at) => {
    const colour = COLOURS[at % COLOURS.length];
    const box = document.createElement("div");
    Object.assign(box.style, {
      position: "absolute",
      boxSizing: "border-box",
      left: `${x - zero.x}px`,
      top: `${y - zero.y}px`,
      width: `${width}px`,
      height: `${height}px`,
      border: `2px solid ${colour}`,
    });
    const name = document.createElement("div");
    name.textContent = ref;
    const room = ref.length * 7 + 6;
    Object.assign(name.style, {
      position: "absolute",
      left: `${Math.min(x, wide - room) - zero.x}px`,
      top: `${Math.max(y - 13, -scrolled.y) - zero.y}px`,
      font: "bold 11px/13px monospace",
      padding: "0 2px",
      whiteSpace: "pre",
      color: "#fff",
      background: colour,
    });
    root.append(box, name);
  });
  kit.painted = host;
  kit.painting = setTimeout(() => host.remove(), 10000);
  return {};
}
