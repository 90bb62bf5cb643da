// The current HTML of an element or of the whole document, with its shadow roots.
function ({ maxLength }) {
  const start = this instanceof Element ? this : document.documentElement;
  const shadowRoots = [...kit.roots(start)].filter((root) => root instanceof ShadowRoot);
  for (const root of start.shadowRoot ? kit.roots(start.shadowRoot) : []) shadowRoots.push(root);
  const escape = (text) => text.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const attributes = [...start.attributes].map(({ name, value }) => ` ${name}="${escape(value)}"`).join("");
  const bare = /^(area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)$/.test(start.localName);
  const name = start.localName;
  const open = `<${name}${attributes}>`;
  const visible = (
    (start === document.documentElement && document.doctype ? `<!DOCTYPE ${document.doctype.name}>\n` : "") +
    (bare ? open : `${open}${start.getHTML({ shadowRoots })}</${name}>`)
  ).toWellFormed();
  const whole = kit.maskMarkup(visible);
  return {
    html: whole.slice(0, maxLength).toWellFormed(),
    length: whole.length,
    url: location.href.slice(0, 8192),
    shadowRoots: new Set(shadowRoots).size,
    frames: start.querySelectorAll("iframe, frame").length,
  };
}
