import { basicSetup, EditorView } from "codemirror";
import { python } from "@codemirror/lang-python";

const executed = [];
const view = new EditorView({
  extensions: [basicSetup, python(), EditorView.contentAttributes.of({ "aria-label": "Source" })],
  parent: document.querySelector("#editor"),
});
// As in a notebook, Shift+Enter runs the cell.
view.dom.addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Enter" || !event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    executed.push(view.state.doc.toString());
  },
  true,
);
globalThis.executed = executed;
globalThis.model = () => view.state.doc.toString();
globalThis.load = (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
