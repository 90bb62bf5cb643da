// Monaco as most sites have it, with its global; `?bundled` without one, as bundlers make it.
import * as monaco from "monaco-editor/editor/editor.main.js";

globalThis.MonacoEnvironment = { getWorker: () => ({ postMessage() {}, addEventListener() {}, terminate() {} }) };
if (location.search !== "?bundled") globalThis.monaco = monaco;
const editor = monaco.editor.create(document.querySelector("#editor"), { language: "javascript", ariaLabel: "Source", fixedOverflowWidgets: true });
globalThis.model = () => editor.getValue();
globalThis.load = (text) => editor.setValue(text);
