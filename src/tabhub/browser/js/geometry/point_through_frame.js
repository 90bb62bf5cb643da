// Converts a point inside a frame to the document around it; reports what covers it there.
({ ref, x, y }) => {
  const holder = kit.element(ref);
  if (!holder) return null;
  const place = () => {
    const box = holder.getBoundingClientRect();
    const style = getComputedStyle(holder);
    const scale = holder.offsetWidth ? box.width / holder.offsetWidth : 1;
    return {
      x: box.x + (holder.clientLeft + parseFloat(style.paddingLeft) + x) * scale,
      y: box.y + (holder.clientTop + parseFloat(style.paddingTop) + y) * scale,
    };
  };
  const outside = ({ x: left, y: top }) => left < 0 || top < 0 || left >= innerWidth || top >= innerHeight;
  let at = place();
  if (outside(at)) {
    scrollBy({ left: at.x - innerWidth / 2, top: at.y - innerHeight / 2, behavior: "instant" });
    at = place();
    if (outside(at)) {
      holder.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
      at = place();
    }
  }
  if (outside(at)) return { ...at, outside: true };
  let hit = null;
  const roots = [];
  for (let root = holder.getRootNode(); root; root = root.host?.getRootNode()) roots.unshift(root);
  for (const root of roots) hit = root.elementFromPoint(at.x, at.y) || hit;
  at.zoom = visualViewport?.scale ?? 1;
  return hit === holder ? at : { ...at, cover: hit ? kit.label(hit) : "nothing" };
}
