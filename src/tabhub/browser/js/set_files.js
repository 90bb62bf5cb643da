// Gives a file field files made from their bytes, for browsers that let no extension name files of the machine.
function ({ files }) {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const list = new DataTransfer();
  for (const { name, type, data } of files) list.items.add(new File([bytes(data)], name, { type }));
  this.files = list.files;
  for (const type of ["input", "change"]) this.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
  return { count: this.files.length };
}
