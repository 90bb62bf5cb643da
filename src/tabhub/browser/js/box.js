// Where an element is on the page, after it has been scrolled into view if it was not.
({ selector }) => {
  const { element, missing } = find(selector);
  if (missing) return { missing };
  let box = element.getBoundingClientRect();
  if (box.bottom < 0 || box.right < 0 || box.top > innerHeight || box.left > innerWidth) {
    element.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    box = element.getBoundingClientRect();
  }
  return { x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height };
}
