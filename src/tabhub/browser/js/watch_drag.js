// Notes whether a drag of the browser's own kind begins in this document; asked again, tells it and listens no longer.
() => {
  const before = globalThis.tabhubDrag;
  if (before) {
    removeEventListener("dragstart", before.take);
    globalThis.tabhubDrag = undefined;
    return { began: before.began };
  }
  const watch = { began: false };
  watch.take = (event) => {
    watch.began = event.isTrusted && !event.defaultPrevented;
  };
  // The last to hear of it: a page that wants no such drag has said so by then.
  addEventListener("dragstart", watch.take);
  globalThis.tabhubDrag = watch;
  return {};
}
