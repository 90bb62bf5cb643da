import CodeMirror from "codemirror-5";
import "codemirror-5/mode/python/python.js";
import "codemirror-5/lib/codemirror.css";

const editor = CodeMirror(document.querySelector("#editor"), { mode: "python", screenReaderLabel: "Source" });
globalThis.model = () => editor.getValue();
globalThis.load = (text) => editor.setValue(text);
