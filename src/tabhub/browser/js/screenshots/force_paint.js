// Forces a repaint of the whole viewport by redrawing a transparent canvas over it; removes the canvas when done.
({ more }) => {
  clearTimeout(kit.repaintTimer);
  if (!more) {
    kit.repaintCanvas?.remove();
    kit.repaintCanvas = null;
    return {};
  }
  if (!kit.repaintCanvas?.isConnected) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const look = "all: initial; position: fixed; inset: 0; width: 100%; height: 100%; z-index: 2147483647; pointer-events: none";
    for (const rule of look.split("; ")) canvas.style.setProperty(...rule.split(": "), "important");
    document.documentElement?.append(canvas);
    kit.repaintCanvas = canvas;
  }
  const pen = kit.repaintCanvas.getContext("2d");
  pen.fillRect(0, 0, 1, 1);
  pen.clearRect(0, 0, 1, 1);
  // In case the call that removes it never comes.
  kit.repaintTimer = setTimeout(() => kit.repaintCanvas?.remove(), 2000);
  return {};
}
