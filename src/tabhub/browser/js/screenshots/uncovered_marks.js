// For marks in frames: whether the frame is visible at their centre, not covered by the page.
({ marks }) =>
  marks.map(({ x, y, width, height }) => {
    let top = document.elementFromPoint(x + width / 2, y + height / 2);
    while (top?.shadowRoot) {
      const inner = top.shadowRoot.elementFromPoint(x + width / 2, y + height / 2);
      if (!inner || inner === top) break;
      top = inner;
    }
    return !top || /^(iframe|frame|fencedframe|object|embed)$/.test(top.localName);
  })
