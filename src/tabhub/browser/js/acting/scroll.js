// Scrolls the element, or the main scrollable area of the page, and reports the new position.
async function ({ direction, distance, position }) {
  const page = document.scrollingElement || document.documentElement;
  const room = (node) => [node.scrollWidth - node.clientWidth, node.scrollHeight - node.clientHeight];
  const sideways = direction === "left" || direction === "right";
  const scrolls = (node) => {
    if (node === page) return room(node)[sideways ? 0 : 1] > 1;
    const style = getComputedStyle(node);
    return /auto|scroll|overlay/.test(sideways ? style.overflowX : style.overflowY) && room(node)[sideways ? 0 : 1] > 1;
  };
  const parent = (node) => node.assignedSlot || node.parentElement || node.getRootNode().host || null;
  const area = (node) => {
    const box = node.getBoundingClientRect();
    return Math.max(0, Math.min(box.right, innerWidth) - Math.max(box.left, 0)) * Math.max(0, Math.min(box.bottom, innerHeight) - Math.max(box.top, 0));
  };
  const own = this instanceof Element;
  let node = own ? this : page;
  if (own) for (let at = this; at; at = parent(at)) if (scrolls(at)) { node = at; break; }
  if (!own && !scrolls(page)) {
    // Many pages scroll an element instead of the window: use the largest one.
    let most = 0;
    for (const each of document.querySelectorAll("*")) {
      if (each.scrollHeight <= each.clientHeight && each.scrollWidth <= each.clientWidth) continue;
      if (scrolls(each) && area(each) > most) [node, most] = [each, area(each)];
    }
  }
  const before = [node.scrollLeft, node.scrollTop];
  const step = distance ?? Math.round((sideways ? node.clientWidth : node.clientHeight) * 0.85);
  const by = { up: [0, -step], down: [0, step], left: [-step, 0], right: [step, 0] }[direction] || [0, 0];
  if (position) node.scrollTo({ top: (position === "top" ? -1 : 1) * node.scrollHeight, behavior: "instant" }); // some areas start below zero
  else node.scrollBy({ left: by[0], top: by[1], behavior: "instant" });
  // The page gets the event in the first frame and its additions are laid out in the second; at the end it may take more.
  const reached = room(node);
  const atEnd = () => Math.abs(node.scrollTop) >= reached[1] - 1 && reached[1] > 0 && (position === "bottom" || direction === "down");
  for (let frames = 0; frames < 2 || (frames < 8 && atEnd() && room(node)[1] <= reached[1]); frames += 1) {
    await Promise.race([new Promise((done) => requestAnimationFrame(done)), new Promise((done) => setTimeout(done, 50))]);
  }
  const [width, height] = room(node);
  return {
    what: node === page ? "the page" : kit.label(node),
    x: Math.round(node.scrollLeft),
    y: Math.round(node.scrollTop),
    maxX: Math.max(0, Math.round(width)),
    maxY: Math.max(0, Math.round(height)),
    grew: height > reached[1] + 1,
    moved: Math.abs(node.scrollLeft - before[0]) >= 1 || Math.abs(node.scrollTop - before[1]) >= 1,
  };
}
