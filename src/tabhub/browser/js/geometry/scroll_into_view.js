// Scrolls an element into view, if it is not: the element the function is called on, or one by its ref.
function ({ ref } = {}) {
  const element = this instanceof Element ? this : kit.element(ref);
  element?.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  return {};
}
