const root = document.querySelector("#editor");
root.contentEditable = "true";
root.setAttribute("role", "textbox");
root.setAttribute("aria-label", "Source");
root.style.whiteSpace = "pre-wrap";
// Each line is text, or a block with text or nothing in it.
globalThis.model = () => [...root.childNodes].filter((node) => node.localName !== "br").map((node) => node.textContent).join("\n");
globalThis.load = (text) => (root.textContent = text);
