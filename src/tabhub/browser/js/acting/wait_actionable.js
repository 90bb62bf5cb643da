// Waits until the element is actionable and returns the point to act on, or the problem when the time is over.
// need: click, hover (only a point), edit (text), field (any form field), key (the focus), look (only in view).
// `all`: what is there is selected; `keep`: the cursor stays where it is. `shown`: what a person was shown of the element,
// who agreed to act on that only.
async function ({ need, within, settle, patient, all, keep, value, shown: agreed }) {
  const begun = performance.now();
  const TEXTS = ["text", "search", "url", "tel", "email", "password", "number"];
  const NO_TEXT = "input, summary, a[href]:not([role=combobox]), button:not([role=combobox])";
  const WHOLE = ["date", "time", "month", "week", "datetime-local", "color", "range"];

  const describe = (node) => {
    const id = node.id ? `#${node.id}` : "";
    const names = [...node.classList].slice(0, 3).map((name) => `.${name}`).join("");
    const words = (kit.isSecret(node) ? "" : node.innerText || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${node.localName}${id}${names}>${words ? ` "${words}"` : ""}`.slice(0, 160).toWellFormed();
  };
  const parent = (node) => node.assignedSlot || node.parentElement || node.getRootNode().host || null;
  const inside = (node, outer) => {
    for (let at = node; at; at = parent(at)) if (at === outer) return true;
    return false;
  };
  const roots = (node) => {
    const found = [];
    for (let root = node.getRootNode(); root; root = root.host?.getRootNode()) found.unshift(root);
    return found;
  };

  const editor = need === "edit" || need === "field" ? kit.editorOf(this.localName === "label" && this.control ? this.control : this) : null;
  // The field meant: the control of a label, the input of a code editor, the only field of a wrapper, the radio button
  // with the value.
  const field = (node) => {
    let target = node.localName === "label" && node.control ? node.control : node;
    if (editor) return editor.input;
    if (!target.matches("input, textarea, select, [role=textbox], [role=searchbox], [role=combobox]") && !target.isContentEditable) {
      const inner = target.querySelectorAll("input:not([type=hidden]), textarea, select, [contenteditable]:not([contenteditable=false])");
      if (inner.length === 1) target = inner[0];
    }
    if (target.type === "radio" && target.localName === "input" && typeof value === "string") {
      const group = [...target.getRootNode().querySelectorAll("input[type=radio]")].filter((each) => each.name === target.name && each.form === target.form);
      const named = (each) => [...(each.labels || [])].map((label) => label.innerText.trim().toLowerCase());
      const wanted = value.trim().toLowerCase();
      return group.find((each) => each.value.toLowerCase() === wanted) || group.find((each) => named(each).includes(wanted)) || target;
    }
    return target;
  };
  // Fields that take a value only from keys and clicks; a search field takes any text.
  const madeKind = (node) => {
    const [role, input] = [kit.role(node), node.localName === "input"];
    const free = node.type === "search" || node.name === "q" || node.hasAttribute("list") || node.closest("search, [role=search]");
    const lists = node.getAttribute("aria-haspopup") === "listbox" || ["list", "both"].includes(node.getAttribute("aria-autocomplete"));
    if ((role === "combobox" || lists) && !["select", "textarea"].includes(node.localName) && !free) {
      if (!input) return node.isContentEditable ? "" : "list";
      if (TEXTS.includes(node.type)) return "combo";
    }
    if (input) return node.type === "range" ? "range" : "";
    if (role === "slider") return "slider";
    if (role === "spinbutton") return "segment";
    return node.querySelectorAll("[role=spinbutton]:not(input)").length > 1 ? "segments" : "";
  };
  const kindOf = (node) => {
    if (editor) return "code";
    const made = need === "field" ? madeKind(node) : "";
    if (made) return made;
    if (node.localName === "select") return "select";
    if (node.localName === "textarea") return "area";
    if (node.localName === "input") {
      if (TEXTS.includes(node.type)) return "text";
      if (WHOLE.includes(node.type)) return "whole";
      return { checkbox: "check", radio: "radio", file: "file" }[node.type] || "other";
    }
    if (node.isContentEditable) return "rich";
    if (["checkbox", "switch", "radio"].includes(node.getAttribute("role"))) return "switch";
    return "other";
  };

  const element = need === "edit" || need === "field" ? field(this) : this;
  const kind = kindOf(element);
  const pointed = need === "click" || need === "hover" || (need === "field" && ["check", "radio", "switch", "list"].includes(kind));

  const rects = (node) => {
    const own = [...node.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
    if (own.length || node.localName === "input") return own;
    return [...(node.shadowRoot || node).children].slice(0, 20).flatMap((child) => [...child.getClientRects()].filter((box) => box.width > 0 && box.height > 0));
  };
  // Content of a closed <details>, for example, has a box but is not rendered.
  const drawn = (node, { display }) => display === "contents" || node.checkVisibility();
  const shown = (node) => {
    const style = getComputedStyle(node);
    return rects(node).length > 0 && style.visibility === "visible" && drawn(node, style);
  };
  // Elements to click instead: styled checkboxes hide the input and show the label.
  const bodies = () => {
    if (editor) return [editor.root].filter(shown);
    const labels = element.localName === "input" ? [...(element.labels || [])] : [];
    return [element, ...labels].filter(shown);
  };
  const why = (node) => {
    for (let at = node; at; at = parent(at)) {
      const style = getComputedStyle(at);
      if (style.display === "none") return at === node ? "it has display: none" : `${describe(at)} around it has display: none`;
      if (at !== node && at.localName === "details" && !at.open) return `${describe(at)} around it is closed`;
      if (at !== node && style.contentVisibility === "hidden") return `${describe(at)} around it has content-visibility: hidden`;
    }
    return getComputedStyle(node).visibility !== "visible" ? "it has visibility: hidden" : "it has no size";
  };
  const disabled = () => {
    if (element.matches(":disabled")) return element.closest("fieldset:disabled") ? "with its fieldset" : "by the page";
    return element.closest('[aria-disabled="true"]') ? "by aria-disabled" : "";
  };
  const hitAt = (node, x, y) => {
    let hit = null;
    for (const root of roots(node)) hit = root.elementFromPoint(x, y) || hit;
    while (hit?.shadowRoot) {
      const deeper = hit.shadowRoot.elementFromPoint(x, y);
      if (!deeper || deeper === hit) break;
      hit = deeper;
    }
    return hit;
  };
  const belongs = (hit) => {
    if (inside(hit, element)) return true;
    const label = hit.closest?.("label");
    return Boolean(label && label.control === element);
  };
  const points = (node) => {
    const found = [];
    for (const box of rects(node).slice(0, 4)) {
      const left = Math.max(box.left, 0);
      const top = Math.max(box.top, 0);
      const width = Math.min(box.right, innerWidth) - left;
      const height = Math.min(box.bottom, innerHeight) - top;
      if (width <= 0 || height <= 0) continue;
      for (const [across, down] of [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75], [0.1, 0.1], [0.9, 0.9]]) {
        found.push({ x: left + width * across, y: top + height * down });
      }
    }
    return found;
  };
  let cover = null;
  const place = () => {
    for (const body of bodies()) {
      for (const point of points(body)) {
        const hit = hitAt(body, point.x, point.y);
        if (hit && (belongs(hit) || inside(hit, body))) return point;
        cover ||= hit && describe(hit);
      }
    }
    return null;
  };
  // Where it is, then scrolled to the centre, then to the edges, where a sticky header or footer does not cover it.
  let looks = 0;
  const seek = () => {
    // Only at every fifth attempt, so that the page does not keep jumping.
    const ways = looks % 5 ? [""] : ["", "center", "end", "start"];
    let usual = null;
    const scroll = (block) => (bodies()[0] || element).scrollIntoView({ block, inline: "center", behavior: "instant" });
    for (const block of ways) {
      cover = null;
      if (block) scroll(block);
      const found = place();
      if (found) return found;
      if (block !== "end" && block !== "start") usual = cover || usual;
    }
    if (ways.length > 1) scroll("center");
    cover = usual;
    return null;
  };
  // How much of the element is in view, as a share of what can be: scrolling boxes around it clip it like the window.
  const inView = (body) => {
    const box = rects(body)[0] || body.getBoundingClientRect();
    const view = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    let { position } = getComputedStyle(body);
    for (let at = parent(body); at && at !== document.body && at !== document.documentElement; at = parent(at)) {
      const style = getComputedStyle(at);
      const moved = style.transform !== "none";
      if (position === "fixed" ? !moved : position === "absolute" && style.position === "static" && !moved) continue;
      position = style.position;
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      const around = at.getBoundingClientRect();
      view.left = Math.max(view.left, around.left);
      view.top = Math.max(view.top, around.top);
      view.right = Math.min(view.right, around.right);
      view.bottom = Math.min(view.bottom, around.bottom);
    }
    const share = (low, high, from, to) => Math.max(0, Math.min(high, to) - Math.max(low, from)) / (Math.min(high - low, to - from) || 1);
    return Math.min(share(box.left, box.right, view.left, view.right), share(box.top, box.bottom, view.top, view.bottom));
  };

  const tick = (ms) => new Promise((done) => setTimeout(done, ms));
  const frame = () => Promise.race([new Promise((done) => requestAnimationFrame(done)), tick(150)]);
  const moves = () => {
    const root = element.getRootNode();
    return (root.getAnimations?.() || []).some(({ playState, effect }) => playState === "running" && effect?.target && inside(element, effect.target));
  };
  const still = async () => {
    if (!patient && !moves()) return true;
    const before = element.getBoundingClientRect();
    await frame();
    await frame();
    const after = element.getBoundingClientRect();
    return ["x", "y", "width", "height"].every((side) => Math.abs(before[side] - after[side]) < 0.5);
  };

  let scrolled = false;
  const look = async () => {
    if (!element.isConnected) return { why: "detached" };
    if (agreed) {
      const { role, name } = kit.identity(this);
      if (role !== agreed.role || name !== agreed.name) return { why: "changed", detail: kit.label(this) };
    }
    if (element.localName === "option") return { why: "option" };
    if (need === "edit" && ["select", "check", "radio", "file"].includes(kind)) return { why: "notText", detail: kind };
    if (need === "edit" && kind === "other" && element.matches(NO_TEXT)) return { why: "notText", detail: element.localName };
    if (need === "field" && kind === "file") return { why: "file" };
    if (kind === "file" ? !element.isConnected : !bodies().length) return { why: "hidden", detail: why(element) };
    if (need !== "hover" && need !== "look") {
      const off = disabled();
      if (off) return { why: "disabled", detail: off };
    }
    if ((need === "edit" || need === "field") && (element.readOnly || element.getAttribute("aria-readonly") === "true")) return { why: "readonly" };
    if (!(await still())) return { why: "moving" };
    if (!pointed) {
      const body = editor?.root ?? element;
      if (inView(body) < 0.95) {
        scrolled = true;
        body.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
        if (need === "look" && inView(body) <= 0) return { why: kit.isClipped(element) ? "clipped" : "outside" };
      }
      const box = rects(body)[0] || body.getBoundingClientRect();
      return { at: { x: box.x + box.width / 2, y: box.y + box.height / 2 } };
    }
    const at = seek();
    if (at) return { at };
    if (bodies().every((body) => getComputedStyle(body).pointerEvents === "none")) return { why: "deaf" };
    if (bodies().every(kit.isClipped)) return { why: "clipped" };
    return cover ? { why: "covered", detail: cover } : { why: "outside" };
  };

  // Counts our input events, so that a probe can wait for the last one without a round trip for each.
  const counter = () => {
    const events = { count: 0, wake: () => {}, drop: () => {} };
    events.add = () => {
      events.count += 1;
      events.wake();
    };
    // True when the count is reached; false on timeout or if another probe replaces this one.
    events.reach = (wanted, patience = 5000) => {
      const { promise, resolve } = Promise.withResolvers();
      events.wake = () => events.count >= wanted && resolve(true);
      events.drop = () => resolve(false);
      events.wake();
      setTimeout(events.drop, patience);
      return promise;
    };
    return events;
  };

  // Of a form that is not valid, the browser points at the first invalid field.
  const sending = () => {
    globalThis.tabhubForm?.end();
    const form = { invalid: null };
    const wrong = ({ target }) => (form.invalid ??= target);
    addEventListener("invalid", wrong, { capture: true });
    form.end = () => removeEventListener("invalid", wrong, { capture: true });
    setTimeout(form.end, 1500);
    globalThis.tabhubForm = form;
  };

  // The first press decides: if it lands elsewhere, the page receives nothing of this click.
  const guard = () => {
    globalThis.tabhubClick?.stop();
    const types = ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu"];
    const hosts = roots(element).map((root) => root.host).filter(Boolean);
    // The browser also counts events that the page stops before they reach us.
    const presses = performance.eventCounts?.get("pointerdown");
    const unseen = () => presses !== undefined && performance.eventCounts.get("pointerdown") === presses;
    const aim = { verdict: "none", cover: null, sent: false, events: counter(), unseen };
    const judge = (event) => {
      if (!event.isTrusted) return;
      if (aim.verdict === "none") {
        const first = event.composedPath()[0];
        const ok = !(first instanceof Element) || belongs(first) || bodies().some((body) => inside(first, body)) || hosts.includes(first);
        aim.verdict = ok ? "hit" : "missed";
        if (!ok) aim.cover = describe(first);
      }
      if (aim.verdict === "missed") {
        event.preventDefault();
        event.stopImmediatePropagation();
      }
    };
    for (const type of types) addEventListener(type, judge, { capture: true, passive: false });
    // The native context menu would stay open in the person's window.
    const noMenu = (event) => event.preventDefault();
    addEventListener("contextmenu", noMenu);
    // The last listener: by then the page has handled the event.
    const count = (event) => event.isTrusted && aim.events.add();
    addEventListener("click", count);
    const sent = () => (aim.sent = true);
    addEventListener("formdata", sent);
    sending();
    aim.stop = () => {
      removeEventListener("click", count);
      removeEventListener("formdata", sent);
      removeEventListener("contextmenu", noMenu);
      for (const type of types) removeEventListener(type, judge, { capture: true });
    };
    // If no click follows, stop blocking other clicks.
    setTimeout(aim.stop, 1500);
    globalThis.tabhubClick = aim;
  };

  const listen = () => {
    globalThis.tabhubKeys?.stop();
    sending();
    const events = counter();
    const count = (event) => event.isTrusted && events.add();
    addEventListener("keyup", count);
    globalThis.tabhubKeys = { events, field: this, stop: () => removeEventListener("keyup", count) };
  };

  // Rich text editors learn of a selection by its event, which comes later.
  const select = async (range) => {
    const selection = getSelection();
    const before = ["anchorNode", "anchorOffset", "focusNode", "focusOffset"].map((name) => selection[name]);
    selection.removeAllRanges();
    selection.addRange(range);
    if (["anchorNode", "anchorOffset", "focusNode", "focusOffset"].every((name, at) => selection[name] === before[at])) return;
    await Promise.race([new Promise((done) => document.addEventListener("selectionchange", done, { once: true })), tick(100)]);
    await tick(0);
  };

  const focus = async () => {
    element.focus({ preventScroll: true });
    const active = element.getRootNode().activeElement;
    if (active !== element && !(active && inside(active, element)) && !element.contains(active)) return false;
    if (kind === "code" || keep) return true;
    if (kind === "rich") {
      const range = document.createRange();
      range.selectNodeContents(element);
      if (!all) range.collapse(false);
      await select(range);
    } else if (all && ["text", "combo", "area"].includes(kind)) {
      element.select();
    } else if (kind === "area" || (kind === "text" && element.selectionStart !== null)) {
      element.setSelectionRange(element.value.length, element.value.length);
    } else if (kind === "text") {
      // Number and email fields do not report their cursor position.
      getSelection().modify("move", "forward", "documentboundary");
    }
    return true;
  };

  // Points on what is around it, the nearest first: many pages show buttons only while the pointer is on their row.
  const around = () => {
    const places = [];
    for (let at = parent(element); at && places.length < 3 && at !== document.body && at !== document.documentElement; at = parent(at)) {
      const size = at.getBoundingClientRect();
      if (!shown(at) || size.width * size.height > (innerWidth * innerHeight) / 2) continue;
      at.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
      const point = points(at).find(({ x, y }) => inside(hitAt(at, x, y), at));
      if (point) places.push(point);
    }
    return places;
  };

  let found = await look();
  // While nothing in the page changes, waiting does not help.
  let changed = performance.now();
  const watcher = new MutationObserver(() => (changed = performance.now()));
  const changes = { subtree: true, childList: true, characterData: true, attributes: true };
  if (!found.at) for (const root of new Set([document, ...roots(element)])) watcher.observe(root, changes);
  const settled = () => performance.now() - changed >= settle && !kit.changing();
  for (let pause = 10; !found.at && performance.now() - begun < within && !settled(); pause = Math.min(pause * 2, 100)) {
    if (["detached", "changed", "option", "notText", "file"].includes(found.why)) break;
    await tick(pause);
    looks += 1;
    found = await look();
  }
  watcher.disconnect();
  if (!found.at) {
    const reveal = pointed && ["hidden", "outside", "clipped"].includes(found.why) ? around() : [];
    return { problem: { ...found, reveal, settled: settled(), waited: Math.round(performance.now() - begun), url: location.href.slice(0, 300) } };
  }
  if (need !== "look") kit.watchReactions(element);
  if (need === "click" || (pointed && need === "field")) guard();
  const typed = need === "edit" ? kind !== "whole" : need === "field" && ["text", "combo", "area", "rich", "code"].includes(kind);
  if (need === "key") element.focus({ preventScroll: true });
  if (typed) listen();
  if (typed && !(await focus())) return { problem: { why: "unfocusable", detail: describe(element), waited: 0 } };
  const outer = (bodies()[0] || element).getBoundingClientRect();
  return {
    x: found.at.x,
    y: found.at.y,
    box: [outer.x, outer.y, outer.width, outer.height],
    kind,
    // A code editor selects its text by keys.
    go: typed && kind !== "code",
    mac: navigator.platform.startsWith("Mac"),
    name: describe(element),
    label: element === this ? null : kit.label(element),
    type: element.type || "",
    scrolled,
    checked: element.localName === "input" ? element.checked : element.getAttribute("aria-checked") === "true",
    held: ["text", "combo"].includes(kind) && !kit.isSecret(element) ? element.value.slice(0, 100000).toWellFormed() : null,
    empty: kind === "rich" ? !element.textContent : !element.value,
    listbox: Boolean(element.getAttribute("aria-haspopup") || element.getAttribute("aria-expanded")),
    url: location.href.slice(0, 8192).toWellFormed(),
    origin: globalThis.origin,
    secret: kit.isSecret(element),
  };
}
