// The file field meant: the element itself, its label's, or the only one inside it.
function () {
  const is = (node) => node?.localName === "input" && node.type === "file";
  const inner = () => [...this.querySelectorAll("input[type=file]")];
  const found = is(this) ? this : is(this.control) ? this.control : inner().length === 1 ? inner()[0] : null;
  if (!found) return { none: true };
  kit.watchReactions(found);
  return { ref: kit.ref(found), multiple: found.multiple || found.webkitdirectory, disabled: found.matches(":disabled") };
}
