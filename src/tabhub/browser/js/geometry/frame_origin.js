// Position of a frame element's content box in the viewport of its document.
({ ref }) => {
  const element = kit.element(ref);
  if (!element) return null;
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  const scale = element.offsetWidth ? box.width / element.offsetWidth : 1;
  return {
    x: box.x + (element.clientLeft + parseFloat(style.paddingLeft)) * scale,
    y: box.y + (element.clientTop + parseFloat(style.paddingTop)) * scale,
  };
}
