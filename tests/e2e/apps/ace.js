import ace from "ace-builds/src-noconflict/ace.js";
import "ace-builds/src-noconflict/mode-python.js";

const editor = ace.edit(document.querySelector("#editor"), { mode: "ace/mode/python", useWorker: false });
editor.textInput.setAriaLabel("Source");
globalThis.model = () => editor.getValue();
globalThis.load = (text) => editor.setValue(text, 1);
