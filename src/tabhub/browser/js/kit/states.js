// The states of an element as words, and the value of a control.
// Of a field in a snapshot of the page; of one that was asked for, far more is shown.
const LONGEST_VALUE = 100;
const LONGEST_ASKED = 20000;
let longestValue = LONGEST_VALUE;
const SHOWN_OPTIONS = 12;
const CHECKABLE = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"]);
const ariaValue = (element, attribute) => element.getAttribute(attribute)?.trim().toLowerCase() ?? "";

const checkedState = (element) => {
  const own = element.localName === "input" ? (element.indeterminate ? "mixed" : String(element.checked)) : ariaValue(element, "aria-checked");
  return own === "true" ? "checked" : own === "mixed" ? "mixed" : "";
};

const expandedState = (element) => {
  const own = element.localName === "summary" ? String(element.parentElement.open) : ariaValue(element, "aria-expanded");
  return own === "true" ? "expanded" : own === "false" ? "collapsed" : "";
};

const levelOf = (element) => {
  const level = Number(ariaValue(element, "aria-level") || /^h([1-6])$/.exec(element.localName)?.[1]);
  return level > 0 ? `level=${level}` : "";
};

const activeElement = () => {
  let active = document.activeElement;
  for (let root = active && rootOf(active); root?.activeElement; root = rootOf(active)) active = root.activeElement;
  return active === document.body ? null : active;
};

const isAria = (name) => name.startsWith("aria-");

const statesOf = (element, role, active) => {
  const words = [];
  // Most elements have none of the attributes below.
  const hasAria = element.getAttributeNames().some(isAria);
  const aria = (attribute) => (hasAria ? ariaValue(element, attribute) : "");
  if (CHECKABLE.has(role)) words.push(checkedState(element));
  if (element.matches(":disabled") || aria("aria-disabled") === "true") words.push("disabled");
  if (hasAria || element.localName === "summary") words.push(expandedState(element));
  if (aria("aria-selected") === "true") words.push("selected");
  const pressed = aria("aria-pressed");
  if (pressed === "true") words.push("pressed");
  else if (pressed === "mixed") words.push("mixed");
  const current = aria("aria-current");
  if (current && current !== "false") words.push("current");
  if (role === "heading") words.push(levelOf(element));
  if (element.required || aria("aria-required") === "true") words.push("required");
  const invalid = aria("aria-invalid");
  if ((invalid && invalid !== "false") || element.matches(":user-invalid")) words.push("invalid");
  if ((element.readOnly && role !== "checkbox" && role !== "radio") || aria("aria-readonly") === "true") words.push("readonly");
  if (element.localName === "dialog" && element.matches(":modal")) words.push("modal");
  if (element === active) words.push("focused");
  return words.filter(Boolean);
};

const options = (select) => {
  const all = [...select.options].filter((option) => !option.hidden);
  const shown = all.slice(0, SHOWN_OPTIONS).map((option) => JSON.stringify(cut(squeeze(option.label), 60)) + (option.disabled ? " (disabled)" : ""));
  return all.length ? ` options: ${shown.join(", ")}${all.length > shown.length ? ` (+${all.length - shown.length})` : ""}` : "";
};

const quoted = (text) => {
  if (!text) return "";
  const more = text.length - longestValue;
  return ` = ${JSON.stringify(more > 0 ? `${text.slice(0, longestValue).toWellFormed()}…` : text.toWellFormed())}${more > 0 ? ` (+${more} characters)` : ""}`;
};

const fieldValue = (field) => {
  const { text, shown } = fieldText(field);
  return quoted(text) + (text && shown ? " (the visible part)" : "");
};

const filledIn = (element) => (plainValue(element) ? ` = "${MASK}" (filled in)` : "");

// The value of a control, to be appended to its line.
const valueOf = (element, role) => {
  switch (element.localName) {
    case "select": {
      if (isSecretField(element)) return (element.value ? ` = "${MASK}" (chosen)` : "") + options(element);
      const chosen = [...element.selectedOptions].slice(0, SHOWN_OPTIONS);
      return quoted(chosen.map((option) => squeeze(option.label)).join(", ")) + options(element);
    }
    case "input":
      if (["button", "submit", "reset", "image", "checkbox", "radio", "hidden"].includes(element.type)) return "";
      if (element.type === "file") return quoted([...element.files].map((file) => file.name).join(", "));
      return isSecretField(element) ? filledIn(element) : fieldValue(element);
    case "textarea":
      if (isSecretField(element)) return filledIn(element);
      return fieldValue(element);
    case "progress":
    case "meter":
      return element.hasAttribute("value") ? ` = ${element.value}/${element.max}` : "";
    default:
  }
  if (role === "slider" || role === "spinbutton" || role === "progressbar" || role === "meter" || role === "scrollbar") {
    return quoted(element.getAttribute("aria-valuetext") ?? element.getAttribute("aria-valuenow") ?? "");
  }
  if (isSecretField(element)) return filledIn(element);
  if (editable(element) || role === "textbox" || role === "searchbox") return fieldValue(element);
  if (role === "combobox") return quoted(squeeze(contentText(element)));
  return "";
};

// A name for an element without one, from its icon, shape, class or colour; or its place among similar siblings.
const MANY_SIBLINGS = 100;
const WORD = /^[A-Za-z][\w-]{1,39}$/;
const ICON = /(?:^|-)(?:icons?|glyphicon|fa|fas|far|fab|bi|mdi|ti|lucide|feather)-([\w-]+)$/;
const STYLING = /^(fa|fas|far|fab|bi|mdi|ti|icon|icons|btn|button|lucide|feather|svg-icon|material-icons)$|^(css|sc|jsx|_)-?|--|\d{3,}/;
const SHAPES = new Set("circle ellipse rect polygon polyline line path".split(" "));
const classesOf = (element) => [...element.classList].filter((name) => WORD.test(name));
const iconOf = (element, holds) => {
  const inner = [element, ...(holds ? [] : element.querySelectorAll("svg, use, i, span, img, [data-icon]"))].slice(0, 8);
  for (const one of inner) {
    const given = one.getAttribute("data-icon") ?? one.getAttribute("data-lucide");
    const used = one.localName === "use" && (one.getAttribute("href") ?? one.getAttribute("xlink:href"))?.split("#")[1];
    const file = one.localName === "img" && /([\w-]+)\.\w+(?:[?#]|$)/.exec(one.getAttribute("src") ?? "")?.[1];
    const written = classesOf(one).map((name) => ICON.exec(name)?.[1]).find(Boolean);
    const name = given || used || file || written;
    if (name && WORD.test(name)) return name;
  }
  return "";
};
// `holds`: its icons belong to what acts inside it.
const hintOf = (element, holds) => {
  const icon = iconOf(element, holds);
  if (icon) return `icon=${icon}`;
  const told = ["name", "data-testid", "data-action", "id"].map((name) => element.getAttribute(name)).find((name) => name && WORD.test(name) && !/\d{3,}/.test(name));
  const own = classesOf(element).find((name) => !STYLING.test(name));
  const words = told ? [`id=${told}`] : own ? [`class=${own}`] : [];
  const colour = element.style?.backgroundColor || (element.ownerSVGElement ? element.getAttribute("fill") : "");
  if (colour && /^[\w#(), .]{1,30}$/.test(colour)) words.push(`colour=${colour.replace(/\s/g, "")}`);
  if (element.ownerSVGElement && SHAPES.has(element.localName)) words.unshift(element.localName);
  const around = element.parentElement;
  if (!told && around && around.childElementCount <= MANY_SIBLINGS) {
    const alike = [...around.children].filter((one) => one.localName === element.localName);
    if (alike.length > 1) words.push(`nth=${alike.indexOf(element) + 1}/${alike.length}`);
  }
  return words.join(" ");
};

// Whether an image without a name is more than decoration.
const SMALLEST_PICTURE = 48;
const isPicture = (element) => element.localName === "img" && element.offsetWidth >= SMALLEST_PICTURE && element.offsetHeight >= SMALLEST_PICTURE;

// What else tells an element: a link's URL, and a title or placeholder that its name does not show.
// `shownTitles` has the titles of elements with the same name that were shown before.
const moreOf = (element, role, name, shownTitles = new Set()) => {
  const address = role === "link" ? addressOf(element) : "";
  const words = address ? [address] : [];
  const low = name.toLowerCase();
  for (const [word, attributes] of [["title", ["title"]], ["placeholder", ["placeholder", "aria-placeholder"]]]) {
    const text = squeeze(attributes.map((attribute) => element.getAttribute(attribute)).find(Boolean) ?? "");
    if (!text || low.includes(text.toLowerCase()) || (word === "title" && text.toLowerCase().includes(low) && low.length > 3)) continue;
    const known = `${name}\n${text}`;
    if (word === "title" && address && shownTitles.has(known)) continue;
    shownTitles.add(known);
    words.push(`${word} ${JSON.stringify(cut(text, 80))}`);
  }
  return words.length ? ` ${words.join(" ")}` : "";
};

// A link's URL, shortened where it is clear which site is meant.
const addressOf = (element) => {
  const href = typeof element.href === "string" ? element.href : element.href?.baseVal;
  if (!href) return "";
  const written = element.getAttribute("href") ?? "";
  if (/^(#|\/(?!\/))[!-~]{0,59}$/.test(written)) return written;
  // One that is relative to the page is the shortest, unless the page resolves them elsewhere.
  if (/^[\w.-][\w./~%-]{0,59}(#[!-~]{0,40})?$/.test(written) && document.baseURI === document.URL) return written;
  let address;
  try {
    address = new URL(href, document.baseURI);
  } catch {
    return "";
  }
  if (address.protocol === "javascript:") return "";
  let shown = address.href;
  if (address.origin === location.origin) {
    const here = address.pathname === location.pathname && address.search === location.search && address.hash;
    shown = here ? address.hash : address.pathname + address.search + address.hash;
  } else if (address.protocol === "https:") shown = address.href.slice(8);
  return shown.length > 60 ? `${shown.slice(0, 59)}…` : shown;
};
