/**
 * The Stop button of the agent's badge, in our own world of the page: it tells the worker when the person clicks there,
 * and keeps that click from the page. The badge itself is CSS (agent_badges.js); where it is follows from its style.
 *
 * A classic script without names of its own: it is run again each time the badge is drawn.
 */

(() => {
  /** Width of the part that stops, from the left edge of the badge. */
  const WIDTH = 62;
  const GAP = 8;
  const EVENTS = ["pointerdown", "mousedown", "pointerup", "mouseup", "click"];
  const world = /** @type {{ tabhubStop?: () => void }} */ (/** @type {unknown} */ (globalThis));

  /** Where the button is now; null while there is no badge. */
  const area = () => {
    const root = document.documentElement;
    const style = getComputedStyle(root, "::after");
    if (style.position !== "fixed" || !style.content.includes("Stop")) return null;
    const [width, height] = [Number.parseFloat(style.width), Number.parseFloat(style.height)];
    if (!(width > 0 && height > 0)) return null;
    const view = visualViewport ?? { width: innerWidth, height: innerHeight };
    const [right, bottom] = [Math.min(root.clientWidth || view.width, innerWidth) - GAP, innerHeight - GAP];
    return { left: right - width, top: bottom - height, right: right - width + WIDTH, bottom };
  };
  const report = () => {
    chrome.runtime.sendMessage({ type: "stop.area", area: area() }).catch(() => {});
  };
  /** @param {Event} event */
  const judge = (event) => {
    const here = area();
    if (!here || !event.isTrusted || !(event instanceof MouseEvent)) return;
    const { clientX: x, clientY: y } = event;
    if (x < here.left || x > here.right || y < here.top || y > here.bottom) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.type === "click") chrome.runtime.sendMessage({ type: "stop.clicked" }).catch(() => {});
  };

  if (!world.tabhubStop) {
    for (const type of EVENTS) addEventListener(type, judge, { capture: true });
    addEventListener("resize", () => world.tabhubStop?.());
  }
  world.tabhubStop = report;
  report();
})();
