// The page as a person reads it: visible text, plain or as Markdown, the main content before the rest of the page.
// A frame that cannot be read from here leaves its ref between two markers, where the hub inserts its content.
// Before each heading is a control character with its level, which the hub takes out.
// A field gives its value, a code editor what it shows and the ref of its root, so that the hub can ask it for the rest.
// `framed`: only if the parent document cannot read it along with its own content, and it is visible.
async function ({ markdown, maxLength, framed }) {
  await kit.drawn();
  if (framed && (window.frameElement || innerWidth < 2 || innerHeight < 2)) return {};
  return kit.oneLook(() => {
    const LINE = "\u0001";
    const PARAGRAPH = "\u0002";
    // Blanks that count, until the text around them is settled: of preformatted text, and no-break spaces.
    const [SPACE, TAB, NEWLINE, FIXED] = ["\u0004", "\u0005", "\u0006", "\u0007"];
    const exact = (text) => text.replace(/ /g, SPACE).replace(/\t/g, TAB).replace(/\n/g, NEWLINE);
    const plain = (text) => text.replace(/[\u0004\u0007]/g, " ").replace(/\u0005/g, "\t").replace(/\u0006/g, "\n");
    const SKIP = new Set(["script", "style", "noscript", "template", "head", "svg", "canvas", "video", "audio", "object"]);
    const BLOCK = /^(block|flex|grid|table|list-item|flow-root|table-row|table-caption)/;
    const FRAME = "\u0003";
    // Invisible to people but read by a model: zero-width characters, direction overrides, tags.
    const UNSEEN = /[\u0001-\u0007\u000e\u000f\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;
    const start = this instanceof Element ? this : document.body || document.documentElement;
    let [marks, headings, editors] = [0, 0, 0];
    let skipped = null;
    const HEADINGS = "h1, h2, h3, h4, h5, h6, [role=heading]";
    const headed = (node, text) => {
      if (!flat(text)) return "";
      headings += 2;
      const level = Number(node.getAttribute("aria-level") || /^h([1-6])$/.exec(node.localName)?.[1]) || 2;
      return paragraph(`\u000e${Math.min(9, Math.max(1, Math.trunc(level)))}${text.replaceAll(PARAGRAPH, LINE)}`);
    };

    const settle = (text) =>
      text
        .replace(/\u0006?[ \t\u0007]*[\u0001\u0002][ \u0001\u0002]*/g, (gap) => (gap.includes(PARAGRAPH) ? "\n\n" : "\n"))
        .replace(/\n{3,}/g, "\n\n")
        .replace(/^\n+|[\s\u0006\u0007]+$/g, "");
    const paragraph = (text) => PARAGRAPH + text + PARAGRAPH;
    const flat = (text) => settle(text).replace(/\s*[\n\u0006]\s*/g, " ").replace(/^\u0007+$/, "").trim();
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
        text += LINE + mark + body.replace(/\n{2,}|\u0006/g, "\n").replace(/\n/g, `\n${" ".repeat(mark.length)}`);
      }
      return state.item ? LINE + text + LINE : paragraph(text);
    };
    const table = (node, state) => {
      const rows = [];
      // How many more rows a cell above covers, by column.
      const covered = [];
      for (const row of node.rows) {
        const texts = [];
        const skip = () => {
          for (; covered[texts.length] > 0; texts.push("")) covered[texts.length] -= 1;
        };
        for (const cell of row.cells) {
          skip();
          const text = flat(children(cell, { ...state, item: true })).replace(/\|/g, "\\|");
          for (let part = 0; part < Math.min(cell.colSpan, 100); part += 1) {
            covered[texts.length] = cell.rowSpan - 1;
            texts.push(part ? "" : text);
          }
        }
        skip();
        rows.push(texts);
      }
      const width = Math.max(0, ...rows.map((row) => row.length));
      // A table of one column or with tables inside is layout, not data.
      if (width < 2 || node.querySelector("table")) return paragraph(children(node, state));
      const lines = rows.filter((row) => row.some(Boolean)).map((row) => `| ${[...row, ...Array(width - row.length).fill("")].join(" | ")} |`);
      lines.splice(1, 0, `|${" --- |".repeat(width)}`);
      return paragraph(lines.join("\n"));
    };
    const fence = (node) => {
      return fenced(node.innerText, languageOf(node));
    };
    const fenced = (text, language) => {
      const body = text.replace(UNSEEN, "").replace(/\u00a0/g, " ").replace(/\n$/, "");
      const marks = body.includes("```") ? "~~~~" : "```";
      return paragraph(exact(`${marks}${language}\n${body}\n${marks}`));
    };
    // The language of a code block, which sites write on it, on the code inside or on what is around it.
    const languageOf = (node) => {
      for (const one of [node, node.firstElementChild, node.parentElement, node.parentElement?.parentElement]) {
        const given = one?.dataset?.lang || one?.dataset?.language;
        const named = /(?:^|\s)(?:language-|lang-|highlight-source-|highlight-|brush:\s*)([\w+#-]+)/.exec(one?.getAttribute?.("class") ?? "");
        if (given || named) return (given || named[1]).slice(0, 40).replace(/[^\w+#-]/g, "");
      }
      return "";
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
      blockquote: (node, state) => paragraph(settle(children(node, state)).replace(/\u0006/g, "\n").replace(/^/gm, "> ")),
      hr: () => paragraph("---"),
      img: (node) => {
        if (node.alt) return `![${node.alt.replace(/[[\]\n]/g, " ")}](${link(node.src)})`;
        return kit.isPicture(node) && link(node.src) ? `![](${link(node.src)})` : "";
      },
    };
    for (let level = 1; level <= 6; level += 1) {
      shapes[`h${level}`] = (node, state) => {
        const title = flat(children(node, state));
        return headed(node, title && `${"#".repeat(level)} ${title}`);
      };
    }
    const secrets = kit.secretValues();

    // The browser writes a block as text far faster than scripts do, so only what it cannot write is put together here:
    // what has one of these inside.
    const SPECIAL = new Set("h1 h2 h3 h4 h5 h6 iframe frame slot select textarea svg canvas object video audio noscript details".split(" "));
    const MARKED_SPECIAL = `[role=heading], [contenteditable], ${kit.editorRoots}`;
    const special = new Set();
    const mark = (node) => {
      for (let at = node; at && !special.has(at); at = kit.parent(at)) special.add(at);
    };
    const hasEditors = !markdown || document.querySelector(kit.editorRoots) !== null;
    const findSpecial = () => {
      for (const root of kit.roots()) {
        if (root.host) mark(root.host);
        // Going through the elements is faster than a selector with many names.
        for (const node of root.querySelectorAll("*")) if (SPECIAL.has(node.localName)) mark(node);
        for (const node of root.querySelectorAll(MARKED_SPECIAL)) mark(node);
      }
    };
    const written = [];
    // What is not drawn yet is not written by the browser either, so it is compared with what is there.
    const size = (text) => text.replace(/\s+/g, "").length;
    const native = (node) => {
      const all = node.innerText;
      if (size(all) < size(node.textContent)) return null;
      const text = all.replace(UNSEEN, "").replace(/\u00a0/g, " ").replace(/^\n+|\s+$/g, "");
      return text && `\u000f${written.push(text) - 1}\u000f`;
    };
    const insertWritten = (text) => text.replace(/\u000f(\d+)\u000f/g, (_, place) => written[place]);

    const render = (node, state) => {
      if (node.nodeType === Node.TEXT_NODE) {
        if (state.hidden) return "";
        const data = node.data.replace(UNSEEN, "");
        if (state.pre === "line") return data.replace(/[^\S\n]+/g, " ").replace(/ ?\n ?/g, NEWLINE);
        if (state.pre) return exact(data.replace(/\u00a0/g, " "));
        return data.replace(/[^\S\u00a0]+/g, " ").replace(/\u00a0/g, FIXED);
      }
      if (node.nodeType !== Node.ELEMENT_NODE || SKIP.has(node.localName)) return "";
      if (node === skipped) return PARAGRAPH;
      if (node.localName === "br") return state.hidden ? "" : LINE;
      const style = getComputedStyle(node);
      if (style.display === "none" || node.localName === "textarea" || node.localName === "select") return "";
      const isHeading = node.matches(HEADINGS);
      if (!markdown && !isHeading && !state.hidden && !special.has(node) && BLOCK.test(style.display)) {
        const text = native(node);
        if (text !== null) return node.localName === "p" ? paragraph(text) : LINE + text + LINE;
      }
      if (node.isContentEditable && kit.isSecret(node)) return "";
      const pre = style.whiteSpace === "pre-line" ? "line" : style.whiteSpace.startsWith("pre") || style.whiteSpace === "break-spaces";
      const now = { ...state, hidden: style.visibility !== "visible", pre };
      const editor = now.hidden || !hasEditors ? null : kit.editorOf(node);
      if (editor?.root === node) {
        if (kit.isSecret(editor.input)) return "";
        editors += 1;
        const lines = kit.fieldText(editor.input).text;
        return markdown ? fenced(lines, "") : paragraph(exact(lines));
      }
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
      if (isHeading) return headed(node, text);
      if (node.localName === "p") return paragraph(text);
      return BLOCK.test(style.display) ? LINE + text + LINE : text;
    };

    // What is read instead of the page's text: the field itself, or the code editor that is all the target shows.
    const alone = () => {
      if (!(this instanceof Element)) return null;
      const editor = kit.editorOf(this);
      for (let at = editor?.root; at && at !== this && this.contains(at); at = at.parentElement) {
        if ([...at.parentElement.childNodes].some((one) => one !== at && one.textContent.trim())) return null;
      }
      if (editor) return editor.input;
      if (this.localName === "textarea" || (this.localName === "input" && typeof this.selectionStart !== "undefined")) return this;
      return !markdown && this.isContentEditable && this.hasAttribute("contenteditable") ? this : null;
    };
    const field = alone();
    const secret = field && kit.isSecret(field);
    const value = field ? kit.fieldText(field) : null;
    const rendered = (node) => insertWritten(plain(settle(render(node, { hidden: false, pre: false, item: false }))));
    // The one main part of a page; it comes first, and what is around it afterwards.
    const mainPart = () => {
      for (const selector of ["main, [role=main]", "article"]) {
        const found = [...document.querySelectorAll(selector)].filter((node) => kit.visible(node) && !node.parentElement.closest(selector));
        if (found.length) return found.length === 1 ? found[0] : null;
      }
      return null;
    };
    const readAll = () => {
      const main = this instanceof Element || framed ? null : mainPart();
      if (main) mark(main);
      if (!markdown) findSpecial();
      if (!main) return rendered(start);
      const first = rendered(main);
      skipped = main;
      const rest = rendered(start);
      return rest ? `${first}\n\n[outside the main content]\n\n${rest}` : first;
    };
    const text = (value ? (secret ? (value.text ? "•••" : "") : value.text) : start ? readAll() : "").toWellFormed();
    const whole = kit.maskValues(text, secrets);
    return {
      content: whole.slice(0, maxLength + headings).toWellFormed(),
      length: whole.length - headings,
      cut: whole.length > maxLength + headings,
      marks,
      editor: value?.shown && !secret ? kit.ref(kit.editorOf(field).root) : null,
      partial: Boolean(value?.shown) || editors > 0,
      url: location.href.slice(0, 8192),
      title: kit.maskValues(document.title, secrets).slice(0, 1000).toWellFormed(),
      ready: document.readyState,
      pdf: document.contentType === "application/pdf",
    };
  });
}
