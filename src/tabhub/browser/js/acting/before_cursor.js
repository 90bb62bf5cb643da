// The part of the cursor's line before it; null where the cursor is elsewhere.
async function () {
  const field = kit.fieldOf(this);
  const upTo = (text, end) => text.slice(text.lastIndexOf("\n", end - 1) + 1, end).replace(/\u00a0/g, " ");
  if (kit.editorOf(field)) await kit.drawn();
  if (field.editContext) return upTo(field.editContext.text, field.editContext.selectionStart);
  if (typeof field.selectionStart === "number") return upTo(field.value, field.selectionStart);
  const selection = field.getRootNode().getSelection?.() ?? getSelection();
  if (!selection?.anchorNode || !field.contains(selection.anchorNode)) return null;
  let block = selection.anchorNode.nodeType === 1 ? selection.anchorNode : selection.anchorNode.parentElement;
  while (block !== field && getComputedStyle(block).display.startsWith("inline")) block = block.parentElement;
  const range = document.createRange();
  range.setStart(block, 0);
  range.setEnd(selection.anchorNode, selection.anchorOffset);
  const text = range.toString();
  return upTo(text, text.length);
}
