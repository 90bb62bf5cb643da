import Quill from "quill";
import "quill/dist/quill.core.css";

const quill = new Quill("#editor");
quill.root.setAttribute("aria-label", "Source");
globalThis.model = () => quill.getText().replace(/\n$/, "");
globalThis.load = (text) => quill.setText(text);
