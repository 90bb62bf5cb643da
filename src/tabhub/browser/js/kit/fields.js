// The text of fields as it is, also of editors: every line and blank, unlike names and visible text.
// Code editors draw only the lines in view and take keys through a small hidden field.
const CODE_EDITORS = [
  { root: ".monaco-editor", input: ".native-edit-context, textarea.inputarea", lines: ".view-lines", line: ".view-line" },
  { root: ".cm-editor", input: ".cm-content", lines: ".cm-content", line: ".cm-line" },
  { root: ".CodeMirror", input: "textarea", lines: ".CodeMirror-lines", line: ".CodeMirror-line" },
  { root: ".ace_editor", input: "textarea.ace_text-input", lines: ".ace_content", line: ".ace_line" },
];
const EDITOR_ROOTS = CODE_EDITORS.map(({ root }) => root).join();
const INNER_FIELDS = "input:not([type=hidden]), textarea, select, [contenteditable]:not([contenteditable=false])";

// The code editor that an element belongs to, or that is all it contains: its root, and the field that takes the keys.
const editorOf = (element) => {
  let root = element.closest(EDITOR_ROOTS);
  if (!root && !element.matches(INNER_FIELDS)) {
    const inside = element.querySelectorAll(EDITOR_ROOTS);
    const others = () => [...element.querySelectorAll(INNER_FIELDS)].filter((field) => !inside[0].contains(field));
    if (inside.length === 1 && !others().length) root = inside[0];
  }
  const kind = root && CODE_EDITORS.find((one) => root.matches(one.root));
  const input = kind && root.querySelector(kind.input);
  if (!input) return null;
  const own = element.contains(root) || element === input || input.contains(element) || root.querySelector(kind.lines)?.contains(element);
  return own ? { root, input, line: kind.line } : null;
};

// What a code editor shows; its text may be longer.
const drawnText = ({ root, line }) => {
  const lines = [...root.querySelectorAll(line)].filter(seen);
  // Some are drawn in another order than they are placed.
  const placed = lines.map((one) => ({ top: one.getBoundingClientRect().top, text: one.textContent.replace(/\u00a0/g, " ").replace(/\u200b/g, "") }));
  return placed.sort((one, other) => one.top - other.top).map(({ text }) => text).join("\n");
};

// The lines of rich text: a block or a line break is one line break, however much room the page leaves between them.
const editedText = (root) => {
  const lines = [];
  let current = null;
  const close = () => {
    if (current !== null) lines.push(current);
    current = null;
  };
  const visit = (parent, pre) => {
    for (const node of childrenOf(parent)) {
      if (node.nodeType === 3) {
        let text = node.data;
        if (!pre) {
          text = text.replace(/[ \t\r\n]+/g, " ");
          if (!current || current.endsWith(" ")) text = text.replace(/^ /, "");
        }
        if (text) current = (current ?? "") + text.replace(/\u00a0/g, " ").replace(/\ufeff/g, "");
      } else if (node.localName === "br") {
        current ??= "";
        close();
      } else if (node.nodeType === 1 && !SILENT.has(node.localName)) {
        const style = getComputedStyle(node);
        if (style.display === "none") continue;
        const block = !style.display.startsWith("inline") && style.display !== "contents";
        if (block) close();
        visit(node, style.whiteSpace.startsWith("pre"));
        if (block) close();
      }
    }
  };
  visit(root, getComputedStyle(root).whiteSpace.startsWith("pre"));
  close();
  return lines.join("\n");
};

// The text that a field holds; `shown` if it is only what its editor shows of it.
const fieldText = (field) => {
  const editor = editorOf(field);
  if (editor) return { text: drawnText(editor), shown: true };
  if ("value" in field && typeof field.value === "string") return { text: field.value, shown: false };
  return { text: field.isContentEditable || editable(field) ? editedText(field) : "", shown: false };
};

// Code editors draw what they were given in the next frame.
const drawn = async (within = document) => {
  if (!within.querySelector(EDITOR_ROOTS)) return;
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await Promise.race([frame().then(frame), new Promise((done) => setTimeout(done, 500))]);
};

// A paste into ProseMirror drops the empty lines of plain text, unless it comes as paragraphs of its own.
const asParagraphs = (text) => {
  const escape = (line) => line.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  return text.split("\n").map((line, at) => `<p${at ? "" : ' data-pm-slice="1 1 []"'}>${escape(line)}</p>`).join("");
};

// The browser inserts text line by line, which takes seconds for hundreds of lines. So only the last character is
// inserted that way in a text field, and the lines of rich text come as blocks, as the browser pastes them.
const MANY_LINES = 20;
const insertText = (field, text) => {
  const lines = text.split(/\r\n?|\n/);
  if (field.localName === "textarea" && lines.length > MANY_LINES) {
    const [start, end] = [field.selectionStart, field.selectionEnd];
    const whole = lines.join("\n");
    const room = field.maxLength < 0 ? whole.length : Math.max(0, field.maxLength - field.value.length + end - start);
    field.setRangeText(whole.slice(0, room).slice(0, -1), start, end, "end");
    return document.execCommand("insertText", false, whole.slice(0, room).slice(-1));
  }
  if (lines.length > MANY_LINES && field.isContentEditable && field.closest("[contenteditable]")?.contentEditable !== "plaintext-only") {
    const kept = getComputedStyle(field).whiteSpace.startsWith("pre");
    const blanks = (line) => (kept ? line : line.replace(/^ | (?= )| $/g, "\u00a0"));
    const escape = (line) => blanks(line).replace(/&/g, "&amp;").replace(/</g, "&lt;");
    // The first block is merged into the cursor's line; an empty one would be lost.
    const begin = Math.max(0, lines.findIndex(Boolean));
    if (!getSelection().isCollapsed) document.execCommand("delete");
    if (begin) document.execCommand("insertText", false, "\n".repeat(begin));
    const html = lines.slice(begin).map((line, at) => (at ? `<div>${escape(line) || "<br>"}</div>` : escape(line))).join("");
    if (document.execCommand("insertHTML", false, html)) return true;
  }
  return document.execCommand("insertText", false, text);
};

// Enters a text at the cursor as a paste does, or as typing does where the page handles no paste.
const enterText = (field, text, paste) => {
  if (paste) {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    if (/\n\n/.test(text) && field.closest(".ProseMirror")) clipboardData.setData("text/html", asParagraphs(text));
    const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true, composed: true });
    if (!field.dispatchEvent(event)) return "pasted";
  }
  return insertText(field, text) ? "inserted" : "";
};
