// The role of an element, and whether it is interactive.
const CLICKED = "button link checkbox radio switch tab menuitem menuitemcheckbox menuitemradio option treeitem";
// Our own roles, for the fields that the browser draws.
const DATES = "date time datetime month week";
const WIDGETS = new Set(`${CLICKED} textbox searchbox combobox listbox slider spinbutton file color ${DATES}`.split(" "));
const LANDMARKS = new Set("banner complementary contentinfo form main navigation region search dialog alertdialog".split(" "));
const NAMED_BY_CONTENT = new Set(`${CLICKED} heading cell gridcell columnheader rowheader tooltip legend caption term`.split(" "));
const KNOWN = new Set(
  `${CLICKED} textbox searchbox combobox listbox slider spinbutton banner complementary contentinfo form main navigation
  region search dialog alertdialog heading cell gridcell columnheader rowheader row rowgroup table grid treegrid tree list
  listitem img image figure group radiogroup toolbar tablist tabpanel menu menubar alert status log marquee timer article
  progressbar meter scrollbar separator tooltip definition term math note feed document application directory caption
  paragraph blockquote code deletion insertion emphasis strong subscript superscript generic none presentation`
    .split(/\s+/)
    .filter(Boolean),
);
const INPUTS = {
  button: "button",
  checkbox: "checkbox",
  color: "color",
  date: "date",
  "datetime-local": "datetime",
  email: "textbox",
  file: "file",
  hidden: "",
  image: "button",
  month: "month",
  number: "spinbutton",
  radio: "radio",
  range: "slider",
  reset: "button",
  search: "searchbox",
  submit: "button",
  time: "time",
  week: "week",
};
const ROLES = {
  article: "article",
  audio: "audio",
  button: "button",
  canvas: "canvas",
  caption: "caption",
  dd: "definition",
  details: "group",
  dialog: "dialog",
  dt: "term",
  embed: "embed",
  fieldset: "group",
  figure: "figure",
  hr: "separator",
  iframe: "iframe",
  frame: "iframe",
  legend: "legend",
  li: "listitem",
  main: "main",
  math: "math",
  menu: "list",
  meter: "meter",
  nav: "navigation",
  object: "object",
  ol: "list",
  optgroup: "group",
  option: "option",
  output: "status",
  progress: "progressbar",
  search: "search",
  summary: "button",
  table: "table",
  tbody: "rowgroup",
  textarea: "textbox",
  tfoot: "rowgroup",
  thead: "rowgroup",
  tr: "row",
  ul: "list",
  video: "video",
};
const SECTIONS = "article, aside, main, nav, section";
const named = (element) => element.hasAttribute("aria-label") || element.hasAttribute("aria-labelledby") || element.hasAttribute("title");

const nativeRole = (element) => {
  const tag = element.localName;
  switch (tag) {
    case "a":
    case "area":
      return element.hasAttribute("href") || element.hasAttributeNS("http://www.w3.org/1999/xlink", "href") ? "link" : "";
    case "input":
      if (["text", "email", "tel", "url", "search"].includes(element.type) && element.getAttribute("list")) return "combobox";
      return INPUTS[element.type] ?? "textbox";
    case "select":
      return element.multiple || element.size > 1 ? "listbox" : "combobox";
    case "img":
      return "img";
    case "svg":
      return named(element) || element.querySelector(":scope > title") ? "img" : "";
    case "h1":
    case "h2":
    case "h3":
    case "h4":
    case "h5":
    case "h6":
      return "heading";
    case "header":
    case "footer":
      if (element.closest(SECTIONS)) return "";
      return tag === "header" ? "banner" : "contentinfo";
    case "aside":
      return "complementary";
    case "form":
    case "section":
      return named(element) ? (tag === "form" ? "form" : "region") : "";
    case "td":
    case "th":
      if (tag === "th") return element.scope === "row" || element.scope === "rowgroup" ? "rowheader" : "columnheader";
      return "cell";
    case "summary":
      return element.parentElement?.localName === "details" ? "button" : "";
    default:
      return ROLES[tag] ?? "";
  }
};

const focusable = (element) =>
  element.hasAttribute("tabindex") ? element.tabIndex >= 0 : WIDGETS.has(nativeRole(element)) && !element.disabled;

// Where their content can be edited, these are fields.
const EDITED = new Set(["document", "region", "group", "paragraph", "article", "application"]);
const editable = (element) => {
  const value = element.getAttribute("contenteditable");
  return value !== null && value !== "false";
};

const roleOf = (element) => {
  if (!element.hasAttributes()) return nativeRole(element);
  const asked = element.getAttribute("role");
  if (asked) {
    for (const word of asked.toLowerCase().split(/\s+/)) {
      if (!KNOWN.has(word)) continue;
      if (word === "none" || word === "presentation" || word === "generic") {
        if (focusable(element)) break;
        return "";
      }
      if (EDITED.has(word) && editable(element)) return "textbox";
      return word === "image" ? "img" : word;
    }
  }
  return nativeRole(element) || (editable(element) ? "textbox" : "");
};

// Interactive even without an interactive role; `clickable` is our own role.
const actable = (element, role) => {
  if (WIDGETS.has(role)) return role !== "option" || element.localName !== "option";
  if (role === "canvas" || role === "video" || role === "audio" || role === "iframe" || role === "embed") return true;
  if (!element.hasAttributes()) return false;
  if (editable(element)) return true;
  const index = element.getAttribute("tabindex");
  return (index !== null && Number(index) >= 0) || element.hasAttribute("onclick") || element.draggable === true && element.hasAttribute("draggable");
};
