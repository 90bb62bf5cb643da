// Before a wheel turn: remembers what it may scroll. The frame at the point, if another document is there.
({ x, y }) => {
  let hit = document.elementFromPoint(x, y);
  while (hit?.shadowRoot?.elementFromPoint(x, y) && hit.shadowRoot.elementFromPoint(x, y) !== hit) hit = hit.shadowRoot.elementFromPoint(x, y);
  if (hit?.localName === "iframe") return { frame: kit.ref(hit) };
  const page = document.scrollingElement || document.documentElement;
  const parent = (node) => node.assignedSlot || node.parentElement || node.getRootNode().host || null;
  const nodes = [];
  for (let node = hit; node; node = parent(node)) {
    if (node !== page && (node.scrollHeight > node.clientHeight || node.scrollWidth > node.clientWidth)) nodes.push(node);
  }
  nodes.push(page);
  kit.watchReactions();
  const wheel = { nodes, before: nodes.map((node) => [node.scrollLeft, node.scrollTop]), turned: false };
  wheel.stop = () => removeEventListener("wheel", wheel.turn, { capture: true });
  wheel.turn = () => {
    wheel.turned = true;
    wheel.stop();
  };
  addEventListener("wheel", wheel.turn, { capture: true, passive: true });
  globalThis.tabhubWheel = wheel;
  return { go: true };
}
