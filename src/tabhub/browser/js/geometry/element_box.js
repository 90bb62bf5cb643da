// The box of an element in the viewport of its document.
function () {
  const box = this.getBoundingClientRect();
  return { x: box.x, y: box.y, width: box.width, height: box.height };
}
