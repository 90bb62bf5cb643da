// Sets the files of a file field from bytes, for browsers that do not let extensions name local files.
function ({ files }) {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const list = new DataTransfer();
  for (const { name, type, data } of files) list.items.add(new File([bytes(data)], name, { type }));
  this.files = list.files;
  for (const type of ["input", "change"]) this.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
  return { count: this.files.length };
}
