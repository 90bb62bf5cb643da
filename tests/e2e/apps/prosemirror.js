import { EditorState } from "prosemirror-state";
import { EditorView } from "prosemirror-view";
import { Schema } from "prosemirror-model";
import { exampleSetup } from "prosemirror-example-setup";

const schema = new Schema({
  nodes: {
    doc: { content: "paragraph+" },
    paragraph: { content: "text*", parseDOM: [{ tag: "p" }], toDOM: () => ["p", 0] },
    text: {},
  },
});
const paragraphs = (text) => schema.node("doc", null, text.split("\n").map((line) => schema.node("paragraph", null, line ? [schema.text(line)] : [])));
const state = (text) => EditorState.create({ doc: paragraphs(text), plugins: exampleSetup({ schema, menuBar: false }) });
const view = new EditorView(document.querySelector("#editor"), { state: state(""), attributes: { "aria-label": "Source" } });
view.dom.style.whiteSpace = "pre-wrap";
globalThis.model = () => view.state.doc.textBetween(0, view.state.doc.content.size, "\n");
globalThis.load = (text) => view.updateState(state(text));
