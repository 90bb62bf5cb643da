const root = document.querySelector("#editor");
root.contentEditable = "true";
root.setAttribute("role", "textbox");
root.setAttribute("aria-label", "Source");
root.style.whiteSpace = "pre-wrap";
// Each line is a block without blocks inside, or text beside blocks.
const lines = (node) =>
  [...node.childNodes].flatMap((child) => (child.localName === "br" ? [] : child.querySelector?.("div") ? lines(child) : [child.textContent]));
globalThis.model = () => lines(root).join("\n");
globalThis.load = (text) => (root.textContent = text);
