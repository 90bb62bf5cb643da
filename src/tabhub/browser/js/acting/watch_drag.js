// The first call starts watching for a native drag in this document; the second reports it and stops.
() => {
  const before = globalThis.tabhubDrag;
  if (before) {
    removeEventListener("dragstart", before.onDragStart);
    globalThis.tabhubDrag = undefined;
    return { began: before.began };
  }
  const watch = { began: false };
  watch.onDragStart = (event) => {
    watch.began = event.isTrusted && !event.defaultPrevented;
  };
  // Runs last, after a page that prevents the drag has done so.
  addEventListener("dragstart", watch.onDragStart);
  globalThis.tabhubDrag = watch;
  return {};
}
