// Drops files, built from bytes, on an element as a mouse would, if the page accepts them.
function ({ files }) {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  for (const { name, type, data } of files) dataTransfer.items.add(new File([bytes(data)], name, { type }));
  const box = this.getBoundingClientRect();
  const [clientX, clientY] = [box.x + box.width / 2, box.y + box.height / 2];
  const hit = this.getRootNode().elementFromPoint(clientX, clientY);
  const target = hit && this.contains(hit) ? hit : this;
  const dispatch = (type) => !target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, composed: true, clientX, clientY, dataTransfer }));
  dispatch("dragenter");
  const accepted = dispatch("dragover");
  dispatch(accepted ? "drop" : "dragleave");
  return { accepted };
}
