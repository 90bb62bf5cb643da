// After a wheel turn: what it has scrolled and where that is now, once it no longer moves.
async () => {
  const wheel = globalThis.tabhubWheel;
  if (!wheel) return null;
  // A page that handles the wheel itself, or stops its event, does not scroll.
  const [UNSEEN_FRAMES, STILL_FRAMES, MOST_FRAMES] = [30, 4, 120];
  const places = () => wheel.nodes.map((node) => `${node.scrollLeft} ${node.scrollTop}`).join();
  let [last, still] = [places(), 0];
  for (let frames = 0; frames < MOST_FRAMES && still < STILL_FRAMES && (wheel.turned || frames < UNSEEN_FRAMES); frames += 1) {
    await kit.nextFrame();
    const now = places();
    still = wheel.turned && now === last ? still + 1 : 0;
    last = now;
  }
  wheel.stop();
  globalThis.tabhubWheel = undefined;
  const moved = wheel.nodes.findIndex((node, at) => Math.abs(node.scrollLeft - wheel.before[at][0]) >= 1 || Math.abs(node.scrollTop - wheel.before[at][1]) >= 1);
  const node = wheel.nodes[moved < 0 ? wheel.nodes.length - 1 : moved];
  return {
    what: moved < 0 || moved === wheel.nodes.length - 1 ? "the page" : kit.label(node),
    x: Math.round(node.scrollLeft),
    y: Math.round(node.scrollTop),
    maxX: Math.max(0, Math.round(node.scrollWidth - node.clientWidth)),
    maxY: Math.max(0, Math.round(node.scrollHeight - node.clientHeight)),
    moved: moved >= 0,
  };
}
