// Draft.js, the editor inside Draftail.
import { ContentState, Editor, EditorState } from "draft-js";
import React from "react";
import { createRoot } from "react-dom/client";

globalThis.global ??= globalThis;
const Text = () => {
  const [state, setState] = React.useState(() => EditorState.createEmpty());
  globalThis.model = () => state.getCurrentContent().getPlainText("\n");
  globalThis.load = (text) => setState(EditorState.createWithContent(ContentState.createFromText(text, "\n")));
  return <Editor editorState={state} onChange={setState} ariaLabel="Source" />;
};
createRoot(document.querySelector("#editor")).render(<Text />);
