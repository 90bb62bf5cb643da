// The text of a code editor, read from its own objects, which only the page's world has; null where they are not found.
// With `line`, only the part of the cursor's line before it.
function (line) {
  const parts = {
    "CodeMirror": () => {
      const editor = this.CodeMirror;
      const { line: row, ch } = editor.getCursor();
      return line ? editor.getLine(row).slice(0, ch) : editor.getValue();
    },
    "ace_editor": () => {
      const { editor } = this.env;
      const { row, column } = editor.getCursorPosition();
      return line ? editor.session.getLine(row).slice(0, column) : editor.getValue();
    },
    "cm-editor": () => {
      const content = this.querySelector(".cm-content");
      const { state } = (content.cmTile ?? content.cmView).view;
      const { head } = state.selection.main;
      return line ? state.sliceDoc(state.doc.lineAt(head).from, head) : state.doc.toString();
    },
    "monaco-editor": () => {
      const editor = globalThis.monaco.editor.getEditors().find((one) => this.contains(one.getDomNode()) || one.getDomNode().contains(this));
      const { lineNumber, column } = editor.getPosition();
      return line ? editor.getModel().getLineContent(lineNumber).slice(0, column - 1) : editor.getValue();
    },
  };
  try {
    const kind = Object.keys(parts).find((name) => this.classList.contains(name));
    const text = parts[kind]();
    return typeof text === "string" ? text.slice(0, 2000000) : null;
  } catch {
    return null;
  }
}
