// The page as a person reads it: visible text, plain or as Markdown.
// A frame that cannot be read from here leaves its ref between two markers, where the hub inserts its content.
// `framed`: only if the parent document cannot read it along with its own content, and it is visible.
function ({ markdown, maxLength, framed }) {
  if (framed && (window.frameElement || innerWidth < 2 || innerHeight < 2)) return {};
  const LINE = "\u0001";
  const PARAGRAPH = "\u0002";
  const SKIP = new Set(["script", "style", "noscript", "template", "head", "svg", "canvas", "video", "audio", "object"]);
  const BLOCK = /^(block|flex|grid|table|list-item|flow-root|table-row|table-caption)/;
  const FRAME = "\u0003";
  // Invisible to people but read by a model: zero-width characters, direction overrides, tags.
  const UNSEEN = /[\u0001-\u0003\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;
  const start = this instanceof Element ? this : document.body || document.documentElement;
  let marks = 0;

  const settle = (text) =>
    text
      .replace(/[ \t]*[\u0001\u0002][ \u0001\u0002]*/g, (gap) => (gap.includes(PARAGRAPH) ? "\n\n" : "\n"))
      .replace(/\n{3,}/g, "\n\n")
      .replace(/^\n+|\s+$/g, "");
  const paragraph = (text) => PARAGRAPH + text + PARAGRAPH;
  const flat = (text) => settle(text).replace(/\s*\n\s*/g, " ").trim();
  const link = (address) => (/^(https?|mailto|tel):/.test(address) && address.length < 2000 ? address.replace(/\(/g, "%28").replace(/\)/g, "%29") : "");

  const children = (node, state) => {
    let text = "";
    for (const child of kit.children(node)) text += render(child, state);
    return text;
  };
  const list = (node, state) => {
    let number = Number(node.getAttribute("start")) || 1;
    let text = "";
    for (const child of node.children) {
      if (child.localName !== "li") {
        text += render(child, state);
        continue;
      }
      const body = settle(render(child, { ...state, item: true }));
      if (!body) continue;
      const mark = node.localName === "ol" ? `${number}. ` : "- ";
      number += 1;
      text += LINE + mark + body.replace(/\n{2,}/g, "\n").replace(/\n/g, `\n${" ".repeat(mark.length)}`);
    }
    return state.item ? LINE + text + LINE : paragraph(text);
  };
  const table = (node, state) => {
    const rows = [...node.rows].map((row) => [...row.cells].map((cell) => flat(children(cell, { ...state, item: true })).replace(/\|/g, "\\|")));
    const width = Math.max(0, ...rows.map((row) => row.length));
    // A table of one column or with tables inside is layout, not data.
    if (width < 2 || node.querySelector("table")) return paragraph(children(node, state));
    const lines = rows.filter((row) => row.some(Boolean)).map((row) => `| ${[...row, ...Array(width - row.length).fill("")].join(" | ")} |`);
    lines.splice(1, 0, `|${" --- |".repeat(width)}`);
    return paragraph(lines.join("\n"));
  };
  const fence = (node) => {
    const body = node.innerText.replace(UNSEEN, "").replace(/\n$/, "");
    const marks = body.includes("```") ? "~~~~" : "```";
    const named = /language-([\w+-]+)/.exec(`${node.className} ${node.firstElementChild?.className || ""}`);
    return paragraph(`${marks}${named ? named[1] : ""}\n${body}\n${marks}`);
  };
  const wrapped = (node, state, around) => {
    const text = children(node, state);
    const inner = flat(text);
    return inner ? `${/^\s/.test(text) ? " " : ""}${around}${inner}${around}${/\s$/.test(text) ? " " : ""}` : "";
  };
  const anchor = (node, state) => {
    const text = children(node, state);
    const inner = flat(text);
    const address = link(node.href || "");
    if (!inner && address && !state.hidden) {
      const named = node.getAttribute("aria-label") || node.title || /([^/]*)\.\w+$/.exec(node.querySelector("img")?.currentSrc ?? "")?.[1];
      if (named && node.querySelector("img, svg")) return `[${named.replace(/[[\]\n]/g, " ").slice(0, 200)}](${address})`;
    }
    if (!inner || !address) return text;
    const start = inner.match(/^#+ /)?.[0] || "";
    return `${text.startsWith(PARAGRAPH) ? PARAGRAPH : ""}${start}[${inner.slice(start.length)}](${address})${text.endsWith(PARAGRAPH) ? PARAGRAPH : ""}`;
  };
  const shapes = {
    ul: list,
    ol: list,
    menu: list,
    table,
    pre: fence,
    a: anchor,
    strong: (node, state) => wrapped(node, state, "**"),
    b: (node, state) => wrapped(node, state, "**"),
    em: (node, state) => wrapped(node, state, "*"),
    i: (node, state) => wrapped(node, state, "*"),
    code: (node, state) => wrapped(node, state, "`"),
    blockquote: (node, state) => paragraph(settle(children(node, state)).replace(/^/gm, "> ")),
    hr: () => paragraph("---"),
    img: (node) => {
      if (node.alt) return `![${node.alt.replace(/[[\]\n]/g, " ")}](${link(node.src)})`;
      return kit.isPicture(node) && link(node.src) ? `![](${link(node.src)})` : "";
    },
  };
  for (let level = 1; level <= 6; level += 1) {
    shapes[`h${level}`] = (node, state) => {
      const title = flat(children(node, state));
      return title ? paragraph(`${"#".repeat(level)} ${title}`) : "";
    };
  }
  const secrets = kit.secretValues();
  const render = (node, state) => {
    if (node.nodeType === Node.TEXT_NODE) {
      if (state.hidden) return "";
      const data = node.data.replace(UNSEEN, "");
      return state.pre ? data : data.replace(/[\s\u00a0]+/g, " ");
    }
    if (node.nodeType !== Node.ELEMENT_NODE || SKIP.has(node.localName)) return "";
    if (node.localName === "br") return state.hidden ? "" : LINE;
    const style = getComputedStyle(node);
    if (style.display === "none" || node.localName === "textarea" || node.localName === "select") return "";
    if (node.isContentEditable && kit.isSecret(node)) return "";
    const now = { ...state, hidden: style.visibility !== "visible", pre: style.whiteSpace.startsWith("pre") };
    if (node.localName === "iframe" || node.localName === "frame") {
      if (now.hidden || node.clientWidth < 2 || node.clientHeight < 2) return "";
      const inner = node.contentDocument?.body;
      if (inner) return paragraph(render(inner, now));
      const mark = FRAME + kit.ref(node) + FRAME;
      marks += mark.length;
      return paragraph(mark);
    }
    const shape = markdown && !now.hidden ? shapes[node.localName] : undefined;
    if (shape) return shape(node, now);
    const text = children(node, now);
    if (node.localName === "td" || node.localName === "th") return `${text} \u00a0`.replace("\u00a0", "\t");
    if (node.localName === "p" || /^h[1-6]$/.test(node.localName)) return paragraph(text);
    return BLOCK.test(style.display) ? LINE + text + LINE : text;
  };

  const text = start ? settle(render(start, { hidden: false, pre: false, item: false })).toWellFormed() : "";
  const whole = kit.maskValues(text, secrets);
  return {
    content: whole.slice(0, maxLength).toWellFormed(),
    length: whole.length,
    marks,
    url: location.href.slice(0, 8192),
    title: kit.maskValues(document.title, secrets).slice(0, 1000).toWellFormed(),
    ready: document.readyState,
    pdf: document.contentType === "application/pdf",
  };
}
