// What a snapshot of this document offers to act on and is visible, with the boxes.
({ whole, most }) => {
  const marks = [];
  const shows = (element, box) => {
    if (box.right <= 0 || box.bottom <= 0 || box.left >= innerWidth || box.top >= innerHeight) return whole;
    const x = (Math.max(0, box.left) + Math.min(innerWidth, box.right)) / 2;
    const y = (Math.max(0, box.top) + Math.min(innerHeight, box.bottom)) / 2;
    const top = element.getRootNode().elementFromPoint(x, y);
    // Covered at its centre by another element, such as a dialog or banner; its own label or icon does not count.
    return !top || top === element || element.contains(top) || top.contains(element) || [...(element.labels ?? [])].some((label) => label.contains(top));
  };
  for (const { element, role } of kit.acting()) {
    if (marks.length >= most) break;
    if (role === "iframe" || !kit.visible(element)) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 3 || box.height < 3 || !shows(element, box)) continue;
    const left = whole ? box.left : Math.max(0, box.left);
    const top = whole ? box.top : Math.max(0, box.top);
    const right = whole ? box.right : Math.min(innerWidth, box.right);
    const bottom = whole ? box.bottom : Math.min(innerHeight, box.bottom);
    marks.push({ ref: kit.ref(element), label: kit.label(element), x: left, y: top, width: right - left, height: bottom - top });
  }
  return marks;
}
