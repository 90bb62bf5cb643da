import { $createParagraphNode, $createTextNode, $getRoot, createEditor } from "lexical";
import { registerRichText } from "@lexical/rich-text";

const root = document.querySelector("#editor");
root.contentEditable = "true";
root.setAttribute("aria-label", "Source");
const editor = createEditor({ namespace: "test", onError: (error) => { throw error; } });
editor.setRootElement(root);
registerRichText(editor);
globalThis.model = () => editor.getEditorState().read(() => $getRoot().getChildren().map((child) => child.getTextContent()).join("\n"));
globalThis.load = (text) =>
  editor.update(
    () => {
      const paragraphs = text.split("\n").map((line) => $createParagraphNode().append(...(line ? [$createTextNode(line)] : [])));
      $getRoot().clear().append(...paragraphs);
    },
    { discrete: true },
  );
